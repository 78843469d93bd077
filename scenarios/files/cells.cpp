#include "scenarios/files/cells.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace slipway::scenarios {

namespace {

CellError wrong(std::string_view column, const std::string& text, const char* what) {
  return CellError("column " + std::string(column) +
                   (text.empty() ? std::string(" is empty and") : ": '" + text + "', which") + " must be " + what);
}

}  // namespace

const std::string& Cells::text(std::string_view column) const {
  static const std::string nothing;
  if (read_ != nullptr) read_->emplace(column);
  const auto found = std::find(header_.begin(), header_.end(), column);
  return found == header_.end() ? nothing : row_.fields[found - header_.begin()];
}

double Cells::number(std::string_view column) const {
  const std::string& written = text(column);
  double value = 0;
  const char* end = written.data() + written.size();
  const auto [stop, error] = std::from_chars(written.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) || value < 0)
    throw wrong(column, written, "a number, 0 or more");
  return value;
}

std::int64_t Cells::integer(std::string_view column) const {
  const double value = number(column);
  constexpr double most = 1e9;  // products of two stay below 2^63
  if (value < 1 || value > most || value != std::floor(value))
    throw wrong(column, text(column), "a whole number from 1 to 1e9");
  return static_cast<std::int64_t>(value);
}

int Cells::count(std::string_view column) const {
  const std::int64_t value = integer(column);
  if (value > std::numeric_limits<int>::max()) throw wrong(column, text(column), "a whole number below 2^31");
  return static_cast<int>(value);
}

double Cells::above_zero(std::string_view column) const {
  const double value = number(column);
  if (value > 0) return value;
  throw CellError("column " + std::string(column) + ": " + text(column) + " is not above 0");
}

double Cells::number_or(std::string_view column, double otherwise) const {
  return empty(column) ? otherwise : number(column);
}

int Cells::whole(std::string_view column) const { return number(column) == 0 ? 0 : count(column); }

bool Cells::flag(std::string_view column) const {
  const std::string& written = text(column);
  if (written == "1" || written == "true" || written == "True") return true;
  if (written == "0" || written == "false" || written == "False") return false;
  throw wrong(column, written, "0, 1, true or false");
}

}  // namespace slipway::scenarios
