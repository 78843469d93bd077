// A file that cannot be read: every command that gets one reports which and why, whatever it should contain.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "scenarios/files/files.h"
#include "scenarios/files/output_file.h"
#include "tests/support/command_test.h"
#include "tests/support/printed.h"
#include "tests/support/process_limits.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";

using InputFile = CommandTest;

TEST_F(InputFile, WhatCannotBeReadHasAReason) {
  fs::create_symlink(path("nowhere"), path("dangling"));
  fs::create_symlink(path("loop"), path("loop"));
  std::ofstream(path("empty")).close();
  EXPECT_EQ(unreadable(path("empty")), "");
  EXPECT_EQ(unreadable("/dev/null"), "");
  EXPECT_EQ(unreadable(path("nowhere")), "No such file or directory");
  EXPECT_EQ(unreadable(path("dangling")), "No such file or directory");
  EXPECT_EQ(unreadable(path("loop")), "Too many levels of symbolic links");
  EXPECT_EQ(unreadable(path("empty/x")), "Not a directory");
  EXPECT_EQ(unreadable(path("")), "it is a folder");
  for (const char* endless : {"/dev/zero", "/dev/full", "/dev/urandom"})
    EXPECT_EQ(unreadable(endless), "it is a device without end");
}

// An open() would wait for a writer.
TEST_F(InputFile, APipeIsReadableBeforeItHasAWriter) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(unreadable(path("pipe")), "");
}

TEST_F(InputFile, EveryCommandTellsFileAndReason) {
  fs::create_symlink(path("loop"), path("loop"));
  const std::pair<std::string, std::string> files[] = {{"/dev/zero", "it is a device without end"},
                                                       {path("loop"), "Too many levels of symbolic links"},
                                                       {path("nowhere"), "No such file or directory"}};
  for (const auto& [file, reason] : files) {
    const std::vector<std::string> lines[] = {{"simulate", file},
                                              {"simulate", tiny, "--set", "schedule.csv=" + file},
                                              {"simulate", tiny, "--set", "cluster.machine=" + file},
                                              {"validate", file},
                                              {"compare", file, file},
                                              {"calibrate", tiny, "--measured", file, "-o", path("m.yaml")},
                                              {"calibrate", tiny, "--trace", file, "-o", path("m.yaml")}};
    for (const auto& line : lines) {
      const Answer answer = slipway_with(line);
      EXPECT_EQ(answer.status, status_usage) << line[0] << " " << file;
      EXPECT_THAT(answer.err, HasSubstr("cannot read")) << line[0];
      EXPECT_THAT(answer.err, HasSubstr(file)) << line[0];
      EXPECT_THAT(answer.err, HasSubstr(reason)) << line[0];
    }
  }
}

}  // namespace

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

TEST_F(OutputFiles, RightsStayAndNewFilesHaveThoseOfTheUser) {
  std::ofstream(folder + "/a") << "old";
  fs::permissions(folder + "/a", fs::perms(0640));
  OutputFile(folder + "/a").commit();
  EXPECT_EQ(fs::status(folder + "/a").permissions(), fs::perms(0640));
  const mode_t before = ::umask(027);
  OutputFile(folder + "/b").commit();
  ::umask(before);
  EXPECT_EQ(fs::status(folder + "/b").permissions(), fs::perms(0640));
}

TEST_F(OutputFiles, AKilledProcessLeavesNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFile file(folder + "/a");
    file.stream() << std::string(100'000, 'x') << std::flush;
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(OutputFiles, BeyondALimitOfFileSizesNothingIsLeftAndTheReasonIsNamed) {
  if (!file_sizes_can_be_limited) GTEST_SKIP() << "no program runs within a limit of file sizes here";
  const Printed lower = printed_by("ulimit -f 1; " SLIPWAY_PROGRAM " lower " + tiny +
                                   " --set schedule.global_batch=64 -o " + folder + "/run.slip 2>&1");
  EXPECT_EQ(lower.status, 1);
  EXPECT_THAT(lower.text, HasSubstr("File too large"));
  EXPECT_TRUE(fs::is_empty(folder));
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

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.stream() << text;
  file.commit();
}

TEST_F(OutputFiles, ASymbolicLinkStaysAndItsFileIsWritten) {
  fs::create_directories(folder + "/elsewhere");
  write(folder + "/elsewhere/a", "old");
  fs::create_symlink("elsewhere/a", folder + "/to-old");
  fs::create_symlink("elsewhere/b", folder + "/to-new");
  fs::create_symlink("to-old", folder + "/to-link");
  write(folder + "/to-link", "by two links");
  write(folder + "/to-new", "made");
  EXPECT_TRUE(fs::is_symlink(folder + "/to-old"));
  EXPECT_TRUE(fs::is_symlink(folder + "/to-new"));
  EXPECT_EQ(content(folder + "/elsewhere/a"), "by two links");
  EXPECT_EQ(content(folder + "/elsewhere/b"), "made");
}

TEST_F(OutputFiles, AFifoStaysOneAndItsReaderGetsTheText) {
  const std::string fifo = folder + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  check_writable(fifo);  // would wait for ever for a reader if it opened the FIFO
  std::string got;
  std::thread reader([&] { got = content(fifo); });
  write(fifo, "through the pipe");
  reader.join();
  EXPECT_EQ(got, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(fifo));
}

TEST_F(OutputFiles, ADeviceIsWrittenToAndAFullOneIsAnError) {
  write("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THROW(write("/dev/full", "text"), std::runtime_error);
}

TEST_F(OutputFiles, AFolderIsRefused) {
  for (const std::string& path : {folder, folder + "/"}) {
    EXPECT_THAT([&] { OutputFile file(path); },
                testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("it is a folder; name a file")));
    EXPECT_THROW(check_writable(path), std::runtime_error);
  }
}

TEST_F(OutputFiles, AFolderThatCannotBeMadeIsRefusedBeforeAndNothingIsMade) {
  write(folder + "/file", "");
  EXPECT_THAT([&] { check_folder_writable(folder + "/file/run"); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("/file is not a folder")));
  check_folder_writable(folder + "/new/run");
  EXPECT_FALSE(fs::exists(folder + "/new"));
}

}  // namespace

}  // namespace slipway::test
