#include "scenarios/tables/csv.h"

#include <gmock/gmock.h>

#include <sstream>

namespace slipway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CsvTable table_of(const std::string& text) {
  std::istringstream in(text);
  return read_csv(in, "t.csv");
}

std::string error_of(const std::string& text) {
  try {
    table_of(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLineBreaks) {
  const CsvTable table = table_of("a,b\n\"x, y\",\"say \"\"hi\"\"\"\n\"two\nlines\",2\nlast,row");
  EXPECT_THAT(table.header, ElementsAre("a", "b"));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_THAT(table.rows[0].fields, ElementsAre("x, y", "say \"hi\""));
  EXPECT_THAT(table.rows[1].fields, ElementsAre("two\nlines", "2"));
  EXPECT_THAT(table.rows[2].fields, ElementsAre("last", "row"));
}

TEST(Csv, EachRowKnowsTheLineOnWhichItBegins) {
  const CsvTable table = table_of("# source\n# of it\na,b\n\n1,2\n\"x\ny\",3\n4,5\n");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].line, 5);
  EXPECT_EQ(table.rows[1].line, 6);
  EXPECT_EQ(table.rows[2].line, 8);
}

TEST(Csv, ByteOrderMarkCarriageReturnsAndEmptyFieldsDoNoHarm) {
  const CsvTable table = table_of(
      "\xEF\xBB\xBF"
      "a,b,c\r\n1,,\r\n\"2\",\"\",3\r\n");
  EXPECT_THAT(table.header, ElementsAre("a", "b", "c"));
  EXPECT_THAT(table.rows[0].fields, ElementsAre("1", "", ""));
  EXPECT_THAT(table.rows[1].fields, ElementsAre("2", "", "3"));
}

TEST(Csv, MistakesNameFileLineAndRemedy) {
  EXPECT_THAT(error_of(""), HasSubstr("t.csv: is empty"));
  EXPECT_THAT(error_of("a,a\n"), HasSubstr("two columns are named 'a'"));
  EXPECT_THAT(error_of("a,b\n1,\"open\n"), HasSubstr("t.csv:2: a quoted field is not closed"));
}

TEST(Csv, WhatIsWrittenReadsBack) {
  const std::vector<std::string> fields = {"plain", "a,b", "\"q\"", "two\nlines", ""};
  const CsvTable table = table_of("1,2,3,4,5\n" + csv_line(fields));
  EXPECT_EQ(table.rows.at(0).fields, fields);
}

}  // namespace
}  // namespace slipway
