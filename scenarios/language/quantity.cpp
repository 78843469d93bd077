#include "scenarios/language/quantity.h"

#include <charconv>
#include <cmath>
#include <span>

namespace slipway::scenarios {
namespace {

// A value times factor / divisor: dividing by 1e6 rounds "3 us" to the same double as 3e-6.
struct Symbol {
  std::string_view text;
  double factor;
  double divisor = 1;
};

constexpr Symbol none_symbols[] = {{"", 1}};
constexpr Symbol byte_symbols[] = {{"", 1}, {"B", 1}};
constexpr Symbol rate_symbols[] = {{"", 1}, {"B/s", 1}, {"bit/s", 1, 8}};
constexpr Symbol flop_symbols[] = {{"", 1}, {"FLOP/s", 1}};
constexpr Symbol time_symbols[] = {{"", 1},        {"s", 1},    {"ms", 1, 1e3}, {"us", 1, 1e6},
                                   {"ns", 1, 1e9}, {"min", 60}, {"h", hour_s},  {"days", day_s}};
constexpr Symbol token_symbols[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
constexpr Symbol prefixes[] = {
    {"", 1},     {"k", 1e3},     {"M", 1e6},        {"G", 1e9},           {"T", 1e12},
    {"P", 1e15}, {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"Ti", 1099511627776.0}};

std::span<const Symbol> symbols_of(Unit unit) {
  switch (unit) {
    case Unit::pure:
      return none_symbols;
    case Unit::bytes:
      return byte_symbols;
    case Unit::bytes_per_second:
      return rate_symbols;
    case Unit::flops:
      return flop_symbols;
    case Unit::seconds:
      return time_symbols;
    case Unit::tokens:
      return token_symbols;
  }
  return none_symbols;
}

bool takes_prefix(Unit unit) { return unit == Unit::bytes || unit == Unit::bytes_per_second || unit == Unit::flops; }

// The meaning of "GB/s" and the like; empty for anything else than a unit of this kind.
std::optional<Symbol> symbol_named(std::string_view suffix, Unit unit) {
  for (const Symbol& symbol : symbols_of(unit)) {
    if (suffix == symbol.text) return symbol;
    if (symbol.text.empty() || !takes_prefix(unit)) continue;
    for (const Symbol& prefix : prefixes)
      if (suffix.size() == prefix.text.size() + symbol.text.size() && suffix.starts_with(prefix.text) &&
          suffix.ends_with(symbol.text))
        return Symbol{suffix, prefix.factor * symbol.factor, symbol.divisor};
  }
  return std::nullopt;
}

// std::from_chars refuses a leading '+', which people write.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

}  // namespace

std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::pure:
      return "";
    case Unit::bytes:
      return "bytes";
    case Unit::bytes_per_second:
      return "bytes/s";
    case Unit::flops:
      return "FLOP/s";
    case Unit::seconds:
      return "s";
    case Unit::tokens:
      return "tokens";
  }
  return "";
}

std::string_view examples_of(Unit unit) {
  switch (unit) {
    case Unit::pure:
      return "a number such as 0.5 or 1e-4";
    case Unit::bytes:
      return "'80 GB', '80 GiB' or a plain number of bytes";
    case Unit::bytes_per_second:
      return "'450 GB/s', '400 Gbit/s' or a plain number of bytes/s";
    case Unit::flops:
      return "'989 TFLOP/s' or a plain number of FLOP/s";
    case Unit::seconds:
      return "'2 us', '1.5 ms', '3 h' or a plain number of seconds";
    case Unit::tokens:
      return "'15 T', '300 G' or a plain number of tokens";
  }
  return "";
}

std::optional<double> quantity(std::string_view text, Unit unit) {
  text = without_plus(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
  const std::optional<Symbol> symbol = symbol_named(suffix, unit);
  if (!symbol) return std::nullopt;
  const double value = number * symbol->factor / symbol->divisor;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  text = without_plus(text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string number_text(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : std::string("nan");
}

}  // namespace slipway::scenarios
