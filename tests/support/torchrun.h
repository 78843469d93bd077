// The torchrun for tests: a command line in SLIPWAY_TORCHRUN, or the reason why there is none in
// SLIPWAY_TORCHRUN_MISSING. ctest sets both (tests/torchrun.cmake).
#pragma once

#include <cstdlib>
#include <string>

#include "models/namespaces.h"

namespace slipway::test {

// Empty if there is none.
inline std::string torchrun_command() {
  const char* command = std::getenv("SLIPWAY_TORCHRUN");
  return command == nullptr ? "" : command;
}

inline std::string why_no_torchrun() {
  const char* reason = std::getenv("SLIPWAY_TORCHRUN_MISSING");
  return std::string("no torchrun: ") +
         (reason != nullptr && *reason != '\0'
              ? reason
              : "SLIPWAY_TORCHRUN is not set; start this test with ctest, which sets it");
}

}  // namespace slipway::test
