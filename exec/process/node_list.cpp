#include "exec/process/node_list.h"

#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace slipway::exec {

namespace {

[[noreturn]] void malformed(std::string_view list, const std::string& why) {
  throw std::runtime_error("SLURM_NODELIST=" + std::string(list) + " cannot be read: " + why +
                           "; set MASTER_ADDR to the host of rank 0");
}

int number(std::string_view digits, std::string_view list) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value < 0) {
    malformed(list, "'" + std::string(digits) + "' is not a number");
  }
  return value;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// "01-03,07" → 01 02 03 07
std::vector<std::string> numbers_of(std::string_view group, std::string_view list) {
  std::vector<std::string> result;
  for (const std::string& range : split(group)) {
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const int low = number(first, list);
    const int high = dash == std::string::npos ? low : number(range.substr(dash + 1), list);
    if (high < low || high - low > 1000000) malformed(list, "the range " + range + " is not ascending");
    for (int value = low; value <= high; ++value) {
      const std::string digits = std::to_string(value);
      const std::size_t zeros = first.size() > digits.size() ? first.size() - digits.size() : 0;
      result.push_back(std::string(zeros, '0') + digits);
    }
  }
  return result;
}

// One entry, no comma outside of brackets.
std::vector<std::string> expand(std::string_view entry, std::string_view list) {
  std::vector<std::string> result{""};
  std::string group;
  bool inside = false;
  for (const char c : entry) {
    if (c == '[') {
      inside = true;
      group.clear();
    } else if (c == ']') {
      inside = false;
      std::vector<std::string> longer;
      for (const std::string& name : result) {
        for (const std::string& digits : numbers_of(group, list)) longer.push_back(name + digits);
      }
      result = std::move(longer);
    } else if (inside) {
      group += c;
    } else {
      for (std::string& name : result) name += c;
    }
  }
  if (inside) malformed(list, "a bracket is not closed");
  return result;
}

}  // namespace

std::vector<std::string> hosts_of_node_list(std::string_view list) {
  std::vector<std::string> hosts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') ++depth;
    if (at < list.size() && list[at] == ']') --depth;
    if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
    const std::string_view entry = list.substr(begin, at - begin);
    if (entry.empty()) malformed(list, "an entry is empty");
    for (std::string& host : expand(entry, list)) hosts.push_back(std::move(host));
    begin = at + 1;
  }
  return hosts;
}

}  // namespace slipway::exec
