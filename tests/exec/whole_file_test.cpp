// Files of the ranks that appear whole or not at all.
#include "exec/run/whole_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/process_limits.h"

namespace slipway::test {
namespace {

namespace fs = std::filesystem;
using namespace exec;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string text_in(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class WholeFile : public testing::Test {
 protected:
  WholeFile() : folder(testing::TempDir() + "whole-file-" + std::to_string(::getpid())) {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~WholeFile() override { fs::remove_all(folder); }
  int entries() const { return static_cast<int>(std::distance(fs::directory_iterator(folder), {})); }
  std::string folder;
};

TEST_F(WholeFile, ReplacesWhatWasThereAndLeavesNothingElse) {
  write_whole_file(folder + "/a", "first and long");
  write_whole_file(folder + "/a", "second");
  EXPECT_EQ(text_in(folder + "/a"), "second");
  EXPECT_EQ(entries(), 1);
}

TEST_F(WholeFile, HasTheRightsOfANewFile) {
  const mode_t before = ::umask(027);
  write_whole_file(folder + "/a", "text");
  ::umask(before);
  EXPECT_EQ(fs::status(folder + "/a").permissions(), fs::perms(0640));
}

TEST_F(WholeFile, TakesThePlaceOfALinkAndNotOfTheFileBehindIt) {
  std::ofstream(folder + "/other") << "of somebody else";
  fs::create_symlink("other", folder + "/a");
  write_whole_file(folder + "/a", "text");
  EXPECT_FALSE(fs::is_symlink(folder + "/a"));
  EXPECT_EQ(text_in(folder + "/other"), "of somebody else");
}

TEST_F(WholeFile, BeyondALimitOfFileSizesLeavesTheOldOneAndSaysWhy) {
  if (!file_sizes_can_be_limited) GTEST_SKIP() << "no program runs within a limit of file sizes here";
  write_whole_file(folder + "/a", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  EXPECT_THAT(
      [&] { write_whole_file(folder + "/a", std::string(5000, 'x')); },
      ThrowsMessage<std::runtime_error>(AllOf(HasSubstr(folder + "/a: File too large"), HasSubstr("make room"))));
  std::signal(SIGXFSZ, handler);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(text_in(folder + "/a"), "old");
  EXPECT_EQ(entries(), 1);
}

TEST_F(WholeFile, InAFolderThatIsNotThereIsRefused) {
  EXPECT_THAT([&] { write_whole_file(folder + "/none/a", "text"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("none/a: No such file or directory")));
}

}  // namespace
}  // namespace slipway::test
