// A file that cannot be read: every command that is given one says which and why, whatever it should have held.
#include "scenarios/input_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/command_test.h"

namespace slipway {
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

// To open it would wait for one.
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
}  // namespace slipway
