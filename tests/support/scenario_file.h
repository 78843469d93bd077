// Scenario files for tests: text to a temporary folder, and the loader's result.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/load_scenario.h"

namespace slipway::test {

// A folder of its own for each test, removed afterwards.
class ScenarioFolder {
 public:
  ScenarioFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            (std::string("slipway-") + test->test_suite_name() + "-" + test->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScenarioFolder() { std::filesystem::remove_all(path_); }
  ScenarioFolder(const ScenarioFolder&) = delete;
  ScenarioFolder& operator=(const ScenarioFolder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }
  LoadResult load(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    return load_scenario(write("s.yaml", text), overrides);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A machine of round numbers and a sound scenario on four of its ranks, one key a line.
inline const char* test_machine() {
  return "name: box\nmemory_bytes: 16 GB\npeak_flops: {float32: 1 TFLOP/s, bfloat16: 2 TFLOP/s}\n"
         "memory_bandwidth: 100 GB/s\nnode_link: {name: bus, bandwidth: 10 GB/s, latency: 1 us}\n"
         "network_link: {name: wire, bandwidth: 1 GB/s, latency: 5 us}\n";
}
inline const char* sound_scenario() {
  return "model:\n"                 // 1
         "  family: llama\n"        // 2
         "  layers: 8\n"            // 3
         "  hidden: 64\n"           // 4
         "  ffn: 192\n"             // 5
         "  heads: 8\n"             // 6
         "  kv_heads: 4\n"          // 7
         "  vocab: 256\n"           // 8
         "  sequence: 128\n"        // 9
         "cluster:\n"               // 10
         "  machine: ./box.yaml\n"  // 11
         "  nodes: 2\n"             // 12
         "  gpus_per_node: 4\n"     // 13
         "layout:\n"                // 14
         "  tensor: 2\n"            // 15
         "  pipeline: 2\n"          // 16
         "schedule:\n"              // 17
         "  name: 1f1b\n"           // 18
         "  micro_batch: 2\n"       // 19
         "  global_batch: 16\n"     // 20
         "run:\n"                   // 21
         "  steps: 3\n";            // 22
}

}  // namespace slipway::test
