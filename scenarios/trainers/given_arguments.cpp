#include "scenarios/trainers/given_arguments.h"

#include <cctype>

namespace slipway::scenarios {

std::string Argument::text() const {
  std::string text = "--" + name;
  for (const std::string& value : values) text += " " + value;
  return text;
}

namespace {

bool is_name(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  return true;
}

// Characters of a text with its variables replaced: a script may double a variable line by line.
constexpr std::size_t most_characters = 1 << 20;
constexpr int most_nested = 16;  // ${A:-${B:-...}}

}  // namespace

std::size_t variable_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (std::isalnum(static_cast<unsigned char>(text[length])) != 0 || text[length] == '_'))
    ++length;
  return is_name(text.substr(0, length)) ? length : 0;
}

VariableUse variable_at(std::string_view text) {
  if (text.size() < 2 || text[0] != '$') return {};
  if (text[1] != '{') {
    const std::size_t length = variable_length(text.substr(1));
    return {std::string(text.substr(1, length)), std::nullopt, length == 0 ? 0 : length + 1};
  }
  int depth = 0;
  std::size_t end = 1;
  for (; end < text.size() && depth <= most_nested; ++end) {
    if (text[end] == '{') ++depth;
    if (text[end] == '}' && --depth == 0) break;
  }
  if (end == text.size() || depth != 0) return {};
  const std::string_view inside = text.substr(2, end - 2);
  const std::size_t length = variable_length(inside);
  if (length == 0) return {};
  VariableUse found{std::string(inside.substr(0, length)), std::nullopt, end + 1};
  std::string_view rest = inside.substr(length);
  if (rest == "[@]" || rest == "[*]") rest = {};
  if (rest.starts_with(":")) rest.remove_prefix(1);
  if (rest.starts_with("-") || rest.starts_with("=")) found.otherwise = std::string(rest.substr(1));
  return found;
}

std::string with_variables(const std::string& text, const Variables& variables) {
  std::string out;
  for (std::size_t at = 0; at < text.size() && out.size() < most_characters;) {
    const VariableUse found = variable_at(std::string_view(text).substr(at));
    if (found.length == 0) {
      out += text[at++];
      continue;
    }
    const auto value = variables.find(found.name);
    if (value != variables.end())
      out += value->second;
    else if (found.otherwise)
      out += with_variables(*found.otherwise, variables);
    else
      out += text.substr(at, found.length);
    at += found.length;
  }
  return out;
}

std::string unset_variable(const std::string& text) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if (const VariableUse found = variable_at(std::string_view(text).substr(at)); found.length > 0) return found.name;
  return "";
}

}  // namespace slipway::scenarios
