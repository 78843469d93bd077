// The program `slipway`: see scenarios/commands/command.h.
#include <cerrno>
#include <cstring>
#include <iostream>

#include "scenarios/commands/command.h"

int main(int argc, char** argv) {
  const int status = slipway::run_slipway({argv + 1, argv + argc}, std::cout, std::cerr);
  // An answer that did not arrive (a full disk behind >) is a failure even when the work was done.
  errno = 0;
  std::cout.flush();
  if (std::cout) return status;
  const std::string reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  std::cerr << "slipway: cannot write to standard output" << reason
            << "; the answer is incomplete, make room or send it elsewhere\n";
  return status == slipway::status_done ? slipway::status_failed : status;
}
