// slipway demo: the pages of `make demo`, and the browser that opens them.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

class DemoCommand : public CommandTest {
 protected:
  void TearDown() override {
    ::unsetenv("BROWSER");
    CommandTest::TearDown();
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
  // A browser that notes what it was asked to open, and ends with this status.
  void set_browser(int status) {
    write("browser", "#!/bin/sh\necho \"$1\" >> '" + path("opened") + "'\nexit " + std::to_string(status) + "\n");
    std::filesystem::permissions(path("browser"), std::filesystem::perms::owner_all);
    ::setenv("BROWSER", path("browser").c_str(), 1);
  }
};

TEST_F(DemoCommand, OpensThePagesThatAreThere) {
  write("confirm.html", "");
  write("compare.html", "");
  set_browser(0);
  const Answer answer = slipway_with({"demo", "--folder", path("")});
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_EQ(text_of(path("opened")), path("confirm.html") + "\n" + path("compare.html") + "\n");
}

TEST_F(DemoCommand, PrintOpensNothing) {
  write("confirm.html", "");
  set_browser(0);
  EXPECT_THAT(slipway_with({"demo", "--print", "--folder", path("")}).out, HasSubstr(path("confirm.html")));
  EXPECT_FALSE(std::filesystem::exists(path("opened")));
}

TEST_F(DemoCommand, ABrowserThatFailsOrIsMissingIsSaidWithTheFilesStillNamed) {
  write("confirm.html", "");
  set_browser(3);
  const Answer failed = slipway_with({"demo", "--folder", path("")});
  EXPECT_EQ(failed.status, status_failed);
  EXPECT_THAT(failed.out, HasSubstr("confirm.html"));
  ::setenv("BROWSER", path("no-such-program").c_str(), 1);
  EXPECT_THAT(slipway_with({"demo", "--folder", path("")}).err, HasSubstr("open these files in a browser"));
}

TEST_F(DemoCommand, WithoutADemoSaysHowToMakeOne) {
  const Answer answer = slipway_with({"demo", "--folder", path("")});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("run `make demo` first"));
}

}  // namespace
}  // namespace slipway::test
