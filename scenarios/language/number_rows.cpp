#include "scenarios/language/number_rows.h"

#include <algorithm>
#include <charconv>

namespace slipway::scenarios {
namespace {

constexpr std::string_view start_of_row = "  - ";

std::optional<std::vector<double>> numbers_in(std::string_view row) {
  const bool quoted = row.size() >= 2 && row.front() == '"' && row.back() == '"';
  const bool bracketed = row.size() >= 2 && row.front() == '[' && row.back() == ']';
  if (!quoted && !bracketed) return std::nullopt;
  row = row.substr(1, row.size() - 2);
  std::vector<double> numbers;
  while (!row.empty()) {
    double& number = numbers.emplace_back();
    const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), number);
    if (error != std::errc()) return std::nullopt;
    row.remove_prefix(static_cast<std::size_t>(end - row.data()));
    if (row.empty()) break;
    const std::string_view separator = quoted ? " " : ", ";
    if (!row.starts_with(separator)) return std::nullopt;
    row.remove_prefix(separator.size());
  }
  return numbers;
}

}  // namespace

std::optional<std::vector<std::vector<double>>> take_number_rows(std::string& text, std::string_view key) {
  const std::string heading = "\n" + std::string(key) + ":\n";
  const std::size_t found = text.find(heading);
  if (found == std::string::npos) return std::nullopt;
  const std::size_t first = found + heading.size();
  std::vector<std::vector<double>> rows;
  std::size_t at = first;
  while (std::string_view(text).substr(at).starts_with(start_of_row)) {
    std::size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    auto row = numbers_in(std::string_view(text).substr(at + start_of_row.size(), end - at - start_of_row.size()));
    if (!row) return std::nullopt;
    rows.push_back(std::move(*row));
    at = std::min(end + 1, text.size());
  }
  if (at < text.size() && text[at] == ' ') return std::nullopt;  // a row of another form
  text.replace(first, at - first, std::string(rows.size(), '\n'));
  return rows;
}

}  // namespace slipway::scenarios
