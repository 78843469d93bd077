// Does anybody listen at an address? c10d's store client tries to connect and then waits for an answer in one call, with
// one patience; a port on which another program listens is told apart from a host that is not there yet by asking first.
// Plain C++, no LibTorch. Guarded by tests/exec/store_host_test.cpp.
#pragma once

#include <string>

#include "models/namespaces.h"

namespace slipway::exec {

// Tries to connect until somebody accepts, and hangs up. Empty then; else, after `seconds`, why not: "Connection refused",
// "Name or service not known". The name's look-up is the system's and may take longer.
std::string wait_for_listener(const std::string& host, int port, double seconds);

// Why the system finds no address of that name; empty where it finds one.
std::string why_not_found(const std::string& host);

}  // namespace slipway::exec
