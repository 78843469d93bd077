// The double of the CUDA runtime (tests/cuda_double/) refuses what the runtime refuses by CUDA's documentation.
// Otherwise tests/exec/cuda_host_test.cpp would show nothing.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace slipway::test {
namespace {

// Error codes of cudaError_t, modes of cudaStreamCaptureMode.
enum Code {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  no_such_event = 400,
  unsupported = 900,
  invalidated = 901,
  unmatched = 903,
  unjoined = 904,
  isolation = 905,
  captured_event = 907
};
enum Mode { global = 0, thread_local_mode = 1, relaxed = 2 };
using Handle = void*;

template <typename... Arguments>
int call(const char* name, Arguments... arguments) {
  static void* const library = dlopen(SLIPWAY_CUDA_DOUBLE "/libcudart.so.13", RTLD_NOW);
  void* const found = library ? dlsym(library, name) : nullptr;
  if (found == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
}

Handle made(const char* maker, unsigned flags) {
  Handle handle = nullptr;
  EXPECT_EQ(call(maker, &handle, flags), success);
  return handle;
}
Handle stream() { return made("cudaStreamCreateWithFlags", 1); }  // non-blocking
Handle event(unsigned flags = 0) { return made("cudaEventCreateWithFlags", flags); }

class Capture : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(call("cudaStreamBeginCapture", captured, int{thread_local_mode}), success); }
  int end() {
    Handle graph = nullptr;
    return call("cudaStreamEndCapture", captured, &graph);
  }
  Handle captured = stream();
};

TEST_F(Capture, EndsWithAGraphWhenNothingWasWrong) { EXPECT_EQ(end(), success); }

TEST_F(Capture, IsBrokenByAHostThatWaitsForTheStream) {
  EXPECT_EQ(call("cudaStreamSynchronize", captured), unsupported);
  EXPECT_EQ(end(), invalidated);
}

TEST_F(Capture, IsBrokenByACopyFromPageableMemory) {
  Handle device = nullptr;
  char host[8] = {};
  int mode = relaxed;
  ASSERT_EQ(call("cudaThreadExchangeStreamCaptureMode", &mode), success);
  EXPECT_EQ(call("cudaMalloc", &device, sizeof host), success) << "allowed in relaxed mode";
  ASSERT_EQ(call("cudaThreadExchangeStreamCaptureMode", &mode), success);
  EXPECT_EQ(call("cudaMemcpyAsync", device, static_cast<void*>(host), sizeof host, 1, captured), unsupported);
  EXPECT_EQ(end(), invalidated);
}

TEST_F(Capture, IsBrokenByAnAllocation) {
  Handle device = nullptr;
  EXPECT_EQ(call("cudaMalloc", &device, std::size_t{8}), unsupported);
  EXPECT_EQ(end(), invalidated);
}

TEST_F(Capture, MayNotWaitForWorkOutsideIt) {
  const Handle other = stream(), mark = event();
  ASSERT_EQ(call("cudaEventRecord", mark, other), success);
  EXPECT_EQ(call("cudaStreamWaitEvent", captured, mark, 0u), isolation);
  EXPECT_EQ(end(), invalidated);
}

TEST_F(Capture, MustBeJoinedByTheStreamsThatItReached) {
  const Handle other = stream(), fork = event(), join = event();
  Handle device = nullptr;
  ASSERT_EQ(call("cudaEventRecord", fork, captured), success);
  ASSERT_EQ(call("cudaStreamWaitEvent", other, fork, 0u), success);
  EXPECT_EQ(call("cudaMemsetAsync", device, 0, std::size_t{0}, other), success);
  EXPECT_EQ(call("cudaEventQuery", fork), captured_event);
  EXPECT_EQ(end(), unjoined);

  ASSERT_EQ(call("cudaStreamBeginCapture", captured, int{thread_local_mode}), success);
  ASSERT_EQ(call("cudaEventRecord", fork, captured), success);
  ASSERT_EQ(call("cudaStreamWaitEvent", other, fork, 0u), success);
  EXPECT_EQ(call("cudaMemsetAsync", device, 0, std::size_t{0}, other), success);
  ASSERT_EQ(call("cudaEventRecord", join, other), success);
  ASSERT_EQ(call("cudaStreamWaitEvent", captured, join, 0u), success);
  EXPECT_EQ(end(), success);
}

TEST(CudaDouble, DoesWhatWasCapturedWhenTheGraphIsLaunched) {
  const Handle on = stream();
  Handle memory = nullptr, graph = nullptr, executable = nullptr;
  ASSERT_EQ(call("cudaMalloc", &memory, std::size_t{1}), success);
  ASSERT_EQ(call("cudaStreamBeginCapture", on, int{thread_local_mode}), success);
  ASSERT_EQ(call("cudaMemsetAsync", memory, 7, std::size_t{1}, on), success);
  ASSERT_EQ(call("cudaStreamEndCapture", on, &graph), success);
  EXPECT_EQ(*static_cast<char*>(memory), 0);
  ASSERT_EQ(call("cudaGraphInstantiateWithFlags", &executable, graph, 0ULL), success);
  ASSERT_EQ(call("cudaGraphLaunch", executable, on), success);
  EXPECT_EQ(*static_cast<char*>(memory), 7);
}

TEST(CudaDouble, HasNoMoreMemoryThanItSays) {
  std::size_t free = 0, total = 0;
  ASSERT_EQ(call("cudaMemGetInfo", &free, &total), success);
  Handle memory = nullptr;
  EXPECT_EQ(call("cudaMalloc", &memory, free + 1), out_of_memory);
  EXPECT_EQ(call("cudaMalloc", &memory, free), success);
  EXPECT_EQ(call("cudaFree", memory), success);
  EXPECT_EQ(call("cudaFree", memory), invalid_value);
}

TEST(CudaDouble, GivesNoTimesOfEventsThatHaveNone) {
  const Handle on = stream(), recorded = event(), never = event(), untimed = event(2);
  ASSERT_EQ(call("cudaEventRecord", recorded, on), success);
  ASSERT_EQ(call("cudaEventRecord", untimed, on), success);
  float milliseconds = 0;
  EXPECT_EQ(call("cudaEventElapsedTime", &milliseconds, recorded, recorded), success);
  EXPECT_EQ(call("cudaEventElapsedTime", &milliseconds, recorded, never), no_such_event);
  EXPECT_EQ(call("cudaEventElapsedTime", &milliseconds, recorded, untimed), no_such_event);
}

}  // namespace
}  // namespace slipway::test
