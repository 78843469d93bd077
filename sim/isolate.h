// SimGrid allows one engine per process and never quite cleans up after it. So a simulation runs in a
// forked child: whatever SimGrid sets (signal handlers, options, memory) dies with it, standard output
// stays ours, and any number of simulations can follow one another or run side by side.
#pragma once

#include <cstddef>
#include <functional>

namespace slipway::sim {

// Zeroed memory that a child forked later shares with us.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* data() const { return data_; }
  // Gives the whole pages of [from, from + bytes) back; they read as zero then.
  void forget(std::size_t from, std::size_t bytes);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Runs `work` in a forked child and waits for it; calls `tick` in this process about four times a second
// meanwhile. An exception of `work` is thrown again here as std::runtime_error with the same text; so is
// the child's death by a signal. An exception of `tick` ends the child and goes on to the caller.
void run_isolated(const std::function<void()>& work, const std::function<void()>& tick);

}  // namespace slipway::sim
