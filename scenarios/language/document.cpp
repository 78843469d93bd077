#include "scenarios/language/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <utility>

#include "scenarios/files/files.h"

namespace slipway::scenarios {

namespace {

constexpr std::size_t max_depth = 64;
// Aliases (*name) are copied; these bound what a small file can grow to.
constexpr std::size_t max_values = 200'000;
constexpr std::size_t max_text = 64'000'000;  // bytes of all keys and values
constexpr std::size_t max_defects = 100;      // the rest is not read

// A file of another kind is often one value of megabytes.
std::string shortened(const std::string& text) {
  constexpr std::size_t most = 120;
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // inside a character of UTF-8
  return text.substr(0, end) + "...";
}

// Builds the tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, Defects& defects) : file_(std::move(file)), defects_(defects) {}

  // The root of the document that was read; empty if the document is.
  std::optional<Value> take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Value value;
    value.origin = parent_origin();
    end_value(std::move(value), mark, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Value value = scalar(text, {file_, mark.line + 1});
    value.quoted = tag == "!";
    end_value(std::move(value), mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchored_.find(anchor);
    if (known == anchored_.end()) throw TooLarge();  // a value that contains itself
    Value copy = known->second;
    if (!is_at_key()) count(copy, open_.size());
    end_value(std::move(copy), mark, 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin_collection(Value::Kind::list, mark, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin_collection(Value::Kind::map, mark, anchor);
  }
  void OnSequenceEnd() override { end_collection(); }
  void OnMapEnd() override { end_collection(); }

  struct TooLarge {};

 private:
  // A list or map whose end has not come.
  struct Open {
    Value value;
    YAML::anchor_t anchor = 0;
    std::map<std::string, int, std::less<>> line_of = {};  // of the keys of a map
    bool has_key = false, keeps = true;                    // of a map: the next event is a value, and is kept
    Entry entry = {};                                      // its key
  };

  bool is_at_key() const {
    return !open_.empty() && open_.back().value.kind == Value::Kind::map && !open_.back().has_key;
  }
  // The origin that an empty value, or a value without lines, gets.
  Origin parent_origin() const {
    if (open_.empty()) return {file_, 1};
    return open_.back().has_key ? open_.back().entry.origin : open_.back().value.origin;
  }

  void refuse(int line, const std::string& message, const std::string& remedy) {
    if (!std::ranges::all_of(open_, &Open::keeps) || defects_.size() >= max_defects) return;
    std::string key;
    for (const Open& open : open_) {
      const std::string part = open.value.kind == Value::Kind::list ? std::to_string(open.value.items.size())
                               : open.has_key                       ? shortened(open.entry.key)
                                                                    : "";
      if (!part.empty()) key += (key.empty() ? "" : ".") + part;
    }
    defects_.push_back({file_, line, key.empty() ? "(top level)" : shortened(key), message, remedy});
  }

  void take(const std::string& text) {
    if ((text_ += text.size()) > max_text) throw TooLarge();
  }
  // Counts a value and what it holds. `depth`: collections around it.
  void count(const Value& value, std::size_t depth) {
    if (++values_ > max_values || depth > max_depth) throw TooLarge();
    take(value.text);
    for (const Value& item : value.items) count(item, depth + 1);
    for (const Entry& entry : value.entries) take(entry.key), count(entry.value, depth + 1);
  }

  void begin_collection(Value::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    const bool at_key = is_at_key();
    if (at_key) begin_entry(nullptr, mark);
    if (++values_ > max_values || open_.size() > max_depth) throw TooLarge();
    Open& open = open_.emplace_back();
    open.value.kind = kind;
    open.value.origin = {file_, mark.line + 1};
    open.anchor = anchor;
    if (at_key && is_key_ == 0) is_key_ = open_.size();
  }

  void end_collection() {
    Open open = std::move(open_.back());
    open_.pop_back();
    if (is_key_ > 0 && open_.size() + 1 == is_key_) {  // a list or map in the place of a key: refused when it began
      is_key_ = 0;
      return;
    }
    if (open.anchor != 0) anchored_[open.anchor] = open.value;
    place(std::move(open.value));
  }

  // A scalar, an empty value or an alias.
  void end_value(Value value, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) anchored_[anchor] = value;
    if (is_at_key()) {
      begin_entry(value.kind == Value::Kind::scalar ? &value.text : nullptr, mark);
      return;
    }
    if (value.kind == Value::Kind::scalar || value.kind == Value::Kind::nothing) count(value, open_.size());
    place(std::move(value));
  }

  // `key`: nullptr where it is no plain word.
  void begin_entry(const std::string* key, const YAML::Mark& mark) {
    Open& map = open_.back();
    const Origin origin{file_, mark.line + 1};
    if (key == nullptr) {
      refuse(origin.line, "a key must be a plain word", "write 'key: value'");
      map.entry = {"", origin, {}};
      map.keeps = false;
    } else {
      take(*key);
      map.entry = {*key, origin, {}};
      const auto [known, is_new] = map.line_of.try_emplace(*key, origin.line);
      map.has_key = true;  // its path is that of the key
      if (!is_new)
        refuse(origin.line,
               "the key is given twice, first on line " + std::to_string(known->second) + "; allowed: each key once",
               "remove one of the two");
      map.keeps = is_new;
    }
    map.has_key = true;
  }

  // Puts a value where it belongs.
  void place(Value value) {
    if (open_.empty()) {
      if (value.kind != Value::Kind::nothing) root_ = std::move(value);
      return;
    }
    Open& in = open_.back();
    if (in.value.kind == Value::Kind::list) {
      in.value.items.push_back(std::move(value));
      return;
    }
    // yaml-cpp marks a block map at its first item; its errors belong to the line that names it.
    if (value.kind == Value::Kind::map || value.kind == Value::Kind::list) value.origin = in.entry.origin;
    in.entry.value = std::move(value);
    if (in.keeps) in.value.entries.push_back(std::move(in.entry));
    in.has_key = false, in.keeps = true;
  }

  std::string file_;
  Defects& defects_;
  std::optional<Value> root_;
  std::vector<Open> open_;
  std::size_t is_key_ = 0;  // number of open collections with the one that stands in the place of a key; 0: none
  std::map<YAML::anchor_t, Value> anchored_;
  std::size_t values_ = 0, text_ = 0;
};

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

std::optional<Value> parse_document(const std::string& text, const std::string& file, Defects& defects) {
  const auto refuse = [&](int line, const std::string& message, const std::string& remedy) {
    defects.push_back({file, line, "", message, remedy});
    return std::nullopt;
  };
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    Defects found;
    TreeBuilder tree(file, found);
    if (!parser.HandleNextDocument(tree))
      return refuse(1, "the file is empty", "write at least the required keys (see slipway list keys)");
    std::optional<Value> root = tree.take_root();
    if (!root) return refuse(1, "the file is empty", "write at least the required keys (see slipway list keys)");
    // Stops at two: on some malformed input yaml-cpp reports documents forever.
    if (TreeBuilder second(file, found); parser.HandleNextDocument(second))
      return refuse(1, "the file holds several YAML documents; allowed: one", "keep one and remove the '---' lines");
    defects.insert(defects.end(), found.begin(), found.end());
    return root;
  } catch (const TreeBuilder::TooLarge&) {
    return refuse(1, "the file is nested deeper than 64 levels, or holds more than 200000 values or 64 MB of text",
                  "remove aliases (*name) that refer to themselves or multiply");
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

}  // namespace slipway::scenarios
