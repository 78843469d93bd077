// Small spaces of layouts, in which every layout can be simulated or loaded.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "scenarios/search/scenario_to_search.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {

// Small models on a few GPUs of round numbers; memory is scarce, so that some layouts do not fit.
struct Small {
  const char* name;
  const char* model;
  const char* memory;
  int nodes, gpus;
  int batch;
  const char* more;
  const char* network = "5 GB/s";
  const char* schedule = "";
};
inline constexpr Small smalls[] = {
    {"llama", "{family: llama, layers: 4, hidden: 64, ffn: 192, heads: 4, kv_heads: 2, vocab: 512, sequence: 64}",
     "3 MB", 1, 4, 8, "layout: {split: balanced}"},
    {"wide llama over two nodes",
     "{family: llama, layers: 6, hidden: 128, ffn: 384, heads: 4, kv_heads: 4, vocab: 256, sequence: 64}", "12 MB", 2,
     2, 12, "run: {clip_norm: 1}"},
    {"tied gpt",
     "{family: gpt, layers: 5, hidden: 64, ffn: 256, heads: 2, vocab: 256, max_positions: 32, sequence: "
     "32}",
     "3 MB", 2, 2, 4, "run: {steps: 1}"},
    {"slow network",
     "{family: llama, layers: 4, hidden: 128, ffn: 384, heads: 4, kv_heads: 4, vocab: 256, sequence: 64}", "8 MB", 4, 1,
     8, "layout: {split: even}", "200 MB/s"},
    {"long sequence",
     "{family: llama, layers: 4, hidden: 64, ffn: 192, heads: 4, kv_heads: 4, vocab: 128, sequence: 1024}", "14 MB", 2,
     2, 4, "run: {clip_norm: 0}"},
    {"unfused and uneven",
     "{family: llama, layers: 7, hidden: 64, ffn: 192, heads: 2, kv_heads: 2, vocab: 1024, sequence: 64}", "5 MB", 2, 2,
     6, "run: {clip_norm: 1}", "5 GB/s", ", kernels: torch"},
};

inline std::string text_of(const Small& small) {
  return std::string("model: ") + small.model +
         "\ncluster: {machine: ./gpu.yaml, nodes: " + std::to_string(small.nodes) +
         ", gpus_per_node: " + std::to_string(small.gpus) + "}\n" + small.more +
         "\nschedule: {name: 1f1b, global_batch: " + std::to_string(small.batch) + small.schedule + "}\n";
}

inline Scenario load(const ScenarioFolder& folder, const Small& small) {
  folder.write("gpu.yaml", std::string("name: gpu\nmemory_bytes: ") + small.memory +
                               "\npeak_flops: {float32: 10 TFLOP/s, bfloat16: 20 TFLOP/s}\n"
                               "memory_bandwidth: 1 TB/s\nlaunch_overhead: 1 us\ngemm_half: 64\n"
                               "node_link: {name: bus, bandwidth: 20 GB/s, latency: 2 us}\n"
                               "network_link: {name: wire, bandwidth: " +
                               small.network + ", latency: 5 us}\n");
  Scenario scenario = scenario_to_search({folder.write("s.yaml", text_of(small))}, {});
  scenario.memory = MemoryConstants{};  // the count alone: libraries are larger than these GPUs
  return scenario;
}

// "wide_llama_over_two_nodes"
inline std::string name_of_small(const testing::TestParamInfo<Small>& of) {
  std::string name = of.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

}  // namespace slipway::test
