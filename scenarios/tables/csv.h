// Comma-separated text as rows of fields that know their line.
//
//   model,gpus            header: recognises the table
//   "Llama, 13B",64       quoted fields may hold commas, "" for a quote, and line breaks (RFC 4180)
//
// A reader of our own: Debian's fast-cpp-csv-parser fixes the columns when it is compiled and libcsv does
// not tell lines, while a table is recognised by its header and every complaint names a line.
// Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

struct CsvRow {
  int line = 0;  // 1-based, where it begins
  std::vector<std::string> fields;
};

struct CsvTable {
  std::string file;
  std::vector<std::string> comments;  // lines before the header that begin with #, without it
  std::vector<std::string> header;
  int header_line = 1;
  std::vector<CsvRow> rows;  // empty lines are left out; a row may have another number of fields than the header
};

// A byte-order mark and carriage returns are dropped. Throws std::runtime_error with file and line: no
// header, two columns of one name, a quote that is not closed.
CsvTable read_csv(std::istream& in, const std::string& file);

// One line of fields, quoted where they must be; ends with a line feed.
std::string csv_line(const std::vector<std::string>& fields);

// One row of a table by column name, with numbers read as numbers.
//
// A cell that is not what its column must be throws CellError ("column tensor: 'two' is no whole number");
// the table's reader turns it into a row that cannot be priced, which is counted and named, never dropped.
// Guarded by tests/scenarios/tables_test.cpp.

class CellError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Cells {
 public:
  // The row has as many fields as the header; both outlive this.
  Cells(const std::vector<std::string>& header, const CsvRow& row) : header_(header), row_(row) {}

  // "" where the table has no such column.
  const std::string& text(std::string_view column) const;
  bool empty(std::string_view column) const { return text(column).empty(); }
  std::int64_t integer(std::string_view column) const;                // "16" or "16.0", 1 to 1e9
  int count(std::string_view column) const;                           // the same as int
  double number(std::string_view column) const;                       // finite, at least 0
  double above_zero(std::string_view column) const;                   // a number that is
  double number_or(std::string_view column, double otherwise) const;  // where it is empty or there is none
  bool flag(std::string_view column) const;                           // 0, 1, true, false, True, False
  // How a run ended: these two words, or any other word, which is no score's business; CellError when
  // empty.
  RowStatus status(std::string_view ok, std::string_view out_of_memory) const;
  // Looks a word up; the error lists what is allowed.
  template <typename Value>
  Value choice(std::string_view column, const std::map<std::string, Value, std::less<>>& choices) const {
    return choice(column, text(column), choices);
  }
  // The same of what was written, in other words.
  template <typename Value>
  Value choice(std::string_view column, const std::string& word,
               const std::map<std::string, Value, std::less<>>& choices) const {
    const auto found = choices.find(word);
    if (found != choices.end()) return found->second;
    std::string allowed;
    for (const auto& [name, value] : choices) allowed += (allowed.empty() ? "" : ", ") + name;
    throw CellError("column " + std::string(column) + ": '" + text(column) + "' is none of " + allowed);
  }
  // The same of the names of an enumeration (models/model/names.h).
  template <typename Value, std::size_t count>
  Value choice(std::string_view column, const std::array<Named<Value>, count>& names) const {
    if (const std::optional<Value> value = value_in(names, text(column))) return *value;
    throw CellError("column " + std::string(column) + ": '" + text(column) + "' is none of " + all_names(names));
  }

 private:
  const std::vector<std::string>& header_;
  const CsvRow& row_;
};

}  // namespace slipway::scenarios
