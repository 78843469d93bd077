#include "scenarios/language/document.h"

#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "scenarios/input_file.h"

namespace slipway {
namespace {

constexpr int max_depth = 64;
// Aliases (*name) are copied; this bounds what a small file can grow to.
constexpr std::size_t max_values = 200'000;

struct Reading {
  std::string file;
  Defects& defects;
  std::size_t values = 0;
  bool too_large = false;
};

Origin origin_of(const YAML::Mark& mark, const Reading& reading, const Origin& parent) {
  if (mark.is_null()) return parent;
  return {reading.file, mark.line + 1};
}

Value convert(const YAML::Node& node, Reading& reading, const Origin& parent, const std::string& path,
              int depth);

void convert_map(const YAML::Node& node, Reading& reading, const std::string& path, int depth, Value& map) {
  map.kind = Value::Kind::map;
  std::set<std::string> seen;
  for (const auto& item : node) {
    const Origin origin = origin_of(item.first.Mark(), reading, map.origin);
    if (!item.first.IsScalar()) {
      reading.defects.push_back({reading.file, origin.line, path.empty() ? "(top level)" : path,
                                 "a key must be a plain word", "write 'key: value'"});
      continue;
    }
    const std::string key = item.first.Scalar();
    const std::string full = path.empty() ? key : path + "." + key;
    if (!seen.insert(key).second) {
      const int first = map.find(key)->origin.line;
      reading.defects.push_back(
          {reading.file, origin.line, full,
           "the key is given twice, first on line " + std::to_string(first) + "; allowed: each key once",
           "remove one of the two"});
      continue;
    }
    Value value = convert(item.second, reading, origin, full, depth + 1);
    // yaml-cpp marks a block map at its first item; its errors belong to the line that names it.
    if (value.kind == Value::Kind::map || value.kind == Value::Kind::list) value.origin = origin;
    map.entries.push_back({key, origin, std::move(value)});
  }
}

Value convert(const YAML::Node& node, Reading& reading, const Origin& parent, const std::string& path,
              int depth) {
  Value value;
  value.origin = origin_of(node.Mark(), reading, parent);
  if (++reading.values > max_values || depth > max_depth) {
    reading.too_large = true;
    return value;
  }
  if (node.IsScalar()) {
    value.kind = Value::Kind::scalar;
    value.text = node.Scalar();
    value.quoted = node.Tag() == "!";
  } else if (node.IsSequence()) {
    value.kind = Value::Kind::list;
    for (std::size_t i = 0; i < node.size() && !reading.too_large; ++i)
      value.items.push_back(
          convert(node[i], reading, value.origin, path + "." + std::to_string(i), depth + 1));
  } else if (node.IsMap()) {
    convert_map(node, reading, path, depth, value);
  } else {
    value.origin = parent;  // an empty value has the line of its key
  }
  return value;
}

}  // namespace

std::optional<Value> parse_document(const std::string& text, const std::string& file, Defects& defects) {
  const auto refuse = [&](int line, const std::string& message, const std::string& remedy) {
    defects.push_back({file, line, "", message, remedy});
    return std::nullopt;
  };
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty() || documents[0].IsNull())
      return refuse(1, "the file is empty", "write at least the required keys (see slipway list keys)");
    if (documents.size() > 1)
      return refuse(1,
                    "the file holds " + std::to_string(documents.size()) + " YAML documents; allowed: one",
                    "keep one and remove the '---' lines");
    Reading reading{file, defects};
    Value root = convert(documents[0], reading, {file, 1}, "", 0);
    if (reading.too_large)
      return refuse(1, "the file is nested deeper than 64 levels or holds more than 200000 values",
                    "remove aliases (*name) that refer to themselves or multiply");
    return root;
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    return refuse(line, "this is not valid YAML: " + error.msg,
                  "check indentation, colons, brackets and quotes here");
  }
}

std::optional<Value> read_document(const std::string& path, const Origin& from, const std::string& key,
                                   Defects& defects) {
  const auto refuse = [&](const std::string& reason) {
    defects.push_back({from.file, from.line, key, "cannot read '" + path + "': " + reason,
                       "give the path of a readable file"});
    return std::nullopt;
  };
  if (const std::string reason = unreadable(path); !reason.empty()) return refuse(reason);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return refuse(std::strerror(errno != 0 ? errno : EIO));
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) return refuse("reading failed");
  return parse_document(text.str(), path, defects);
}

}  // namespace slipway
