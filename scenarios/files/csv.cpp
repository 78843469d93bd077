#include "scenarios/files/csv.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <istream>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "scenarios/files/files.h"
#include "scenarios/files/usage_error.h"

namespace slipway::scenarios {

namespace {

class Scanner {
 public:
  Scanner(std::string text, std::string file) : text_(std::move(text)), file_(std::move(file)) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  std::optional<std::string> comment() {
    if (at_ >= text_.size() || text_[at_] != '#') return std::nullopt;
    const std::size_t begin = text_.find_first_not_of("# ", at_), end = std::min(text_.find('\n', at_), text_.size());
    at_ = std::min(end + 1, text_.size());
    ++line_;
    return begin < end ? text_.substr(begin, end - begin) : std::string();
  }

  // The next row that is not empty.
  std::optional<CsvRow> next() {
    while (at_ < text_.size()) {
      CsvRow row{line_, {}};
      while (!field(row)) {
      }
      ++line_;
      if (row.fields.size() > 1 || !row.fields[0].empty()) return row;
    }
    return std::nullopt;
  }

 private:
  // Reads one field. Returns true at the end of the row.
  bool field(CsvRow& row) {
    std::string value;
    const bool quoted = at_ < text_.size() && text_[at_] == '"';
    if (quoted) value = quoted_text();
    const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    if (!quoted) value = text_.substr(at_, end - at_);
    if (!value.empty() && value.back() == '\r') value.pop_back();
    row.fields.push_back(std::move(value));
    at_ = std::min(end + 1, text_.size());
    return end >= text_.size() || text_[end] == '\n';
  }

  std::string quoted_text() {
    const int begun = line_;
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        if (at_ >= text_.size() || text_[at_] != '"') return value;
      }
      if (text_[at_] == '\n') ++line_;
      value += text_[at_];
    }
    throw std::runtime_error(file_ + ":" + std::to_string(begun) +
                             ": a quoted field is not closed; end it with \", and write \"\" for a quote in it");
  }

  std::string text_, file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

CsvTable read_csv(std::istream& in, const std::string& file) {
  Scanner scanner({std::istreambuf_iterator<char>(in), {}}, file);
  std::vector<std::string> comments;
  while (std::optional<std::string> comment = scanner.comment()) comments.push_back(std::move(*comment));
  std::optional<CsvRow> header = scanner.next();
  if (!header) throw std::runtime_error(file + ": is empty; a table begins with a line that names its columns");
  CsvTable table{file, std::move(comments), std::move(header->fields), header->line, {}};
  std::set<std::string> names;
  for (const std::string& name : table.header)
    if (!names.insert(name).second)
      throw std::runtime_error(file + ":" + std::to_string(header->line) + ": two columns are named '" + name +
                               "'; rename one");
  while (std::optional<CsvRow> row = scanner.next()) table.rows.push_back(std::move(*row));
  return table;
}

CsvTable read_csv_file(const std::string& path) {
  if (const std::string reason = unreadable(path); !reason.empty())
    throw UsageError("cannot read '" + path + "': " + reason);
  std::ifstream in(path);
  try {
    return read_csv(in, path);
  } catch (const std::runtime_error& reason) {
    throw UsageError(reason.what());
  }
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    if (fields[i].find_first_of(",\"\n\r") == std::string::npos) {
      line += fields[i];
      continue;
    }
    line += '"';
    for (const char c : fields[i]) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + '\n';
}

}  // namespace slipway::scenarios
