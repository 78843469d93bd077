// One row of a table by column name, with numbers read as numbers.
//
// A cell of the wrong kind throws CellError ("column tensor: 'two' is no whole number"). The table's reader makes it a
// row that cannot be priced. Such a row is counted and named, never dropped.
// Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "models/model/names.h"
#include "scenarios/files/csv.h"

namespace slipway::scenarios {

class CellError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Cells {
 public:
  // The row must have as many fields as the header. All must outlive this. `read`, where given, gets each column that a
  // reader asks for.
  Cells(const std::vector<std::string>& header, const CsvRow& row, std::set<std::string, std::less<>>* read = nullptr)
      : header_(header), row_(row), read_(read) {}

  // Empty where the table has no such column.
  const std::string& text(std::string_view column) const;
  bool empty(std::string_view column) const { return text(column).empty(); }
  std::int64_t integer(std::string_view column) const;                // "16" or "16.0", 1 to 1e9
  int count(std::string_view column) const;                           // the same as int
  double number(std::string_view column) const;                       // finite, at least 0
  double above_zero(std::string_view column) const;                   // a number above 0
  double number_or(std::string_view column, double otherwise) const;  // `otherwise` without a value
  int whole(std::string_view column) const;                           // the same from 0
  bool flag(std::string_view column) const;                           // 0, 1, true, false, True, False
  // Looks the cell's word up. The error lists the allowed words.
  template <typename Value>
  Value choice(std::string_view column, const std::map<std::string, Value, std::less<>>& choices) const {
    return choice(column, text(column), choices);
  }
  // The same for `word`, a simplified form of the cell.
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
  std::set<std::string, std::less<>>* read_;
};

}  // namespace slipway::scenarios
