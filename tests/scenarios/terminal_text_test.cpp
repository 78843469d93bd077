// Answers on terminals of few columns and without UTF-8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "scenarios/command_line/terminal_text.h"
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

TEST(TerminalText, TablesAndPicturesStayAsTheyAre) {
  const std::string row = "  compute                45.8 %  479 ms", picture = "rank 0 │·F·F·F····B·B·B·B·│";
  EXPECT_EQ(broken_at_words(row, 20), row);
  EXPECT_EQ(broken_at_words(picture, 20), picture);
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
