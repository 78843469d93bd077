// Answers on terminals of few columns and without UTF-8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "scenarios/commands/command_line/terminal_text.h"
#include "tests/support/printed.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TerminalText, ASentenceIsBrokenAtWordsAndKeepsEveryWord) {
  EXPECT_EQ(broken_at_words("Training on 15 T tokens takes 685 days", 15), "Training on 15\nT tokens takes\n685 days");
  EXPECT_EQ(broken_at_words("  two spaces stay before it", 14), "  two spaces\n  stay before\n  it");
  EXPECT_EQ(broken_at_words("short", 40), "short");
}

TEST(TerminalText, AWordLongerThanTheTerminalIsNotCut) {
  EXPECT_EQ(broken_at_words("see /a/very/long/path.yaml there", 10), "see\n/a/very/long/path.yaml\nthere");
}

TEST(TerminalText, RowsOfTablesAndPicturesAreNoSentences) {
  const std::string row = "  compute                45.8 %  479 ms", picture = "rank 0 │·F·F·F····B·B·B·B·│";
  EXPECT_EQ(broken_at_words(row, 20), row);
  EXPECT_EQ(broken_at_words(picture, 20), picture);
}

TEST(TerminalText, ATableComesInPartsThatEachHaveItsFirstColumn) {
  const std::vector<std::string> table{"  rank   weights  activations        fits",
                                       "  0      541 MiB     5.38 GiB   yes ± 1 %",
                                       "  1     0.53 GiB     4.10 GiB          no"};
  EXPECT_EQ(table_in_parts(table, 30),
            "  rank   weights  activations\n  0      541 MiB     5.38 GiB\n  1     0.53 GiB     4.10 GiB\n"
            "\n"
            "  rank       fits\n  0     yes ± 1 %\n  1            no\n");
  EXPECT_EQ(table_in_parts(table, 80), table[0] + "\n" + table[1] + "\n" + table[2] + "\n");
}

TEST(TerminalText, ACellOfManyWordsIsBrokenBelowItsBegin) {
  EXPECT_EQ(table_in_parts({"  1  faster by less compute and waiting", "  2  as fast"}, 24),
            "  1  faster by less\n     compute and waiting\n  2  as fast\n");
  EXPECT_EQ(table_in_parts({"  --option-of-a-long-name  says what it does"}, 30),
            "  --option-of-a-long-name\n    says what it does\n")
      << "no room beside the first column";
}

TEST(TerminalText, LinesThatShareNoGapStayAsTheyAre) {
  EXPECT_EQ(table_in_parts({"aaaa  bbbb cccc", "aa bbbbbbb  ccc"}, 8), "aaaa  bbbb cccc\naa bbbbbbb  ccc\n");
}

TEST(TerminalText, LettersOfSeveralBytesCountAsOneColumn) { EXPECT_EQ(broken_at_words("±±± ±±±", 7), "±±± ±±±"); }

TEST(TerminalText, WithoutUtf8EveryByteIsAscii) {
  EXPECT_EQ(as_ascii("12 ms ± 3 %, 2 × 8 → 16"), "12 ms +- 3 %, 2 x 8 -> 16");
  EXPECT_EQ(as_ascii("ö"), "?");
}

TEST(TerminalText, AFlushWritesWhatIsThereAndTheRestFollows) {
  std::ostringstream terminal;
  TerminalText text(*terminal.rdbuf(), 40, false);
  std::ostream out(&text);
  out << "a " << std::flush;
  EXPECT_EQ(terminal.str(), "a ");
  out << "±\n";
  EXPECT_EQ(terminal.str(), "a +-\n");
}

// What the program prints on a terminal of 40 columns: script(1) gives it one.
std::string on_terminal(const std::string& locale, const std::string& arguments) {
  return printed_by("LC_ALL=" + locale + " script --quiet --command 'stty cols 40; " SLIPWAY_PROGRAM " " + arguments +
                    "' /dev/null </dev/null 2>&1")
      .text;
}

// Every column is needed, so none may wrap: a line of 41 letters would tear the table.
TEST(TerminalText, AnswersAreNoWiderThanATerminalOfFortyColumns) {
  if (std::system("command -v script >/dev/null 2>&1") != 0) GTEST_SKIP() << "script is not installed";
  const std::string example = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
  for (const std::string command : {"simulate ", "plan ", "memory ", "explain ", "goodput "}) {
    const std::string goodput = command == "goodput "
                                    ? " --set cluster.mtbf_per_node=10000h --set run.checkpoint_cost=30s --set "
                                      "cluster.restart=60s --histories 2"
                                    : "";
    std::istringstream answer(on_terminal("C", command + example + goodput));
    int lines = 0;
    for (std::string line; std::getline(answer, line); ++lines) {
      if (line.ends_with('\r')) line.pop_back();
      line.erase(0, line.rfind('\r') + 1);  // npos + 1 = 0: a progress line is written over
      EXPECT_LE(line.size(), 40u) << command << ": " << line;
      EXPECT_EQ(line.find('\x1b'), std::string::npos) << "no colours, so that NO_COLOR holds";
    }
    EXPECT_GT(lines, 10) << command;
  }
}

TEST(TerminalText, TheProgramSpeaksAsciiWhereTheLocaleDoes) {
  if (std::system("command -v script >/dev/null 2>&1") != 0) GTEST_SKIP() << "script is not installed";
  const std::string arguments = "simulate " SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";
  const std::string plain = on_terminal("C", arguments), utf8 = on_terminal("C.UTF-8", arguments);
  EXPECT_THAT(plain, HasSubstr("step time"));
  for (const char byte : plain) ASSERT_LT(static_cast<unsigned char>(byte), 0x80);
  EXPECT_THAT(utf8, HasSubstr("│"));
  EXPECT_THAT(utf8, HasSubstr("GPU-hours."));
  // script(1) ends lines with \r\n; each column of the picture is one letter.
  const std::size_t begin = utf8.find("rank 0  │"), end = utf8.find('\r', begin);
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(as_ascii(utf8.substr(begin, end - begin)).size(), 40u);
}

}  // namespace
}  // namespace slipway::test
