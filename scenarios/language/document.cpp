#include "scenarios/language/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "scenarios/files/files.h"
#include "scenarios/language/settings.h"

namespace slipway::scenarios {

namespace {

constexpr int max_depth = 64;
// Aliases (*name) are copied; these bound what a small file can grow to.
constexpr std::size_t max_values = 200'000;
constexpr std::size_t max_text = 64'000'000;  // bytes of all keys and values
constexpr std::size_t max_defects = 100;      // more help nobody

// A file of another kind is often one value of megabytes.
std::string shortened(const std::string& text) {
  constexpr std::size_t most = 120;
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // inside a character of UTF-8
  return text.substr(0, end) + "...";
}

struct Reading {
  std::string file;
  Defects& defects;
  std::size_t values = 0, text = 0;
  bool too_large = false;
  std::vector<std::string> path = {};  // keys and places in lists that lead to the value at hand

  // Counts a text that is copied.
  void take(const std::string& copied) { too_large = (text += copied.size()) > max_text || too_large; }
  void refuse(int line, const std::string& message, const std::string& remedy) {
    std::string key;
    for (const std::string& part : path) key += (key.empty() ? "" : ".") + part;
    if (defects.size() < max_defects)
      defects.push_back({file, line, key.empty() ? "(top level)" : shortened(key), message, remedy});
  }
};

Origin origin_of(const YAML::Mark& mark, const Reading& reading, const Origin& parent) {
  if (mark.is_null()) return parent;
  return {reading.file, mark.line + 1};
}

Value convert(const YAML::Node& node, Reading& reading, const Origin& parent, int depth);

void convert_map(const YAML::Node& node, Reading& reading, int depth, Value& map) {
  map.kind = Value::Kind::map;
  std::map<std::string, int, std::less<>> line_of;
  for (const auto& item : node) {
    if (reading.too_large) return;
    const Origin origin = origin_of(item.first.Mark(), reading, map.origin);
    if (!item.first.IsScalar()) {
      reading.refuse(origin.line, "a key must be a plain word", "write 'key: value'");
      continue;
    }
    const std::string& key = item.first.Scalar();
    reading.take(key);
    reading.path.push_back(shortened(key));
    const auto [known, is_new] = line_of.try_emplace(key, origin.line);
    if (is_new) {
      Value value = convert(item.second, reading, origin, depth + 1);
      // yaml-cpp marks a block map at its first item; its errors belong to the line that names it.
      if (value.kind == Value::Kind::map || value.kind == Value::Kind::list) value.origin = origin;
      map.entries.push_back({key, origin, std::move(value)});
    } else {
      reading.refuse(
          origin.line,
          "the key is given twice, first on line " + std::to_string(known->second) + "; allowed: each key once",
          "remove one of the two");
    }
    reading.path.pop_back();
  }
}

Value convert(const YAML::Node& node, Reading& reading, const Origin& parent, int depth) {
  Value value;
  value.origin = origin_of(node.Mark(), reading, parent);
  if (++reading.values > max_values || depth > max_depth) reading.too_large = true;
  if (node.IsScalar()) reading.take(node.Scalar());
  if (reading.too_large) return value;
  if (node.IsScalar()) {
    value.kind = Value::Kind::scalar;
    value.text = node.Scalar();
    value.quoted = node.Tag() == "!";
  } else if (node.IsSequence()) {
    value.kind = Value::Kind::list;
    for (std::size_t i = 0; i < node.size() && !reading.too_large; ++i) {
      reading.path.push_back(std::to_string(i));
      value.items.push_back(convert(node[i], reading, value.origin, depth + 1));
      reading.path.pop_back();
    }
  } else if (node.IsMap()) {
    convert_map(node, reading, depth, value);
  } else {
    value.origin = parent;  // an empty value has the line of its key
  }
  return value;
}

// Takes nothing of what it is told.
class Deaf : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Only after such a marker can a second one begin. Does not ask for a third: of some broken texts yaml-cpp finds documents without end.
bool has_two_documents(const std::string& text) {
  if (text.find("---") == std::string::npos && text.find("...") == std::string::npos) return false;
  std::istringstream in(text);
  YAML::Parser parser(in);
  Deaf deaf;
  return parser.HandleNextDocument(deaf) && parser.HandleNextDocument(deaf);
}

}  // namespace

std::optional<Value> parse_document(const std::string& text, const std::string& file, Defects& defects) {
  const auto refuse = [&](int line, const std::string& message, const std::string& remedy) {
    defects.push_back({file, line, "", message, remedy});
    return std::nullopt;
  };
  try {
    const YAML::Node document = YAML::Load(text);
    if (document.IsNull())
      return refuse(1, "the file is empty", "write at least the required keys (see slipway list keys)");
    if (has_two_documents(text))
      return refuse(1, "the file holds several YAML documents; allowed: one", "keep one and remove the '---' lines");
    Reading reading{file, defects};
    Value root = convert(document, reading, {file, 1}, 0);
    if (reading.too_large)
      return refuse(1, "the file is nested deeper than 64 levels, or holds more than 200000 values or 64 MB of text",
                    "remove aliases (*name) that refer to themselves or multiply");
    return root;
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    return refuse(line, "this is not valid YAML: " + error.msg, "check indentation, colons, brackets and quotes here");
  }
}

std::optional<Value> read_document(const std::string& path, const Origin& from, const std::string& key,
                                   Defects& defects) {
  const auto refuse = [&](const std::string& reason) {
    defects.push_back(
        {from.file, from.line, key, "cannot read '" + path + "': " + reason, "give the path of a readable file"});
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

// The tree's small operations and its text form.

namespace {

bool plain(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text.front() == ' ' || text.back() == ' ') return false;
  const std::string_view start = "-?!&*|>%@`'\"#:";
  if (start.find(text.front()) != std::string_view::npos && !(text.front() == '-' && text.size() > 1 && text[1] != ' '))
    return false;
  for (const char c : text) {
    const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!word && std::string_view("_./+-() ").find(c) == std::string_view::npos) return false;
  }
  return true;
}

std::string written(const Value& value) {
  if (value.kind == Value::Kind::nothing) return "null";
  if (!value.quoted && plain(value.text)) return value.text;
  std::string out = "\"";
  for (const char c : value.text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else
      out += c;
  }
  return out + "\"";
}

std::string key_text(const std::string& key) { return written(scalar(key, {})); }

bool holds_only_scalars(const Value& value) {
  for (const Value& item : value.items)
    if (item.kind == Value::Kind::list || item.kind == Value::Kind::map) return false;
  return true;
}

void write_block(const Value& value, const std::string& indent, std::string& out) {
  if (value.kind == Value::Kind::map) {
    for (const Entry& entry : value.entries) {
      const bool nested = (entry.value.kind == Value::Kind::map && !entry.value.entries.empty()) ||
                          (entry.value.kind == Value::Kind::list && !holds_only_scalars(entry.value));
      out += indent + key_text(entry.key) + ":";
      if (nested) {
        out += "\n";
        write_block(entry.value, indent + "  ", out);
      } else {
        out += " " + to_one_line(entry.value) + "\n";
      }
    }
  } else if (value.kind == Value::Kind::list) {
    for (const Value& item : value.items) out += indent + "- " + to_one_line(item) + "\n";
  } else {
    out += indent + written(value) + "\n";
  }
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (const Entry& entry : entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

Value* Value::find(std::string_view key) { return const_cast<Value*>(static_cast<const Value*>(this)->find(key)); }

Value scalar(std::string text, Origin origin) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = std::move(text);
  value.origin = std::move(origin);
  return value;
}

std::string in_words(const Value& value) {
  switch (value.kind) {
    case Value::Kind::nothing:
      return "nothing";
    case Value::Kind::scalar:
      return "'" + shortened(value.text) + "'";
    case Value::Kind::list:
      return "a list";
    case Value::Kind::map:
      return "a map";
  }
  return "";
}

std::string to_yaml(const Value& value) {
  std::string out;
  write_block(value, "", out);
  return out;
}

std::string to_one_line(const Value& value) {
  std::string out;
  if (value.kind == Value::Kind::map) {
    for (const Entry& entry : value.entries)
      out += (out.empty() ? "" : ", ") + key_text(entry.key) + ": " + to_one_line(entry.value);
    return "{" + out + "}";
  }
  if (value.kind == Value::Kind::list) {
    for (const Value& item : value.items) out += (out.empty() ? "" : ", ") + to_one_line(item);
    return "[" + out + "]";
  }
  return written(value);
}

// --set key=value, and the short forms of sections.

namespace {

void set_origin(Value& value, const Origin& origin) {
  value.origin = origin;
  for (Value& item : value.items) set_origin(item, origin);
  for (Entry& entry : value.entries) {
    entry.origin = origin;
    set_origin(entry.value, origin);
  }
}

void expand(Value& value, const Key& key) {
  if (key.shorthand.empty() || value.kind != Value::Kind::scalar) return;
  // "model: ./config.json" is a path, "model: llama-3.1-8b" a name.
  const bool path = key.path == "model" && looks_like_path(value.text);
  Value map;
  map.kind = Value::Kind::map;
  map.origin = value.origin;
  map.entries.push_back({path ? "config" : std::string(key.shorthand), value.origin, value});
  value = std::move(map);
}

struct Option {
  std::string key, text;
  Origin origin;
};

void refuse(const Option& option, const std::string& message, const std::string& remedy, Defects& defects) {
  defects.push_back({option.origin.file, 0, option.key, message, remedy});
}

// The item of a list that an index names; nullptr after an error.
Value* item_at(Value& list, const std::string& part, const std::string& path, const Option& option, Defects& defects) {
  const std::optional<std::int64_t> index = whole_number(part);
  if (index && *index >= 0 && static_cast<std::size_t>(*index) < list.items.size()) return &list.items[*index];
  refuse(option,
         "'" + part + "' is no item of " + path + "; allowed: 0 to " + std::to_string(list.items.size()) + " - 1",
         "count the items from 0", defects);
  return nullptr;
}

// Takes the key out again: what "key=" and "key=null" mean.
void unset(Value& document, std::string_view key) {
  Value* at = &document;
  while (at != nullptr && key.find('.') != std::string_view::npos) {
    const std::string_view part = key.substr(0, key.find('.'));
    if (at->kind == Value::Kind::list) {
      const std::optional<std::int64_t> index = whole_number(part);
      at = index ? &at->items[*index] : nullptr;
    } else {
      at = at->find(part);
    }
    key.remove_prefix(part.size() + 1);
  }
  if (at != nullptr) std::erase_if(at->entries, [&](const Entry& entry) { return entry.key == key; });
}

// Does the option name an item of a list that has none? A list is given as one value.
bool names_item_of_nothing(const Value& at, const std::string& path, const std::string& part,
                           std::span<const Key> table) {
  const Key* key = key_of(table, path);
  const bool nothing = at.items.empty() && at.entries.empty() && at.text.empty();
  return key != nullptr && key->type == KeyType::sections && nothing && whole_number(part).has_value();
}

// The place that option.key names, made where it does not exist; nullptr after an error.
Value* place_of_key(Value& document, const Option& option, std::span<const Key> table, Defects& defects) {
  Value* at = &document;
  std::string path, rest = option.key;
  while (!rest.empty()) {
    const std::string part = rest.substr(0, rest.find('.'));
    rest.erase(0, std::min(rest.size(), part.size() + 1));
    if (names_item_of_nothing(*at, path, part, table)) {
      const std::string item = rest.empty() ? "{...}" : "{" + rest + ": " + option.text + "}";
      refuse(option, path + " has no items yet", "give the list, for example --set '" + path + "=[" + item + "]'",
             defects);
      unset(document, path);  // an empty one would be a second mistake
      return nullptr;
    }
    if (at->kind == Value::Kind::list) {
      at = item_at(*at, part, path, option, defects);
      if (at == nullptr) return nullptr;
    } else if (at->kind == Value::Kind::scalar) {
      refuse(option, path + " is a plain value and has no keys below it", "set " + path + " itself", defects);
      return nullptr;
    } else {
      at->kind = Value::Kind::map;
      if (at->find(part) == nullptr) {
        at->entries.push_back({part, option.origin, Value{}});
        at->entries.back().value.origin = option.origin;
      }
      at = at->find(part);
    }
    path += (path.empty() ? "" : ".") + part;
    if (const Key* key = key_of(table, path); key != nullptr && !rest.empty()) expand(*at, *key);
  }
  return at;
}

// A path typed at the prompt is meant from where the user stands, not from where the scenario lies.
void anchor(Value& value, std::span<const Key> table, const std::string& path) {
  const Key* key = key_of(table, path);
  const bool file = key != nullptr && key->names_file && value.kind == Value::Kind::scalar &&
                    value.origin.file.starts_with("--set ") && !value.text.empty();
  if (file && (!key->built_in || looks_like_path(value.text)))
    value.text = std::filesystem::absolute(value.text).lexically_normal().string();
  for (std::size_t i = 0; i < value.items.size(); ++i) anchor(value.items[i], table, path + "." + std::to_string(i));
  for (Entry& entry : value.entries) anchor(entry.value, table, path.empty() ? entry.key : path + "." + entry.key);
}

}  // namespace

void anchor_paths(Value& document, std::span<const Key> table) { anchor(document, table, ""); }

namespace {

void expand_at(Value& value, std::string_view rest, const Key& key) {
  if (rest.empty()) return expand(value, key);
  const std::string_view part = rest.substr(0, rest.find('.'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  if (part == "*") {
    for (Value& item : value.items) expand_at(item, rest, key);
  } else if (Value* inner = value.find(part)) {
    expand_at(*inner, rest, key);
  }
}

}  // namespace

void expand_shorthands(Value& document, std::span<const Key> table) {
  for (const Key& key : table)
    if (!key.shorthand.empty()) expand_at(document, key.path, key);
}

void apply_override(const std::string& text, std::span<const Key> table, Value& document, Defects& defects) {
  const std::size_t equals = text.find('=');
  Option option{
      text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1), {"--set " + text, 0}};
  const bool empty_part = option.key.empty() || option.key.front() == '.' || option.key.back() == '.' ||
                          option.key.find("..") != std::string::npos;
  if (equals == std::string::npos || empty_part) {
    refuse(option, "this is not key=value", "write for example --set layout.tensor=4", defects);
    return;
  }
  if (option.text.find_first_not_of(' ') == std::string::npos || option.text == "null" || option.text == "~") {
    if (place_of_key(document, option, table, defects) != nullptr) unset(document, option.key);
    return;
  }
  Defects of_value;
  std::optional<Value> value = parse_document(option.text, option.origin.file, of_value);
  for (ScenarioError& defect : of_value) {
    defect.line = 0;
    defect.key = option.key + (defect.key.empty() ? "" : "." + defect.key);
    defects.push_back(defect);
  }
  if (!value) return;
  set_origin(*value, option.origin);
  if (Value* at = place_of_key(document, option, table, defects)) *at = std::move(*value);
}

}  // namespace slipway::scenarios
