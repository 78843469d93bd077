// What a command line prints on standard output, and its exit status. The shell is sh; 2>&1 adds standard error.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace slipway::test {

struct Printed {
  int status = -1;  // -1: it could not be started or was killed
  std::string text;
};

inline Printed printed_by(const std::string& command) {
  Printed printed;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return printed;
  std::array<char, 4096> part;
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), pipe)) printed.text.append(part.data(), size);
  const int ended = ::pclose(pipe);
  if (WIFEXITED(ended)) printed.status = WEXITSTATUS(ended);
  return printed;
}

}  // namespace slipway::test
