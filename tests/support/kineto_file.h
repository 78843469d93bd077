// A made-up trace of PyTorch's profiler, in the form in which Kineto writes one: operators with shapes on a host thread,
// launches inside them, kernels on streams. Times are in seconds from the trace's beginning.
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace slipway::test {

// "[[4096, 1024], [1024, 512]]" and "[\"c10::BFloat16\", \"c10::BFloat16\"]".
struct KinetoShapes {
  std::string dims, types, values = "[]";
};

class KinetoFile {
 public:
  explicit KinetoFile(std::string device = "NVIDIA H100 80GB HBM3", int rank = 0, int world = 1, int devices = 8)
      : device_(std::move(device)), rank_(rank), world_(world), devices_(devices) {}

  // An operator or annotation on the host; its launches lie inside.
  void op(const std::string& name, double start_s, double end_s, const KinetoShapes& shapes = {},
          const std::string& category = "cpu_op", int thread = 100) {
    std::string args = fmt::format("\"External id\": {}", ++external_);
    if (!shapes.dims.empty())
      args += fmt::format(", \"Input Dims\": {}, \"Input type\": {}, \"Concrete Inputs\": {}", shapes.dims,
                          shapes.types, shapes.values);
    event(category, name, fmt::format("\"pid\": 1, \"tid\": {}", thread), start_s, end_s - start_s, args);
  }
  // Launched at launch_s by the host thread.
  void kernel(const std::string& name, double launch_s, double start_s, double seconds, int stream = 7,
              int thread = 100, const std::string& more = "", const std::string& category = "kernel") {
    ++correlation_;
    event("cuda_runtime", "cudaLaunchKernel", fmt::format("\"pid\": 1, \"tid\": {}", thread), launch_s, 1e-6,
          fmt::format("\"cbid\": 211, \"correlation\": {}", correlation_));
    event(category, name, fmt::format("\"pid\": 0, \"tid\": {}", stream), start_s, seconds,
          fmt::format("\"device\": {}, \"stream\": {}, \"correlation\": {}{}", rank_ % devices_, stream, correlation_,
                      more));
  }
  // A collective of NCCL on a stream of its own.
  void message(const std::string& collective, double elements_in, double elements_out, const std::string& dtype,
               int members, const std::string& ranks, const std::string& description, double launch_s, double start_s,
               double seconds) {
    kernel("ncclDevKernel_" + collective + "_RING_LL(ncclDevKernelArgsStorage<4096ul>)", launch_s, start_s, seconds, 20,
           100,
           fmt::format(
               ", \"Collective name\": \"{}\", \"In msg nelems\": {:.0f}, \"Out msg nelems\": {:.0f}, \"Group size\": "
               "{}, \"dtype\": \"{}\", \"Process Group Name\": \"1\", \"Process Group Description\": \"{}\", "
               "\"Process Group Ranks\": \"{}\"",
               collective, elements_in, elements_out, members, dtype, description, ranks));
  }

  std::string text() const {
    std::string devices;
    for (int i = 0; i < devices_; ++i)
      devices += fmt::format("{}{{\"id\": {}, \"name\": \"{}\", \"totalGlobalMem\": 85018279936, \"numSms\": 132}}",
                             i == 0 ? "" : ", ", i, device_);
    return fmt::format(
        "{{\n\"schemaVersion\": 1,\n\"deviceProperties\": [{}],\n\"distributedInfo\": {{\"backend\": "
        "\"nccl\", \"rank\": {}, \"world_size\": {}}},\n\"traceEvents\": [\n{}\n],\n\"traceName\": "
        "\"made.json\"\n}}\n",
        devices, rank_, world_, events_);
  }
  void write(const std::string& path) const { std::ofstream(path) << text(); }
  void write_gzip(const std::string& path) const {
    const std::string all = text();
    const gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, all.data(), static_cast<unsigned>(all.size()));
    gzclose(file);
  }

 private:
  void event(const std::string& category, const std::string& name, const std::string& place, double start_s,
             double seconds, const std::string& args) {
    constexpr double beginning_us = 4203669603187.439, us = 1e6;
    events_ += fmt::format(
        "{}{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", {}, \"ts\": {:.3f}, \"dur\": {:.3f}, \"args\": {{{}}}}}",
        events_.empty() ? "" : ",\n", category, name, place, beginning_us + us * start_s, us * seconds, args);
  }

  std::string device_, events_;
  int rank_, world_, devices_, external_ = 0, correlation_ = 0;
};

}  // namespace slipway::test
