// The reader of plain YAML gives the trees and lines that yaml-cpp gives, or leaves the text to it.
#include "scenarios/language/plain_yaml.h"

#include <gtest/gtest.h>

#include <random>

#include "scenarios/language/document.h"
#include "tests/support/source_tree.h"

namespace slipway::test {
namespace {

// Everything that a tree says, with its lines.
std::string in_full(const Value& value) {
  std::string text = std::to_string(static_cast<int>(value.kind)) + (value.quoted ? "q" : "") + "@" +
                     value.origin.file + ":" + std::to_string(value.origin.line) + " '" + value.text + "'";
  for (const Value& item : value.items) text += " [" + in_full(item) + "]";
  for (const Entry& entry : value.entries)
    text += " {" + entry.key + "@" + std::to_string(entry.origin.line) + ": " + in_full(entry.value) + "}";
  return text;
}

std::string read_by(decltype(parse_document)& parse, const std::string& text) {
  Defects defects;
  const std::optional<Value> value = parse(text, "a.yaml", defects);
  return (value ? in_full(*value) : "nothing") + "\n" + describe(defects);
}

class Events : public YAML::EventHandler {
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

bool is_plain(const std::string& text) {
  Events events;
  return read_plain_yaml(text, events);
}

std::vector<std::string> texts_of_the_tree() {
  std::vector<std::string> texts;
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".yaml")) continue;
    std::string text;
    for (const std::string& line : file.lines) text += line + "\n";
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(PlainYaml, GivesTheTreesOfYamlCppForEveryFileOfTheSourceTree) {
  std::size_t files = 0, plain = 0;
  for (const std::string& text : texts_of_the_tree()) {
    EXPECT_EQ(read_by(parse_document, text), read_by(parse_by_yaml_cpp, text)) << text.substr(0, 200);
    ++files, plain += is_plain(text);
  }
  EXPECT_GT(files, 100U);
  EXPECT_GT(plain, files * 8 / 10);
}

TEST(PlainYaml, GivesTheTreesOfYamlCppForFilesThatMistakesWereMadeIn) {
  std::mt19937 random(1);
  const std::string inserted = "\n\n\n    ::--##,,{}[]\"\"''\\&*!|>%@?~a1.";
  const std::vector<std::string> texts = texts_of_the_tree();
  std::size_t plain = 0, tried = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = texts[random() % texts.size()];
    const std::size_t length = std::min<std::size_t>(text.size(), 20 + random() % 300);
    text = text.substr(random() % (text.size() - length + 1), length);
    for (auto changes = random() % 4; changes > 0 && !text.empty(); --changes) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, 1 + random() % 3);
      else
        text.insert(at, 1, inserted[random() % inserted.size()]);
    }
    ++tried, plain += is_plain(text);
    ASSERT_EQ(read_by(parse_document, text), read_by(parse_by_yaml_cpp, text)) << text;
  }
  EXPECT_GT(plain, tried / 50);
}

TEST(PlainYaml, GivesTheTreesOfYamlCppForShortTextsOfItsCharacters) {
  std::mt19937 random(2);
  const std::vector<std::string> parts{"a",  "b: ", "- ",   "\n", "\n  ", "\n    ", "[",  "]", "{",
                                       "}",  ", ",  ": ",   ":",  " #",   "#",      "\"", "'", "1",
                                       "-1", "~",   "null", ".",  "\\",   "?",      " "};
  std::size_t plain = 0;
  for (int round = 0; round < 300000; ++round) {
    std::string text;
    for (auto count = 1 + random() % 12; count > 0; --count) text += parts[random() % parts.size()];
    if (!is_plain(text)) continue;
    ++plain;
    ASSERT_EQ(read_by(parse_document, text), read_by(parse_by_yaml_cpp, text)) << text;
  }
  EXPECT_GT(plain, 3000U);
}

TEST(PlainYaml, LeavesWhatItDoesNotKnowToYamlCpp) {
  for (const char* text :
       {"a: &x 1\nb: *x\n", "a: |\n  text\n", "a: !!str 1\n", "---\na: 1\n", "a: one\n  two\n", "a:\t1\n",
        "a: [b: 1]\n", "a: {b, c}\n", "a: [1, ]\n", "a: \"x\n  y\"\n", "a: x: y\n", "? a\n: b\n", ""})
    EXPECT_FALSE(is_plain(text)) << text;
  EXPECT_TRUE(is_plain("a: {b: [1, \"x\"], c: 'it''s'}  # comment\nd:\n  - e: 1\n    f: 2\n"));
}

}  // namespace
}  // namespace slipway::test
