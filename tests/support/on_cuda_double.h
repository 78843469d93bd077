// Runs of slipway-rank-cuda over NVIDIA's libraries that do nothing (tests/cuda_double/), and the calls that they made.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/rank_processes.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {

inline std::string preloaded() {
  std::string paths;
  for (const auto& entry : std::filesystem::directory_iterator(SLIPWAY_CUDA_DOUBLE)) {
    const std::string name = entry.path().filename();
    const std::size_t version = name.find(".so.");
    if (version != std::string::npos && name.find_first_not_of("0123456789", version + 4) == std::string::npos)
      paths += entry.path().string() + " ";
  }
  return paths;
}

struct OnDouble {
  std::string folder;
  std::vector<Ended> processes;

  std::vector<std::string> files(const std::string& prefix) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/calls")) {
      const std::string name = entry.path().filename();
      if (name.starts_with(prefix)) found.push_back(name);
    }
    return found;
  }
  // Number of launches of each kernel and of each counted call, over all processes.
  std::map<std::string, long> calls() const {
    std::map<std::string, long> counts;
    for (const std::string& name : files("launches.")) {
      std::ifstream file(folder + "/calls/" + name);
      long count = 0;
      for (std::string what; file >> count && file.ignore() && std::getline(file, what);) counts[what] += count;
    }
    return counts;
  }
  long calls_of(const std::string& part) const {
    long sum = 0;
    for (const auto& [name, count] : calls())
      if (name.find(part) != std::string::npos) sum += count;
    return sum;
  }
  // Number of kernels launched one by one. Their mangled names have this prefix; names of C functions do not.
  long kernels() const {
    long sum = 0;
    for (const auto& [name, count] : calls())
      if (name.starts_with("_Z") || name.starts_with("cublas")) sum += count;
    return sum;
  }
};

inline OnDouble run_on_double(const Bundle& bundle, int processes, std::vector<std::string> more = {},
                              std::map<std::string, std::string> environment = {}) {
  static int count = 0;
  const std::string folder = temporary_folder().path("cuda" + std::to_string(count++));
  std::filesystem::create_directories(folder + "/calls");
  write_bundle_file(folder + "/run.slip", bundle);
  std::vector<std::string> words{folder + "/run.slip",
                                 "--out",
                                 folder,
                                 "--threads",
                                 "1",
                                 "--connect-timeout",
                                 "60",
                                 "--ranks-per-process",
                                 std::to_string(rank_count(bundle.graph.step.layout) / processes)};
  words.insert(words.end(), more.begin(), more.end());
  environment.insert({{"LD_PRELOAD", preloaded()},
                      {"SLIPWAY_DOUBLE_LAUNCHES", folder + "/calls"},
                      {"SLIPWAY_DOUBLE_GPUS", std::to_string(processes)}});
  RankProcesses ranks(SLIPWAY_CUDA_RANK_PROGRAM, words, processes, folder, environment);
  return {folder, ranks.wait(240)};
}

inline void expect_success(const OnDouble& run) {
  for (const Ended& process : run.processes) {
    EXPECT_EQ(process.status, 0) << process.errors;
    EXPECT_EQ(process.errors, "");
  }
}

inline Bundle bundle_of(Step input, int steps, Dtype dtype = Dtype::float64) {
  input.dtype = dtype;
  input.gradient_dtype = dtype == Dtype::float64 ? dtype : Dtype::float32;
  input.clip_norm = 1;
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = steps;
  return bundle;
}

inline Step ring(const Degrees& degrees) {
  Step input = with_layout(tiny_llama(4, true), degrees);
  input.layout.context_exchange = ContextExchange::ring;
  return input;
}

inline Step scheduled(const std::string& schedule, const Degrees& degrees) {
  Step input = with_layout(tiny_llama(8, false), degrees);
  input.schedule = schedule;
  return input;
}

}  // namespace slipway::test
