// Tables of published runs, for `slipway validate` and `slipway calibrate --runs`.
//
//   scenario                                                   status  step_s  table  ...
//   "{model: gpt2, cluster: {machine: h100-80gb, ...}, ...}"   ok      1.25    ...
//
// A run is a scenario, whose text on one line is in the language of every scenario file, and its results. run_columns()
// has all columns. A scenario that the language refuses makes a row that cannot be priced, with the refusal.
//
// A table in its publisher's columns is turned into one by the converter beside it, scenarios/studies/<study>/convert.py.
// What columns a converter reads stands in its lines `# reads: ...`; a table with such columns is refused with the
// converter's command.
// Guarded by tests/scenarios/tables_test.cpp and tests/tables/converters_test.py.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/laboratory/tables/published_row.h"

namespace slipway::scenarios {

struct RunColumn {
  std::string_view name, meaning;
  bool required = false;
};
std::span<const RunColumn> run_columns();

// The columns that a converter reads. One that reads two tables has two.
struct Converter {
  std::string_view path;  // "scenarios/studies/dgxc-2025/convert.py"
  std::vector<std::string_view> columns;
};
const std::vector<Converter>& converters();

struct PublishedTable {
  std::string file;
  std::string source;  // citation: the table's first comment
  std::vector<PublishedRow> rows;
  std::vector<std::string> unread;  // columns that mean nothing here
};

// Throws std::runtime_error with the file: no table, or none of runs; it names the converter where there is one. A row
// that cannot be read has `unpriceable` set.
PublishedTable read_table(std::istream& in, const std::string& file);
// The same of a file that the user named. Throws UsageError for all that, for a file that cannot be read, and for a
// folder.
PublishedTable read_table_file(const std::string& path);

// The row's cells of run_columns().
std::vector<std::string> run_fields(const PublishedRow& row);
// The header and these rows, which read back as the same.
std::string table_text(const std::vector<const PublishedRow*>& rows);

// The rows of the tables that the built-in constants were fitted to. The program contains them.
const std::vector<PublishedRow>& published_rows();

}  // namespace slipway::scenarios
