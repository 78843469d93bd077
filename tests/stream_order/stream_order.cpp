#include "tests/stream_order/stream_order.h"

#include <algorithm>
#include <cstdio>

namespace slipway::test {
namespace {

std::int64_t time_in(const StreamClock& clock, int stream) {
  const auto at = static_cast<std::size_t>(stream);
  return at < clock.size() ? clock[at] : 0;
}

void merge(StreamClock& into, const StreamClock& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

bool overlap(const ByteRange& a, const ByteRange& b) { return a.begin < b.end && b.begin < a.end; }
bool covers(const ByteRange& whole, const ByteRange& part) {
  return whole.begin <= part.begin && part.end <= whole.end;
}

}  // namespace

int StreamOrder::new_stream() {
  const std::lock_guard lock(mutex_);
  const auto stream = static_cast<int>(clocks_.size());
  clocks_.push_back(finished_);
  clocks_.back().resize(clocks_.size());
  clocks_.back().back() = 1;  // now; other streams know 0 of it
  return stream;
}

StreamOrder::Mark StreamOrder::mark(int stream) {
  const std::lock_guard lock(mutex_);
  StreamClock& clock = clocks_[stream];
  merge(clock, finished_);
  auto mark = std::make_shared<const StreamClock>(clock);
  ++clock[stream];
  return mark;
}

void StreamOrder::wait_for(int stream, const Mark& mark) {
  const std::lock_guard lock(mutex_);
  merge(clocks_[stream], *mark);
}

void StreamOrder::finish(const Mark& mark) {
  const std::lock_guard lock(mutex_);
  merge(finished_, *mark);
}

bool StreamOrder::is_behind(int stream, const Past& past) const {
  return past.stream == stream || time_in(finished_, past.stream) >= past.time ||
         time_in(clocks_[stream], past.stream) >= past.time;
}

void StreamOrder::allocated(const void* block, std::int64_t bytes, int stream) {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = clocks_[stream][stream];
  blocks_[block] = {bytes, stream, {}, {{{0, bytes}, stream, now, Access::write, "its allocation"}}};
}

void StreamOrder::keep_for(const void* block, int stream) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(block);
  if (found != blocks_.end()) found->second.kept_for.push_back(stream);
}

// The allocator may next give this block to the stream it came from, once the streams that it was kept for have reached
// their present places.
void StreamOrder::freed(const void* block) {
  const std::lock_guard lock(mutex_);
  const auto node = blocks_.extract(block);
  if (node.empty()) return;
  const Block& mine = node.mapped();
  for (const Past& past : mine.past) {
    if (past.stream == mine.stream) continue;
    const bool over = is_behind(mine.stream, past) || std::any_of(mine.kept_for.begin(), mine.kept_for.end(),
                                                                  [&](int kept) { return is_behind(kept, past); });
    if (over) {
      ++ordered_;
      continue;
    }
    report("memory is free for stream " + std::to_string(mine.stream) + " before " + past.what + " on stream " +
           std::to_string(past.stream) + " is over (" + std::to_string(mine.bytes) + " bytes; not kept for it)");
  }
}

void StreamOrder::use(int stream, const void* block, ByteRange part, Access access, const std::string& what) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return report(what + " uses memory that is none of the device's, or free");
  Block& mine = found->second;
  for (const Past& past : mine.past) {
    if (!overlap(past.part, part) || past.stream == stream) continue;
    if (access == Access::read && past.access == Access::read) continue;
    if (is_behind(stream, past)) {
      ++ordered_;
      continue;
    }
    report(what + " on stream " + std::to_string(stream) + (access == Access::read ? " reads" : " writes") + " what " +
           past.what + " on stream " + std::to_string(past.stream) +
           (past.access == Access::read ? " may not have read yet" : " may not have written yet") + " (bytes " +
           std::to_string(part.begin) + " to " + std::to_string(part.end) + " of " + std::to_string(mine.bytes) + ")");
  }
  // A stream behind this one is also behind those that it covers.
  std::erase_if(mine.past, [&](const Past& past) {
    if (!covers(part, past.part)) return false;
    return past.stream == stream ? access == Access::write || past.access == Access::read
                                 : access == Access::write && is_behind(stream, past) && is_behind(mine.stream, past);
  });
  const std::int64_t now = clocks_[stream][stream];
  mine.past.push_back({part, stream, now, access, what});
}

void StreamOrder::complain(const std::string& race) {
  const std::lock_guard lock(mutex_);
  report(race);
}

void StreamOrder::report(const std::string& race) { ++races_[race]; }

std::vector<std::string> StreamOrder::races() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [race, times] : races_) all.push_back(race);
  return all;
}

std::int64_t StreamOrder::ordered() const {
  const std::lock_guard lock(mutex_);
  return ordered_;
}

}  // namespace slipway::test
