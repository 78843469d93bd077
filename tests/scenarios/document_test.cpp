// The tree knows lines, finds duplicate keys and survives being written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/language/document.h"
#include "scenarios/language/nearest.h"
#include "scenarios/language/quantity.h"

namespace slipway::test {

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

TEST(Document, AnAliasThatRepeatsALongTextIsRefusedBeforeItFillsTheMemory) {
  std::string bomb = "a: &a " + std::string(1'000'000, 'x') + "\nb: [";
  for (int i = 0; i < 100'000; ++i) bomb += "*a, ";  // 100 GB
  const Defects defects = defects_of(bomb + "]\n");
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_THAT(defects[0].message, HasSubstr("64 MB of text"));
}

TEST(Document, ADuplicateKeyBelowALongKeyIsNamedShortly) {
  std::string text = "cluster:\n  groups:\n  - {nodes: 1, nodes: 2}\n" + std::string(1'000, 'k') + ":\n";
  for (int i = 0; i < 20'000; ++i) text += "  x: 1\n";
  const Defects defects = defects_of(text);
  ASSERT_FALSE(defects.empty());
  EXPECT_LE(defects.size(), 100U);
  EXPECT_EQ(defects.front().key, "cluster.groups.0.nodes");
  for (const ScenarioError& defect : defects) EXPECT_LT(defect.key.size(), 130U);
}

TEST(Nearest, AWordOfMegabytesIsLikeNone) {
  EXPECT_TRUE(nearest(std::string(3'000'000, 'x'), {"tensor", "pipeline"}).empty());
  EXPECT_EQ(nearest("tensr", {"tensor", "pipeline"}), std::vector<std::string>{"tensor"});
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

// Units against values worked out by hand.

namespace {

TEST(Quantity, ReadsDecimalAndBinaryPrefixesAndBits) {
  EXPECT_EQ(quantity("450 GB/s", Unit::bytes_per_second), 450e9);
  EXPECT_EQ(quantity("400 Gbit/s", Unit::bytes_per_second), 50e9);
  EXPECT_EQ(quantity("3.35TB/s", Unit::bytes_per_second), 3.35e12);
  EXPECT_EQ(quantity("80 GB", Unit::bytes), 80e9);
  EXPECT_EQ(quantity("80 GiB", Unit::bytes), 85899345920.0);
  EXPECT_EQ(quantity("312 TFLOP/s", Unit::flops), 312e12);
  EXPECT_EQ(quantity("15 T", Unit::tokens), 15e12);
}

TEST(Quantity, WholeTimesAreTheSameDoubleAsTheirSiLiteral) {
  EXPECT_EQ(quantity("2 us", Unit::seconds), 2e-6);
  EXPECT_EQ(quantity("3 us", Unit::seconds), 3e-6);
  EXPECT_EQ(quantity("1.5 ms", Unit::seconds), 1.5e-3);
  EXPECT_EQ(quantity("250 ns", Unit::seconds), 250e-9);
}

TEST(Quantity, BareNumbersAreInBaseUnits) {
  EXPECT_EQ(quantity("4.5e11", Unit::bytes_per_second), 4.5e11);
  EXPECT_EQ(quantity("+1e-5", Unit::seconds), 1e-5);
  EXPECT_EQ(quantity("-0.5", Unit::pure), -0.5);
}

TEST(Quantity, RefusesWhatIsAmbiguousOrOfAnotherKind) {
  for (const char* text :
       {"400 Gb/s", "450 gb/s", "450 GB", "450 XB/s", "fast", "", "450 GB/s please", "1e400", "inf", "nan"})
    EXPECT_FALSE(quantity(text, Unit::bytes_per_second)) << text;
  EXPECT_FALSE(quantity("80 GB", Unit::pure));
  EXPECT_FALSE(quantity("2 ks", Unit::seconds));
}

TEST(WholeNumber, TakesDigitsOnly) {
  EXPECT_EQ(whole_number("1024"), 1024);
  EXPECT_EQ(whole_number("-3"), -3);
  EXPECT_EQ(whole_number("+3"), 3);
  for (const char* text : {"1.0", "1e3", "", "0x10", "8 ", "99999999999999999999"})
    EXPECT_FALSE(whole_number(text)) << text;
}

TEST(NumberText, ReadsBackAsTheSameDouble) {
  for (const double value : {0.1, 1.0 / 3.0, 3.35e12, 5e-324, 1.7e308, 0.0}) {
    EXPECT_EQ(quantity(number_text(value), Unit::pure), value);
  }
}

}  // namespace

}  // namespace slipway::test
