// SimGrid allows one engine per process and does not clean up after it completely. So a simulation runs in a forked
// child. What SimGrid sets (signal handlers, options, memory) ends with it, and standard output stays the parent's. Any
// number of simulations can follow one another or run side by side.
#pragma once

#include <cstddef>
#include <functional>

namespace slipway::sim {

// Zeroed memory, shared with children that are forked later.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* data() const { return data_; }
  // Gives the whole pages within [from, from + bytes) back; they then read as zero.
  void forget(std::size_t from, std::size_t bytes);

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Runs `work` in a forked child and waits for it. Meanwhile calls `tick` in this process about four times a second. An
// exception of `work` is rethrown here as std::runtime_error with the same text; so is the child's death by a signal.
// An exception of `tick` ends the child and reaches the caller.
void run_isolated(const std::function<void()>& work, const std::function<void()>& tick);

}  // namespace slipway::sim
