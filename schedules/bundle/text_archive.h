// Tokens in lines of text. One description of a struct's fields serves for writing and for reading:
//
//   void fields(auto& archive, Is<Work> auto& work) { archive(work.kind, work.stage, work.suffix); }
//
// A writer prints the tokens, a reader fills them, so the two cannot drift apart. Integers and enums are decimal,
// doubles have 17 significant digits (exact), strings are quoted. A fingerprint takes all of them but doubles.
// Guarded by tests/schedules/bundle_test.cpp.
#pragma once

#include <bit>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "models/namespaces.h"

namespace slipway::schedules {

template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

// The largest value of an enumeration. Whoever archives one specialises this.
template <typename Enum>
constexpr Enum last_value = Enum::not_specialised;

// Appends to `text`.
class TextWriter {
 public:
  static constexpr bool reads = false;
  std::string text;

  void line(std::string_view keyword) {
    if (!text.empty()) text += '\n';
    text += keyword;
  }
  template <typename... T>
  void operator()(const T&... values) {
    (write(values), ...);
  }
  // A counted list, one item after another.
  template <typename List, typename Visit>
  void list(List& items, Visit visit) {
    write(items.size());
    for (auto& item : items) visit(item);
  }

 private:
  template <typename T>
  void write(const T& value) {
    text += ' ';
    if constexpr (std::is_same_v<T, std::string>) {
      text += '"';
      for (const char c : value) {
        if (c == '"' || c == '\\') text += '\\';
        text += c;
      }
      text += '"';
    } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
      text += std::to_string(static_cast<int>(value));
    } else {
      char digits[40];
      char* end = digits + sizeof digits;
      if constexpr (std::is_floating_point_v<T>)
        end = std::to_chars(digits, end, value, std::chars_format::general, 17).ptr;
      else
        end = std::to_chars(digits, end, value).ptr;
      text.append(digits, end);
    }
  }
};

// Reads what TextWriter wrote. Throws std::runtime_error "name:line: what is wrong".
class TextReader {
 public:
  static constexpr bool reads = true;
  TextReader(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {}

  void line(std::string_view keyword) {
    const std::string_view found = token();
    if (found != keyword) fail("expected \"" + std::string(keyword) + "\", found \"" + std::string(found) + "\"");
  }
  template <typename... T>
  void operator()(T&... values) {
    (read(values), ...);
  }
  template <typename List, typename Visit>
  void list(List& items, Visit visit) {
    std::uint64_t count = 0;
    read(count);
    // Every item takes at least two characters. A larger count is damage, not a reason to allocate. Room is made item by
    // item, because an item of the file may be far smaller than in memory.
    if (count > rest_.size() / 2)
      fail("a list of " + std::to_string(count) + " items in " + std::to_string(rest_.size()) + " characters");
    items.clear();
    for (std::uint64_t i = 0; i < count; ++i) visit(items.emplace_back());
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(name_ + ":" + std::to_string(line_) + ": " + what);
  }

 private:
  void skip_space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) {
      line_ += rest_.front() == '\n';
      rest_.remove_prefix(1);
    }
  }
  std::string_view token() {
    skip_space();
    if (rest_.empty()) fail("the file ends too early");
    const std::string_view found = rest_.substr(0, rest_.find_first_of(" \n"));
    rest_.remove_prefix(found.size());
    return found;
  }
  void read(std::string& value) {
    skip_space();
    if (rest_.empty() || rest_.front() != '"') fail("expected a quoted string");
    value.clear();
    std::size_t i = 1;
    for (; i < rest_.size() && rest_[i] != '"'; ++i) {
      if (rest_[i] == '\\') ++i;
      if (i < rest_.size()) value += rest_[i];
    }
    if (i >= rest_.size()) fail("the file ends inside a string");
    rest_.remove_prefix(i + 1);
  }
  template <typename T>
  void read(T& value) {
    if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
      std::uint8_t number = 0;
      read(number);
      if (number > static_cast<std::uint8_t>(last_value<T>))
        fail(std::to_string(number) + " is no value of its enumeration");
      value = static_cast<T>(number);
    } else {
      const std::string_view found = token();
      const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
      if (error != std::errc() || end != found.data() + found.size())
        fail("\"" + std::string(found) + "\" is not a number that fits");
    }
  }

  std::string_view rest_;
  std::string name_;
  int line_ = 1;
};

// A number that follows from the tokens. Doubles are left out, because another compiler may round them otherwise.
class Fingerprint {
 public:
  static constexpr bool reads = false;
  std::uint64_t value = 14695981039346656037ull;

  void line(std::string_view) {}
  template <typename... T>
  void operator()(const T&... values) {
    (add(values), ...);
  }
  template <typename List, typename Visit>
  void list(List& items, Visit visit) {
    add(std::size(items));
    for (auto& item : items) visit(item);
  }

 private:
  template <typename T>
  void add(const T& token) {
    if constexpr (std::is_same_v<T, std::string>) {
      add(token.size());
      for (const char c : token) add(c);
    } else if constexpr (!std::is_floating_point_v<T>) {
      value = std::rotl(value ^ static_cast<std::uint64_t>(token), 23) * 0x9E3779B97F4A7C15ull;
    }
  }
};

}  // namespace slipway::schedules
