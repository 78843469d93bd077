#include "scenarios/output_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace slipway {
namespace {

namespace fs = std::filesystem;

struct OutputFiles : testing::Test {
  const std::string folder = testing::TempDir() + "output-file-" + std::to_string(::getpid());
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
};

TEST_F(OutputFiles, AppearsWholeAtCommit) {
  OutputFile file(folder + "/a");
  file.stream() << "text";
  EXPECT_FALSE(fs::exists(folder + "/a"));
  EXPECT_EQ(file.commit(), 4u);
  EXPECT_EQ(fs::file_size(folder + "/a"), 4u);
}

TEST_F(OutputFiles, WithoutCommitNothingIsLeftAndAnOldFileStays) {
  std::ofstream(folder + "/a") << "old";
  { OutputFile(folder + "/a").stream() << "new and longer"; }
  EXPECT_EQ(fs::file_size(folder + "/a"), 3u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST_F(OutputFiles, CheckingLeavesNothing) {
  check_writable(folder + "/a");
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_THROW(check_writable(folder + "/no/a"), std::runtime_error);
}

TEST_F(OutputFiles, AFolderThatDoesNotExistIsNamed) {
  try {
    OutputFile file(folder + "/no/a");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no/a: No such file or directory"));
  }
}

}  // namespace
}  // namespace slipway
