// Completion and the man page, asked of the shells and of groff themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "scenarios/commands/shell/completion.h"
#include "scenarios/commands/shell/manual.h"
#include "scenarios/language/keys.h"
#include "tests/support/command_test.h"
#include "tests/support/printed.h"

namespace slipway::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What a command prints on both outputs, by line.
std::vector<std::string> lines_of(const std::string& command) { return lines_in(printed_by(command + " 2>&1").text); }

class Completion : public CommandTest {
 protected:
  std::string written(const std::string& name, const std::string& text) {
    std::ofstream(path(name)) << text;
    return path(name);
  }

  // The script of a shell as the command prints it.
  std::string script_of(const std::string& shell) {
    const Answer answer = slipway_with({"completion", shell});
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return written("completion." + shell, answer.out);
  }

  // What bash offers for the last of these words.
  std::vector<std::string> bash_offers(const std::vector<std::string>& words) {
    std::string program = ". " + script_of("bash") + "\nCOMP_WORDS=(";
    for (const std::string& word : words) program += "'" + word + "' ";
    program += ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_slipway\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    return lines_of("bash " + written("ask.bash", program));
  }
};
class Manual : public Completion {};

TEST_F(Completion, BashOffersCommandsOptionsTopicsAndKeys) {
  if (!installed("bash")) GTEST_SKIP() << "bash is not installed";
  EXPECT_THAT(bash_offers({"slipway", "sim"}), ElementsAre("simulate"));
  EXPECT_THAT(bash_offers({"slipway", "help", "pl"}), ElementsAre("plan"));
  EXPECT_THAT(bash_offers({"slipway", "simulate", "--tr"}), ElementsAre("--trace"));
  EXPECT_THAT(bash_offers({"slipway", "list", "topo"}), ElementsAre("topologies"));
  EXPECT_THAT(bash_offers({"slipway", "simulate", "s.yaml", "--set", "layout.ten"}), ElementsAre("layout.tensor="));
}

TEST_F(Completion, BashOffersEveryCommandAndEveryOptionOfItsHelp) {
  if (!installed("bash")) GTEST_SKIP() << "bash is not installed";
  const std::vector<std::string> commands = bash_offers({"slipway", ""});
  for (const CommandForm& form : command_forms()) {
    EXPECT_THAT(commands, Contains(form.name));
    const std::string help = slipway_with({form.name, "--help"}).out;
    for (const std::string& option : bash_offers({"slipway", form.name, "--"}))
      EXPECT_THAT(help, HasSubstr(option)) << form.name;
  }
}

TEST_F(Completion, ZshReadsTheScriptAndHasEveryOption) {
  if (!installed("zsh")) GTEST_SKIP() << "zsh is not installed (Debian: zsh)";
  const std::string script = script_of("zsh");
  EXPECT_THAT(lines_of("zsh -n " + script), ElementsAre());
  // _arguments is replaced by a function that prints its specifications.
  const std::string program =
      "compdef() { :; }\n. " + script +
      "\n_arguments() { printf '%s\\n' \"$@\"; }\nwords=(slipway simulate '') CURRENT=3\n_slipway\n";
  const std::vector<std::string> options = lines_of("zsh " + written("ask.zsh", program));
  EXPECT_THAT(options, Contains(testing::StartsWith("*--trace[")));
  EXPECT_THAT(options, Contains(testing::AllOf(testing::StartsWith("*--set["), testing::EndsWith(":_slipway_keys"))));
}

TEST_F(Completion, FishOffersCommandsOptionsTopicsAndKeys) {
  if (!installed("fish")) GTEST_SKIP() << "fish is not installed (Debian: fish)";
  const std::string home = "HOME=" + path("") + " ";
  const auto offers = [&](const std::string& line) {
    return lines_of(home + "fish " +
                    written("ask.fish", "source " + script_of("fish") + "\ncomplete -C '" + line + "'\n"));
  };
  EXPECT_THAT(offers("slipway simul"), Contains(testing::StartsWith("simulate\t")));
  EXPECT_THAT(offers("slipway simulate --trac"), Contains(testing::StartsWith("--trace")));
  EXPECT_THAT(offers("slipway list topo"), Contains(testing::StartsWith("topologies")));
  EXPECT_THAT(offers("slipway simulate --set layout.tens"), Contains(testing::StartsWith("layout.tensor=")));
}

TEST_F(Completion, AnUnknownShellIsAMistakeOfTheUser) {
  const Answer answer = slipway_with({"completion", "fich"});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("did you mean 'slipway completion fish'?"));
}

TEST_F(Completion, SettableKeysHaveNoNameOfTheUsersInside) {
  EXPECT_THAT(settable_keys(), Contains("layout.tensor"));
  EXPECT_THAT(settable_keys(), Not(Contains(HasSubstr("*"))));
}

TEST_F(Manual, GroffPrintsEveryCommandAndOptionWithoutAComplaint) {
  if (!installed("man") || !installed("groff"))
    GTEST_SKIP() << "man and groff are not installed (Debian: man-db, groff)";
  const Answer answer = slipway_with({"man"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const std::string page = written("slipway.1", answer.out);
  EXPECT_THAT(lines_of("groff -man -Tutf8 -ww -z " + page), ElementsAre());
  // Its complaints about lines are asked above: their own output would cut into the page.
  const std::string text = printed_by("groff -man -Tutf8 -P-cbou -rLL=200n " + page + " 2>/dev/null").text;
  EXPECT_THAT(text, HasSubstr("µs,"));
  const std::vector<std::string> lines = lines_in(text);
  for (const CommandForm& form : command_forms()) {
    for (const std::string& usage : lines_in("slipway " + form.usage))
      EXPECT_THAT(lines, Contains("   " + usage.substr(usage.find("slipway"))));
    for (const OptionForm& option : form.options) EXPECT_THAT(text, HasSubstr("--" + option.name)) << form.name;
  }
}

}  // namespace
}  // namespace slipway::test
