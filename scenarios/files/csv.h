// Comma-separated text as rows of fields with line numbers.
//
//   model,gpus            header: recognises the table
//   "Llama, 13B",64       quoted fields may hold commas, "" for a quote, and line breaks (RFC 4180)
//
// No library: Debian's fast-cpp-csv-parser fixes the columns at compile time, and libcsv reports no lines. Here the
// header identifies the table, and every complaint names a line.
// Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

struct CsvRow {
  int line = 0;  // 1-based, of its beginning
  std::vector<std::string> fields;
};

struct CsvTable {
  std::string file;
  std::vector<std::string> comments;  // lines before the header that begin with #, without the #
  std::vector<std::string> header;
  int header_line = 1;
  std::vector<CsvRow> rows;  // without empty lines; the number of fields may differ from the header's
};

// Drops a byte-order mark and carriage returns. Throws std::runtime_error with file and line: no header, two columns of
// one name, an unclosed quote.
CsvTable read_csv(std::istream& in, const std::string& file);

// The same of a file that the user named. Throws UsageError for all that, and for a file that cannot be read.
CsvTable read_csv_file(const std::string& path);

// One line of fields, quoted where necessary, with a line feed at the end.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace slipway::scenarios
