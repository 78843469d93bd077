#include "scenarios/commands/execute/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>

namespace slipway::scenarios {

namespace {

constexpr int lowest = 10000;

// The first of the ports that the kernel hands out by itself.
int first_ephemeral() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  return file >> first ? first : 32768;  // Linux's default
}

// Tries to bind `port`; for 0 the kernel chooses. Returns the bound port, or 0 with errno.
int bound_port(int port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  const bool bound = listener >= 0 && ::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int reason = errno;
  if (listener >= 0) ::close(listener);
  errno = reason;
  return bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

int free_port() {
  constexpr int tries = 100;
  if (const int end = first_ephemeral(); end > lowest + tries) {
    std::random_device random;
    std::uniform_int_distribution<int> any(lowest, end - 1);
    for (int i = 0; i < tries; ++i)
      if (const int port = bound_port(any(random)); port > 0) return port;
  }
  const int port = bound_port(0);
  if (port == 0) throw std::runtime_error(std::string("no free TCP port on 127.0.0.1: ") + std::strerror(errno));
  return port;
}

}  // namespace slipway::scenarios
