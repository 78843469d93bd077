#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>

#include <cstring>
#include <utility>

#include "tests/stream_order/ordered_device.h"

namespace slipway::test {
namespace {

constexpr auto type_of_device = c10::DeviceType::PrivateUse1;
thread_local int current_stream = 0;

struct BytesOf {
  std::size_t bytes = 0;
};

// The size stands before the memory, to find its end (exec/rank/memory_meter.h).
constexpr std::size_t header = 64;

void end_block(void* memory) {
  if (memory == nullptr) return;
  stream_order().freed(memory);
  void* const whole = static_cast<char*>(memory) - header;
  c10::reportMemoryUsageToProfiler(memory, -static_cast<std::int64_t>(static_cast<BytesOf*>(whole)->bytes), 0, 0,
                                   ordered_device);
  c10::free_cpu(whole);
}

class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, ordered_device};
    void* const whole = c10::alloc_cpu(bytes + header);
    static_cast<BytesOf*>(whole)->bytes = bytes;
    void* const memory = static_cast<char*>(whole) + header;
    stream_order().allocated(memory, static_cast<std::int64_t>(bytes), current_stream);
    c10::reportMemoryUsageToProfiler(memory, static_cast<std::int64_t>(bytes), 0, 0, ordered_device);
    return {memory, memory, &end_block, ordered_device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &end_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};

struct Event {
  StreamOrder::Mark mark;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream stream_of(int number) { return c10::Stream(c10::Stream::UNSAFE, ordered_device, number); }
  static int number_of(const c10::Stream& stream) { return static_cast<int>(stream.id()); }

  c10::DeviceType type() const override { return type_of_device; }
  c10::Device exchangeDevice(c10::Device) const override { return ordered_device; }
  c10::Device getDevice() const override { return ordered_device; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return stream_of(current_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream_of(stream_order().new_stream()); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return stream_of(std::exchange(current_stream, number_of(stream)));
  }
  bool queryStream(const c10::Stream&) const override { return false; }
  void synchronizeStream(const c10::Stream& stream) const override {
    stream_order().finish(stream_order().mark(number_of(stream)));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new Event;
    static_cast<Event*>(*event)->mark = stream_order().mark(number_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) stream_order().wait_for(number_of(stream), static_cast<Event*>(event)->mark);
  }
  bool queryEvent(void*) const override { return false; }
  void synchronizeEvent(void* event) const override { stream_order().finish(static_cast<Event*>(event)->mark); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    stream_order().keep_for(memory.get(), number_of(stream));
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// Pinned memory is the processor's.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  at::Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(c10::kCPU); }
};

[[maybe_unused]] const bool known_to_libtorch = [] {
  static Memory memory;
  c10::register_privateuse1_backend("ordered");  // now it is the accelerator, of which autograd asks for streams
  c10::SetAllocator(type_of_device, &memory);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace

StreamOrder& stream_order() {
  static auto* const order = new StreamOrder;  // tensors may outlive statics
  return *order;
}

c10::Allocator& ordered_allocator() { return *c10::GetAllocator(type_of_device); }
int this_stream() { return current_stream; }
void work_on(int stream) { current_stream = stream; }
void finish_this_stream() { stream_order().finish(stream_order().mark(current_stream)); }

}  // namespace slipway::test
