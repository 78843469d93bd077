// The tree's small operations and its text form.
#include "scenarios/language/document.h"

namespace slipway {
namespace {

bool plain(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text.front() == ' ' || text.back() == ' ')
    return false;
  const std::string_view start = "-?!&*|>%@`'\"#:";
  if (start.find(text.front()) != std::string_view::npos &&
      !(text.front() == '-' && text.size() > 1 && text[1] != ' '))
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

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(static_cast<const Value*>(this)->find(key));
}

Value scalar(std::string text, Origin origin) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = std::move(text);
  value.origin = std::move(origin);
  return value;
}

namespace {

// A file of another kind is often one value of megabytes.
std::string shortened(const std::string& text) {
  constexpr std::size_t most = 120;
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // inside a character of UTF-8
  return text.substr(0, end) + "...";
}

}  // namespace

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

}  // namespace slipway
