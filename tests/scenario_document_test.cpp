// The tree knows lines, finds duplicate keys and survives being written.
#include "scenarios/language/document.h"

#include <gmock/gmock.h>

namespace slipway {
namespace {

using testing::HasSubstr;

Value parsed(const std::string& text) {
  Defects defects;
  const std::optional<Value> value = parse_document(text, "a.yaml", defects);
  EXPECT_EQ(describe(defects), "");
  return value.value_or(Value{});
}

Defects defects_of(const std::string& text) {
  Defects defects;
  parse_document(text, "a.yaml", defects);
  return defects;
}

TEST(Document, EveryValueKnowsItsLine) {
  const Value root = parsed("# comment\nlayout:\n  tensor: 8\n\n  split: [3,\n    5]\n");
  EXPECT_EQ(root.find("layout")->find("tensor")->origin.line, 3);
  EXPECT_EQ(root.find("layout")->find("split")->items[1].origin.line, 6);
  EXPECT_EQ(root.find("layout")->find("split")->items[1].origin.file, "a.yaml");
}

TEST(Document, ReadsJsonWithTabsAndEscapes) {
  const Value root =
      parsed("{\n\t\"model_type\": \"llama\",\n\t\"path\": \"a\\/b\",\n\t\"n\": null, \"eps\": 1e-05\n}\n");
  EXPECT_EQ(root.find("model_type")->text, "llama");
  EXPECT_EQ(root.find("path")->text, "a/b");
  EXPECT_EQ(root.find("n")->kind, Value::Kind::nothing);
  EXPECT_EQ(root.find("eps")->origin.line, 4);
}

TEST(Document, ADuplicateKeyIsAnErrorAtItsSecondPlace) {
  const Defects defects = defects_of("layout:\n  tensor: 1\n  tensor: 2\n");
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_EQ(defects[0].line, 3);
  EXPECT_EQ(defects[0].key, "layout.tensor");
  EXPECT_THAT(defects[0].message, HasSubstr("first on line 2"));
}

TEST(Document, ASyntaxErrorNamesItsLine) {
  const Defects defects = defects_of("model: gpt2\nlayout: {tensor: 1\nrun: 3\n");
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_THAT(defects[0].message, HasSubstr("not valid YAML"));
  EXPECT_GE(defects[0].line, 2);
}

TEST(Document, EmptyFilesAndSecondDocumentsAreErrors) {
  EXPECT_EQ(defects_of("").size(), 1U);
  EXPECT_EQ(defects_of("# only a comment\n").size(), 1U);
  EXPECT_EQ(defects_of("a: 1\n---\nb: 2\n").size(), 1U);
}

TEST(Document, AliasesThatMultiplyOrReferToThemselvesAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [" + before;
    for (int k = 0; k < 9; ++k) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_EQ(defects_of(bomb).size(), 1U);
  EXPECT_FALSE(defects_of("a: &a [*a]\n").empty());
}

TEST(Document, AValueOfMegabytesIsNamedByItsBeginning) {
  EXPECT_EQ(in_words(parsed(std::string(1000000, 'x'))), "'" + std::string(120, 'x') + "...'");
  std::string umlauts = "x";
  for (int i = 0; i < 1000; ++i) umlauts += "\u00fc";
  EXPECT_EQ(in_words(parsed(umlauts)), "'" + umlauts.substr(0, 119) + "...'") << "no half character";
}

TEST(Document, BothTextFormsReadBackAsTheSameTree) {
  const Value root = parsed(
      "a: plain words\nb: \"true\"\nc: [1, 2.5, 'x: y']\nd: {e: {f: -1}, g: []}\nh:\n  - {i: 450 GB/s}\n  "
      "- {i: '# no'}\n"
      "k: \"line\\nbreak \\\"quoted\\\" \\\\\"\nl: ''\nm: null\n");
  EXPECT_EQ(to_one_line(parsed(to_yaml(root))), to_one_line(root));
  EXPECT_EQ(to_yaml(parsed(to_one_line(root))), to_yaml(root));
  EXPECT_EQ(to_one_line(root).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace slipway
