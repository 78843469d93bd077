// A YAML (or JSON) file as a plain tree in which every key and value knows where it came from, so that
// each error can name file and line, also for values that arrived through --set.
//
//   layout:            map ── "layout" (line 1) ── map ── "tensor" (line 2) ── scalar "8" (line 2)
//     tensor: 8
//
// Everything after this file works on Value; yaml-cpp stays in document.cpp. Nothing is interpreted
// here: a scalar keeps its text, and the table of keys (keys.h) defines what it must be.
// Guarded by tests/scenarios/document_test.cpp: lines, duplicate keys, syntax errors, round trip of to_yaml.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

using Defects = std::vector<ScenarioError>;

struct Origin {
  std::string file;  // path, or "--set layout.tensor=8"
  int line = 0;      // 1-based; 0 = no lines there (--set, unreadable file)
};

struct Entry;

struct Value {
  enum class Kind : std::uint8_t { nothing, scalar, list, map };
  Kind kind = Kind::nothing;
  Origin origin;
  std::string text;            // scalar
  bool quoted = false;         // scalar was written in quotes
  std::vector<Value> items;    // list
  std::vector<Entry> entries;  // map, in file order

  const Value* find(std::string_view key) const;  // nullptr when absent or not a map
  Value* find(std::string_view key);
};

struct Entry {
  std::string key;
  Origin origin;
  Value value;
};

Value scalar(std::string text, Origin origin);
// "a map", "a list", "'four'", "nothing": how an error names what it found.
std::string in_words(const Value& value);

// Parses one document. Syntax errors, a second document, duplicate keys, nesting beyond 64 levels and more than
// 200,000 values or 64 MB of text are added to `defects`; empty when nothing usable was read.
std::optional<Value> parse_document(const std::string& text, const std::string& file, Defects& defects);
// The same for a file; `key` names who asked for it in the error of an unreadable file, `from` where.
std::optional<Value> read_document(const std::string& path, const Origin& from, const std::string& key,
                                   Defects& defects);

// YAML text that parses to the same tree: block style, or all on one line in flow style.
std::string to_yaml(const Value& value);
std::string to_one_line(const Value& value);

}  // namespace slipway::scenarios
