#include <toml++/toml.h>

#include "scenarios/language/quantity.h"
#include "scenarios/trainers/toml_arguments.h"

namespace slipway::scenarios {

namespace {

std::string plain(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* number = node.as_floating_point()) return number_text(number->get());
  return "";
}

void flatten(const toml::node& node, const std::string& path, const std::string& file, std::vector<Argument>& list) {
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table)
      flatten(value, path.empty() ? std::string(key.str()) : path + "." + std::string(key.str()), file, list);
    return;
  }
  Argument argument{path, {}, {file, static_cast<int>(node.source().begin.line)}};
  if (const toml::array* items = node.as_array()) {
    for (const toml::node& item : *items) argument.values.push_back(plain(item));
    if (items->empty()) return;
  } else {
    argument.values.push_back(plain(node));
  }
  list.push_back(std::move(argument));
}

}  // namespace

std::vector<Argument> toml_arguments(const std::string& path, Defects& defects) {
  std::vector<Argument> list;
  try {
    flatten(toml::parse_file(path), "", path, list);
  } catch (const toml::parse_error& error) {
    defects.push_back({path, static_cast<int>(error.source().begin.line), "",
                       "this is not valid TOML: " + std::string(error.description()), "correct the file"});
  }
  return list;
}

}  // namespace slipway::scenarios
