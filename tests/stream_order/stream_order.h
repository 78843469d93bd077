// Finds what would be a race on a device with queues (exec/lanes/device_queue.h), without one. It gets everything that
// streams start, and checks that marks and waits put each access behind the accesses that it must not overtake.
//
//   stream a   write x │ mark m │                a's clock: 1
//   stream b            wait m │ read x          b's clock holds a's 1: ordered
//
// Without the wait it is a race, however late the read starts after the write.
//
// A stream's clock holds, for its own and every other stream's marks, the last one that it is behind (vector clocks,
// Mattern 1988; kept by access as in FastTrack, Flanagan 2009). What the host has waited for is before everything that
// is started later. Waits between threads of the host are no order: on a device they only decide when something starts.
//
// Memory is that of a caching allocator with streams. A freed block is its first stream's again at once, even while
// another stream still uses it, unless it was kept for that one. So to allocate is to write. When a block is freed, its
// own stream, or one that it was kept for, must be behind all accesses of others.
// Plain C++. Guarded by tests/stream_order/stream_order_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace slipway::test {

using StreamClock = std::vector<std::int64_t>;  // by stream: its marks that are over; missing entries: none

// A part of a block.
struct ByteRange {
  std::int64_t begin = 0, end = 0;
};

class StreamOrder {
 public:
  using Mark = std::shared_ptr<const StreamClock>;

  // Stream 0 is there: where threads begin.
  StreamOrder() { new_stream(); }
  // The new stream is behind what the host has waited for so far.
  int new_stream();
  Mark mark(int stream);
  void wait_for(int stream, const Mark& mark);
  void finish(const Mark& mark);

  void allocated(const void* block, std::int64_t bytes, int stream);
  void keep_for(const void* block, int stream);
  void freed(const void* block);
  enum class Access : std::uint8_t { read, write };
  // `what`: for the message.
  void use(int stream, const void* block, ByteRange part, Access access, const std::string& what);
  // Reports another error: a read by the host that is too early.
  void complain(const std::string& race);

  std::vector<std::string> races() const;  // each kind once
  // Number of accesses that had to be behind another stream's and were.
  std::int64_t ordered() const;

 private:
  struct Past {
    ByteRange part;
    int stream = 0;
    std::int64_t time = 0;  // of its stream
    Access access = Access::read;
    std::string what;
  };
  struct Block {
    std::int64_t bytes = 0;
    int stream = 0;
    std::vector<int> kept_for;
    std::vector<Past> past;
  };
  bool is_behind(int stream, const Past& past) const;
  void report(const std::string& race);

  mutable std::mutex mutex_;
  std::vector<StreamClock> clocks_;  // by stream
  StreamClock finished_;
  std::map<const void*, Block> blocks_;
  std::map<std::string, int> races_;
  std::int64_t ordered_ = 0;
};

}  // namespace slipway::test
