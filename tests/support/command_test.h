// A command line run in this process, and a folder for what it writes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/commands/command_line/command.h"

namespace slipway::test {

struct Answer {
  int status = 0;
  std::string out, err;
};

inline Answer slipway_with(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  const int status = run_slipway(args, out, err);
  return {status, out.str(), err.str()};
}

// The keys of a command's --json.
inline std::vector<AnswerKeys> answers_of(std::string_view command) { return command_named(command)->answers(); }

// The keys of an answer's outermost object.
inline std::vector<std::string> outermost(const AnswerKeys& answer) {
  std::vector<std::string> names;
  for (const AnswerKey& key : answer.keys)
    if (key.name.find('.') == std::string::npos) names.push_back(key.name);
  return names;
}

inline std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A folder of its own for each test, removed afterwards.
class CommandTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::string folder_ = testing::TempDir() + "slipway-command-" + std::to_string(::getpid());
};

}  // namespace slipway::test
