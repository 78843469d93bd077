// A link between two network namespaces that delays frames, as a long cable does:
//
//   delay NAMESPACE DEVICE NAMESPACE DEVICE MICROSECONDS       TAP ── queue of frames with their time ── TAP
//
// It makes a TAP device in each namespace, prints "ready", and passes each frame from one to the other, in order,
// MICROSECONDS after it came, in both directions. A kernel with netem needs no such program. Its cost is a read and a write
// of each frame. SIGTERM ends it; then it prints how many frames it has passed and its seconds of processor time.
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

namespace {

using Nanoseconds = std::int64_t;

struct Frame {
  Nanoseconds due;
  std::vector<char> bytes;
};

// One direction.
struct Way {
  int from, to;
  std::deque<Frame> queue{};
};

volatile std::sig_atomic_t ended = 0;

Nanoseconds now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * Nanoseconds{1'000'000'000} + time.tv_nsec;
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void enter(const char* name) {
  const int own = open(("/run/netns/" + std::string(name)).c_str(), O_RDONLY);
  if (own < 0 || setns(own, CLONE_NEWNET) != 0) fail(name);
  close(own);
}

// Without offloads: the kernel hands over frames as they are on a wire, with their checksums.
int open_tap(const char* name) {
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (device < 0) fail("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (ioctl(device, TUNSETIFF, &request) != 0) fail(name);
  return device;
}

std::uint64_t take(Way& way, Nanoseconds delay) {
  static char bytes[1 << 16];
  std::uint64_t frames = 0;
  for (ssize_t size = 0; (size = read(way.from, bytes, sizeof bytes)) > 0; ++frames)
    way.queue.push_back({now() + delay, {bytes, bytes + size}});
  return frames;
}

void pass_on(Way& way) {
  while (!way.queue.empty() && way.queue.front().due <= now()) {
    const std::vector<char>& bytes = way.queue.front().bytes;
    if (write(way.to, bytes.data(), bytes.size()) < 0 && (errno == EAGAIN || errno == ENOBUFS)) return;
    way.queue.pop_front();
  }
}

// Until the next frame is due; at most a second.
timespec pause_of(const Way* ways) {
  Nanoseconds wait = 1'000'000'000;
  for (int i = 0; i < 2; ++i)
    if (!ways[i].queue.empty()) wait = std::min(wait, std::max<Nanoseconds>(0, ways[i].queue.front().due - now()));
  return {wait / 1'000'000'000, wait % 1'000'000'000};
}

}  // namespace

int main(int count, char** words) {
  if (count != 6) {
    std::fputs("usage: delay NAMESPACE DEVICE NAMESPACE DEVICE MICROSECONDS\n", stderr);
    return 2;
  }
  enter(words[1]);
  const int one = open_tap(words[2]);
  enter(words[3]);
  const int other = open_tap(words[4]);
  const Nanoseconds delay = std::atoll(words[5]) * 1000;
  Way ways[] = {{one, other}, {other, one}};
  struct sigaction end {};
  end.sa_handler = [](int) { ended = 1; };
  sigaction(SIGTERM, &end, nullptr);
  std::puts("ready");
  std::fflush(stdout);
  std::uint64_t frames = 0;
  while (!ended) {
    pollfd arriving[] = {{one, POLLIN, 0}, {other, POLLIN, 0}};
    const timespec pause = pause_of(ways);
    ppoll(arriving, 2, &pause, nullptr);
    for (Way& way : ways) frames += take(way, delay), pass_on(way);
  }
  std::printf("%llu frames, %.3f s of processor time\n", static_cast<unsigned long long>(frames),
              static_cast<double>(now(CLOCK_PROCESS_CPUTIME_ID)) * 1e-9);
}
