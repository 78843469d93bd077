#include "exec/listener.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

namespace slipway {
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

// Empty, or why there are none.
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

}  // namespace

std::string why_not_found(const std::string& host) {
  Addresses all(nullptr, ::freeaddrinfo);
  return look_up(host, 0, all);
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

}  // namespace slipway
