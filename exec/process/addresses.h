// Checks whether a program listens at an address. c10d's store client connects and waits for an answer in one call,
// with one time limit. A check before it separates a port of another program from a host that is not there yet.
// Plain C++, no LibTorch. Guarded by tests/exec/store_host_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "models/namespaces.h"

namespace slipway::exec {

// Tries to connect until a listener accepts, closes the connection and returns empty. After `seconds` it returns the
// reason: "Connection refused", "Name or service not known". The look-up of the name is the system's and may take
// longer.
std::string wait_for_listener(const std::string& host, int port, double seconds);

// This machine's own address on the way to `host`, by which others on that way reach it; empty where there is no way.
// Nothing is sent.
std::string address_towards(const std::string& host);

// The reason why the system finds no address of that name; empty if it finds one.
std::string why_not_found(const std::string& host);

// A socket on the loopback interface, where all ranks are on this machine; nothing for c10d's own, which listens on all
// interfaces. Sets a port of 0 to the free one that it got. Throws std::runtime_error, with EADDRINUSE for a port that is
// taken. A name may have an address that the machine lacks (::1 of localhost), so each is tried.
std::optional<int> socket_on_loopback(const std::string& host, int& port);

}  // namespace slipway::exec
