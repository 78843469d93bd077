#include "exec/process/addresses.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include "exec/process/environment.h"

namespace slipway::exec {

namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

// 0, or the error number.
int try_to_connect(const addrinfo& address, Clock::time_point until) {
  const int type = address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const int descriptor = ::socket(address.ai_family, type, address.ai_protocol);
  if (descriptor < 0) return errno;
  int error = ::connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    constexpr int patience_ms = 2000;  // one lost packet; the name may have another address
    pollfd event{descriptor, POLLOUT, 0};
    socklen_t length = sizeof error;
    const int ready = ::poll(&event, 1, std::min(patience_ms, milliseconds_until(until)));
    if (ready <= 0)
      error = ready == 0 ? ETIMEDOUT : errno;
    else if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
      error = errno;
  }
  ::close(descriptor);
  return error;
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Returns empty, or why there are no addresses.
std::string look_up(const std::string& host, int port, Addresses& all) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found); code != 0)
    return ::gai_strerror(code);
  all.reset(found);
  return "";
}

std::string try_addresses(const std::string& host, int port, Clock::time_point until) {
  Addresses all(nullptr, ::freeaddrinfo);
  if (std::string why = look_up(host, port, all); !why.empty()) return why;
  int error = 0;
  for (const addrinfo* address = all.get(); address != nullptr; address = address->ai_next)
    if ((error = try_to_connect(*address, until)) == 0) return "";
  return std::strerror(error);
}

// A socket bound to the address, whose port it writes to `port`; -1 with errno.
int bound_socket(const addrinfo& wanted, int& port) {
  const int descriptor = ::socket(wanted.ai_family, wanted.ai_socktype | SOCK_CLOEXEC, wanted.ai_protocol);
  if (descriptor < 0) return -1;
  const int yes = 1;
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  auto* const address = reinterpret_cast<sockaddr*>(&bound);
  if (::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(descriptor, wanted.ai_addr, wanted.ai_addrlen) != 0 || ::getsockname(descriptor, address, &size) != 0) {
    const int error = errno;
    ::close(descriptor);
    errno = error;
    return -1;
  }
  port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return descriptor;
}

}  // namespace

std::string why_not_found(const std::string& host) {
  Addresses all(nullptr, ::freeaddrinfo);
  return look_up(host, 0, all);
}

std::string address_towards(const std::string& host) {
  constexpr int any_port = 9;
  Addresses all(nullptr, ::freeaddrinfo);
  if (!look_up(host, any_port, all).empty()) return "";
  for (const addrinfo* address = all.get(); address != nullptr; address = address->ai_next) {
    const int descriptor = ::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    auto* const here = reinterpret_cast<sockaddr*>(&own);
    char number[NI_MAXHOST] = "";
    const bool found = ::connect(descriptor, address->ai_addr, address->ai_addrlen) == 0 &&
                       ::getsockname(descriptor, here, &size) == 0 &&
                       ::getnameinfo(here, size, number, sizeof number, nullptr, 0, NI_NUMERICHOST) == 0;
    ::close(descriptor);
    if (found) return number;
  }
  return "";
}

std::string wait_for_listener(const std::string& host, int port, double seconds) {
  constexpr auto pause = std::chrono::milliseconds(50);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (;;) {
    std::string why = try_addresses(host, port, until);
    if (why.empty() || Clock::now() + pause >= until) return why;
    std::this_thread::sleep_for(pause);
  }
}

std::optional<int> socket_on_loopback(const std::string& host, int& port) {
  if (!is_loopback(host)) return std::nullopt;
  Addresses all(nullptr, ::freeaddrinfo);
  if (const std::string why = look_up(host, port, all); !why.empty()) throw std::runtime_error(why);
  int error = 0;
  for (const addrinfo* address = all.get(); address != nullptr && error != EADDRINUSE; address = address->ai_next) {
    if (const int descriptor = bound_socket(*address, port); descriptor >= 0) return descriptor;
    error = errno;
  }
  throw std::runtime_error((error == EADDRINUSE ? "EADDRINUSE: " : "") + std::string(std::strerror(error)));
}

}  // namespace slipway::exec
