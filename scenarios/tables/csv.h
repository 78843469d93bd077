// Comma-separated text as rows of fields that know their line.
//
//   model,gpus            header: recognises the table
//   "Llama, 13B",64       quoted fields may hold commas, "" for a quote, and line breaks (RFC 4180)
//
// A reader of our own: Debian's fast-cpp-csv-parser fixes the columns when it is compiled and libcsv does
// not tell lines, while a table is recognised by its header and every complaint names a line.
// Guarded by tests/csv_test.cpp.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace slipway {

struct CsvRow {
  int line = 0;  // 1-based, where it begins
  std::vector<std::string> fields;
};

struct CsvTable {
  std::string file;
  std::vector<std::string> comments;  // lines before the header that begin with #, without it
  std::vector<std::string> header;
  int header_line = 1;
  std::vector<CsvRow>
      rows;  // empty lines are left out; a row may have another number of fields than the header
};

// A byte-order mark and carriage returns are dropped. Throws std::runtime_error with file and line: no
// header, two columns of one name, a quote that is not closed.
CsvTable read_csv(std::istream& in, const std::string& file);

// One line of fields, quoted where they must be; ends with a line feed.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace slipway
