#include "scenarios/commands/worker/channel.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace slipway::scenarios {

// Whose question is open, in all processes of this worker. A child may be killed while it asks: the next one takes the turn
// over, and drops the answer that comes late.
struct Channel::Turn {
  pthread_mutex_t mutex;
  std::uint64_t questions;
};

namespace {

[[noreturn]] void throw_errno(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

// A descriptor of the same file that children of exec do not get, with /dev/null in its place.
int taken(int file, int null) {
  const int own = fcntl(file, F_DUPFD_CLOEXEC, 3);
  if (own < 0 || dup2(null, file) < 0) throw_errno("the worker's pipes");
  return own;
}

class Held {
 public:
  explicit Held(pthread_mutex_t& mutex) : mutex_(mutex) {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  ~Held() { pthread_mutex_unlock(&mutex_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace

Channel::Channel() : shared_(sizeof(Turn)) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) throw_errno("/dev/null");
  in_ = taken(STDIN_FILENO, null);
  out_ = taken(STDOUT_FILENO, null);
  close(null);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&turn().mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

Channel::~Channel() {
  close(in_);
  close(out_);
}

Channel::Turn& Channel::turn() const { return *std::launder(reinterpret_cast<Turn*>(shared_.data())); }

std::optional<std::string> Channel::read_line() {
  char part[1 << 16];
  std::size_t searched = 0;
  for (;;) {
    if (const std::size_t end = read_.find('\n', searched); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    searched = read_.size();
    const ssize_t size = ::read(in_, part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
    read_.append(part, static_cast<std::size_t>(size));
  }
}

// In one call where the pipe has room, so that lines of several processes do not mix.
void Channel::write_line(std::string line) {
  line += '\n';
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t size = ::write(out_, line.data() + written, line.size() - written);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw_errno("the worker cannot write its answer");
    written += static_cast<std::size_t>(size);
  }
}

nlohmann::json Channel::ask(const nlohmann::json& id, const nlohmann::json& shape) {
  const Held mine(turn().mutex);
  const std::uint64_t number = ++turn().questions;
  write_line(nlohmann::json{{"id", id}, {"ask", number}, {"shape", shape}}.dump());
  while (const std::optional<std::string> line = read_line()) {
    nlohmann::json answer = nlohmann::json::parse(*line, nullptr, false);
    if (answer.is_object() && answer.value("ask", std::uint64_t{0}) == number) return answer;
  }
  throw std::runtime_error("the caller of this worker is gone");
}

}  // namespace slipway::scenarios
