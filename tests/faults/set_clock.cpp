// Preloaded into the processes of a training (LD_PRELOAD): the time of day differs from the machine's by the seconds that the
// file SLIPWAY_SET_CLOCK holds, at any moment. As with clock_settime, steady clocks go on as they are, and who waits until a
// time of day (LibTorch does) waits by the clock that was set.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

const volatile std::int64_t* shared_offset() {
  static const std::int64_t zero = 0;
  const char* path = std::getenv("SLIPWAY_SET_CLOCK");
  const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &zero;
  void* const page = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  return page == MAP_FAILED ? &zero : static_cast<const std::int64_t*>(page);
}

std::int64_t offset_s() {
  static const volatile std::int64_t* const offset = shared_offset();
  return *offset;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using Real = int (*)(clockid_t, timespec*);
  static const Real real = reinterpret_cast<Real>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int status = real(clock, time);
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += offset_s();
  return status;
}

extern "C" int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  using Real = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  static const Real real = reinterpret_cast<Real>(::dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"));
  constexpr time_t longest_uptime_s = 1'000'000'000;  // a date is later: no condition of a steady clock
  timespec by_machine = *until;
  if (until->tv_sec > longest_uptime_s) by_machine.tv_sec -= offset_s();
  return real(condition, mutex, &by_machine);
}

extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

extern "C" time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}
