#include "exec/rank/memory_meter.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace slipway::exec {

// Outlives the meter, because its tensors may.
struct MeteredRank {
  explicit MeteredRank(c10::DeviceType type) : device(type) {}

  const c10::DeviceType device;
  mutable std::mutex mutex;
  std::int64_t bytes = 0;
  std::vector<std::int64_t*> peaks;  // of the running tasks
  std::vector<MemoryStamp> stamps;

  void change(std::int64_t by) {
    const std::lock_guard lock(mutex);
    bytes += by;
    for (std::int64_t* peak : peaks) *peak = std::max(*peak, bytes);
  }
};

namespace {

// The owner of the memory at an address, in this process. The table is cut into parts, each with its own lock, so that
// lanes seldom contend for one.
class Owners {
 public:
  struct Block {
    std::shared_ptr<MeteredRank> owner;
    std::int64_t bytes = 0;
  };
  std::optional<Block> take(void* address) {
    Part& part = part_of(address);
    const std::lock_guard lock(part.mutex);
    const auto node = part.blocks.extract(address);
    return node.empty() ? std::nullopt : std::optional(node.mapped());
  }
  void put(void* address, Block block) {
    Part& part = part_of(address);
    const std::lock_guard lock(part.mutex);
    part.blocks[address] = std::move(block);
  }

 private:
  struct Part {
    std::mutex mutex;
    std::unordered_map<void*, Block> blocks;
  };
  Part& part_of(void* address) {
    constexpr int alignment_bits = 6;  // lower bits are equal for all
    return parts_[(reinterpret_cast<std::uintptr_t>(address) >> alignment_bits) % parts_.size()];
  }
  std::array<Part, 31> parts_;
};

Owners& owners() {
  static auto* const all = new Owners;  // tensors may outlive statics
  return *all;
}

class Reporter : public c10::MemoryReportingInfoBase {
 public:
  explicit Reporter(std::shared_ptr<MeteredRank> rank) : rank_(std::move(rank)) {}

  // If memory at a known address is allocated again, an uncounted thread freed it.
  void reportMemoryUsage(void* address, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (device.type() != rank_->device) return;
    if (const auto before = owners().take(address)) before->owner->change(-before->bytes);
    if (bytes <= 0) return;
    owners().put(address, {rank_, bytes});
    rank_->change(bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }

 private:
  std::shared_ptr<MeteredRank> rank_;
};

}  // namespace

MemoryMeter::MemoryMeter(c10::DeviceType device) : rank_(std::make_shared<MeteredRank>(device)) { count_this_thread(); }
MemoryMeter::~MemoryMeter() = default;

void MemoryMeter::count_this_thread() {
  c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Reporter>(rank_));
}

void MemoryMeter::measure(TaskId task, int step, const std::function<void()>& work) {
  std::int64_t peak = 0;
  {
    const std::lock_guard lock(rank_->mutex);
    peak = rank_->bytes;
    rank_->peaks.push_back(&peak);
  }
  const auto leave = [&](void*) {
    const std::lock_guard lock(rank_->mutex);
    std::erase(rank_->peaks, &peak);
    rank_->stamps.push_back({step, task, rank_->bytes, peak});
  };
  const std::unique_ptr<std::int64_t, decltype(leave)> guard(&peak, leave);  // also when `work` throws
  work();
}

std::int64_t MemoryMeter::bytes() const {
  const std::lock_guard lock(rank_->mutex);
  return rank_->bytes;
}

std::vector<MemoryStamp> MemoryMeter::stamps() const {
  const std::lock_guard lock(rank_->mutex);
  return rank_->stamps;
}

}  // namespace slipway::exec
