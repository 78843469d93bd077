// A mistake of the user, found anywhere between the command line and the scenario: exit status 2, the message as it is.
// Nothing was written and nothing started. Guarded by tests/scenarios/command_line_test.cpp.
#pragma once

#include <stdexcept>

#include "models/namespaces.h"

namespace slipway::scenarios {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace slipway::scenarios
