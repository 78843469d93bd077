// Random small scenarios, and the smallest of those that show a defect. A number always gives the same scenario, with
// every compiler.
//
//   number ──► keys ──► text of a scenario      drawn_scenario(17).yaml()
//   keys that show a defect ──► one key less, or a smaller number, as long as it shows ──► smallest(...)
//
// Keys are drawn one by one, so some scenarios are refused by the rule book; most are not.
// Guarded by tests/scenarios/drawn_scenarios_test.cpp.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schedules/step/action.h"

namespace slipway::test {

struct DrawnScenario {
  std::vector<std::pair<std::string, std::string>> keys;  // "layout.tensor", "2"

  void set(const std::string& key, const std::string& value) { keys.emplace_back(key, value); }
  void set(const std::string& key, std::int64_t value) { set(key, std::to_string(value)); }

  // Sections in the order of their first key.
  std::string yaml() const {
    std::vector<std::string> sections;
    for (const auto& [key, value] : keys)
      if (std::string section = key.substr(0, key.find('.'));
          std::find(sections.begin(), sections.end(), section) == sections.end())
        sections.push_back(std::move(section));
    std::string text;
    for (const std::string& section : sections) {
      text += section + ":\n";
      for (const auto& [key, value] : keys)
        if (key.starts_with(section + ".")) text += "  " + key.substr(section.size() + 1) + ": " + value + "\n";
    }
    return text;
  }
};

// The machines that drawn scenarios name: files beside the scenario. `speed`: of compute, by that of gpu.yaml.
inline std::string drawn_machine(const std::string& name, double speed, const std::string& more = "") {
  const auto times = [&](double number, const char* unit) { return std::to_string(number * speed) + unit; };
  return "name: " + name + "\nmemory_bytes: 16 GB\npeak_flops: {float32: " + times(1, " TFLOP/s") +
         ", bfloat16: " + times(2, " TFLOP/s") + ", fp8: " + times(4, " TFLOP/s") + "}\n" +
         "memory_bandwidth: " + times(100, " GB/s") +
         "\ngemm_half: 64\nfactorization_half: 64\nlaunch_overhead: 2 us\nreduce_bandwidth: 50 GB/s\n" +
         "node_link: {name: bus, bandwidth: 10 GB/s, latency: 2 us}\n" +
         "network_link: {name: wire, bandwidth: 1 GB/s, latency: 5 us}\n" +
         "host_to_device: {name: pcie, bandwidth: 5 GB/s, latency: 2 us}\n" +
         "device_to_host: {name: pcie, bandwidth: 5 GB/s, latency: 2 us}\nhost_memory_bandwidth: 20 GB/s\n" + more;
}
inline std::vector<std::pair<std::string, std::string>> drawn_machines() {
  return {{"gpu.yaml", drawn_machine("gpu", 1)},
          {"slow.yaml", drawn_machine("slow", 0.6)},
          {"beside.yaml", drawn_machine("beside", 1, "overlap_slowdown: 1.25\n")},
          {"cores.yaml", drawn_machine("cores", 0.1, "cores: 2\n")}};
}

class ScenarioDraw {
 public:
  explicit ScenarioDraw(std::uint64_t number) : random_(number) {
    random_.discard(8);  // neighbours begin alike
  }

  DrawnScenario draw() {
    ranks_ = one_of({1, 2, 4, 4, 8, 8, 8, 16});
    is_long_ = ranks_ <= 4 && one_in(3);  // micro-batches enough to leave most of them out
    draw_degrees();
    draw_model();
    draw_cluster();
    draw_layout();
    draw_schedule();
    draw_run();
    return std::move(drawn_);
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }
  bool one_in(int count) { return below(count) == 0; }
  template <typename T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<int>(list.size())));
  }
  const char* word(std::initializer_list<const char*> list) { return one_of(list); }

  void draw_degrees() {
    do {
      tensor_ = one_of({1, 1, 2, 4}), context_ = one_of({1, 1, 1, 2}), pipeline_ = one_of({1, 2, 2, 4, 8});
    } while (ranks_ % (tensor_ * context_ * pipeline_) != 0);
    data_ = ranks_ / (tensor_ * context_ * pipeline_);
    const std::vector<Schedule>& all = all_schedules();
    schedule_ = pipeline_ == 1 && !one_in(5) ? schedule_named("1f1b")
                                             : &all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
    chunks_ = schedule_->default_chunks > 1 && one_in(4) && schedule_->searched ? one_of({2, 3, 4})
                                                                                : schedule_->default_chunks;
    stages_ = pipeline_ * chunks_;
  }

  void draw_model() {
    const bool small = is_long_ || ranks_ > 8;
    const int kind = below(12);
    has_experts_ = kind < 4;
    family_ = kind < 9 ? "llama" : kind < 11 ? "gpt" : "bert";
    layers_ = std::max(stages_, small ? one_of({2, 4}) : one_of({2, 4, 5, 8})) + (one_in(6) ? 1 : 0);
    heads_ = one_of({4, 4, 8});
    drawn_.set("model.family", family_);
    drawn_.set("model.layers", layers_);
    drawn_.set("model.hidden", one_of({64, 128}));
    drawn_.set("model.ffn", has_experts_ ? one_of({32, 64}) : one_of({128, 192, 256}));
    drawn_.set("model.heads", heads_);
    drawn_.set("model.vocab", one_of({256, 512, 4096}));
    sequence_ = one_of({32, 64, 128});
    drawn_.set("model.sequence", sequence_);
    if (family_ != std::string("llama")) {
      drawn_.set("model.max_positions", sequence_);
      if (one_in(2)) drawn_.set("model.tied", word({"true", "false"}));
      return;
    }
    drawn_.set("model.kv_heads", one_of({1, 2, heads_, heads_}));
    if (has_experts_) draw_experts();
    draw_blocks();
  }

  void draw_experts() {
    drawn_.set("model.experts", 8);
    drawn_.set("model.experts_per_token", one_of({1, 2}));
    if (one_in(2)) drawn_.set("model.shared_ffn", 64);
    if (one_in(5)) drawn_.set("model.dense_layers", 1);
    if (one_in(8)) drawn_.set("model.experts_every", 2);
  }

  void draw_blocks() {
    if (one_in(3)) drawn_.set("model.tied", "true");
    if (one_in(6)) drawn_.set("model.qkv_bias", "true");
    if (one_in(6)) drawn_.set("model.qk_norm", "true");
    if (one_in(8)) drawn_.set("model.window", 16);
    if (one_in(10)) drawn_.set("model.predicted_tokens", 1);
    if (one_in(10)) drawn_.set("model.norms", word({"result", "both"}));
    if (one_in(10)) drawn_.set("model.mlp", word({"swiglu", "gelu", "geglu"}));
    if (one_in(10)) {
      drawn_.set("model.kv_latent", 32);
      drawn_.set("model.rope_head_dim", 8);
      drawn_.set("model.qk_head_dim", 16);
      drawn_.set("model.v_head_dim", 16);
      if (one_in(2)) drawn_.set("model.q_latent", 48);
    }
  }

  void draw_cluster() {
    const int per_gpu = ranks_ > 1 && one_in(14) ? 2 : 1, gpus = ranks_ / per_gpu;
    do nodes_ = one_of({1, 1, 2, 2, 4, 8});
    while (gpus % nodes_ != 0);
    const int gpus_per_node = gpus / nodes_;
    if (per_gpu > 1) drawn_.set("cluster.ranks_per_gpu", per_gpu);
    if (nodes_ > 1 && one_in(8)) {
      const std::string half =
          ".yaml, nodes: " + std::to_string(nodes_ / 2) + ", gpus_per_node: " + std::to_string(gpus_per_node) + "}";
      drawn_.set("cluster.groups", "[{machine: ./gpu" + half + ", {machine: ./slow" + half + "]");
    } else {
      is_measured_ = one_in(3);
      drawn_.set("cluster.machine", is_measured_ ? word({"h100-80gb", "a100-80gb", "l40s"})
                                                 : word({"./gpu.yaml", "./gpu.yaml", "./gpu.yaml", "./gpu.yaml",
                                                         "./slow.yaml", "./beside.yaml", "./cores.yaml"}));
      drawn_.set("cluster.nodes", nodes_);
      drawn_.set("cluster.gpus_per_node", gpus_per_node);
      if (is_measured_ && one_in(2))
        drawn_.set("cluster.trainer", word({"generic", "megatron-core", "torchtitan", "deepspeed", "nanotron",
                                            "megatron-bridge", "llm-foundry"}));
    }
    if (one_in(4)) drawn_.set("cluster.collectives", word({"ring", "multi-ring", "tree", "hierarchical", "nccl"}));
    draw_network(gpus_per_node);
    draw_degradation(gpus_per_node);
  }

  void draw_network(int gpus_per_node) {
    if (nodes_ == 1 || gpus_per_node == 1 || is_measured_ || !one_in(6)) return;
    const std::string port = one_in(2) ? ", gpus_per_port: " + std::to_string(gpus_per_node) : "";
    const std::string topology =
        word({"", "", ", topology: {kind: fat-tree, shape: [4], oversubscription: 2}", ", topology: rail-optimised"});
    drawn_.set("cluster.fabrics", "[{scope: node, bandwidth: 10 GB/s, latency: 2 us}, {scope: cluster, bandwidth: " +
                                      std::string(word({"1 GB/s", "100 MB/s"})) + ", latency: 5 us" + port + topology +
                                      "}]");
  }

  void draw_degradation(int gpus_per_node) {
    if (one_in(12))
      drawn_.set("cluster.stragglers", word({"[{node: 0, slowdown: 1.4}]", "[{node: 0, gpu: 0, slowdown: 1.4}]",
                                             "[{sigma: 0.1, distribution: lognormal, seed: 3}]"}));
    if (one_in(14) && (nodes_ > 1 || gpus_per_node > 1))
      drawn_.set("cluster.slow_links", word({"[{node: 0, bandwidth: 0.5}]", "[{node: 0, bandwidth: 0.3, gpu: 0}]",
                                             "[{node: 0, bandwidth: 0.7, period: 1 ms, down: 0.2}]"}));
    if (one_in(20) && nodes_ > 1) drawn_.set("cluster.link_factors", "[{nodes: [0, 1], factor: 0.4}]");
  }

  void draw_layout() {
    if (tensor_ > 1) {
      drawn_.set("layout.tensor", tensor_);
      if (has_experts_ || one_in(2)) drawn_.set("layout.sequence_parallel", "true");
    }
    if (pipeline_ > 1) drawn_.set("layout.pipeline", pipeline_);
    if (chunks_ != schedule_->default_chunks) drawn_.set("layout.chunks", chunks_);
    if (context_ > 1) {
      drawn_.set("layout.context", context_);
      if (one_in(2)) drawn_.set("layout.context_exchange", word({"ring", "all-gather"}));
    }
    uses_kfac_ = !has_experts_ && tensor_ == 1 && family_ != std::string("bert") && one_in(5);
    if (data_ * context_ > 1 && !uses_kfac_ && !one_in(4))
      drawn_.set("layout.zero", schedule_->copies > 1 ? one_of({0, 1}) : one_of({1, 2, 3}));
    if (data_ * context_ > 2 && one_in(8)) drawn_.set("layout.replicate", 2);
    if (has_experts_) draw_expert_layout();
    if (stages_ > 1 && one_in(5)) drawn_.set("layout.split", one_in(2) ? "balanced" : uneven_split());
    if (nodes_ > 1 && one_in(12)) drawn_.set("layout.placement", backwards(nodes_));
  }

  void draw_expert_layout() {
    const int whole = tensor_ > 1 && one_in(2) ? 1 : 0, cut = whole == 1 ? 1 : tensor_;
    int expert = one_of({1, 2, 2, 4, 8});
    while (expert > 1 && (tensor_ * context_ * data_) % (expert * cut) != 0) expert /= 2;
    if (whole == 1) drawn_.set("layout.expert_tensor", whole);
    if (expert > 1) drawn_.set("layout.expert", expert);
    if (expert > 1 && one_in(2)) drawn_.set("layout.dispatcher", word({"alltoall", "allgather", "deepep", "hybridep"}));
  }

  // The first stage has a layer less, the last one more.
  std::string uneven_split() const {
    std::string text;
    for (int stage = 0; stage < stages_; ++stage) {
      int layers = layers_ / stages_ + (stage < layers_ % stages_ ? 1 : 0);
      if (stage == 0) --layers;
      if (stage == stages_ - 1) ++layers;
      text += (text.empty() ? "[" : ", ") + std::to_string(layers);
    }
    return text + "]";
  }
  static std::string backwards(int nodes) {
    std::string text;
    for (int node = nodes - 1; node >= 0; --node) text += (text.empty() ? "[" : ", ") + std::to_string(node);
    return text + "]";
  }

  void draw_schedule() {
    drawn_.set("schedule.name", schedule_->name);
    const int micro_batch = one_of({1, 1, 2});
    const int rounds = is_long_ ? one_of({24, 36, 50}) : one_of({1, 2, 2, 3});
    const int off = one_in(6) ? 1 : 0;  // no multiple of the pipeline
    batch_ = micro_batch * data_ * (pipeline_ * rounds + off);
    if (micro_batch > 1) drawn_.set("schedule.micro_batch", micro_batch);
    drawn_.set("schedule.global_batch", batch_);
    if (schedule_->default_slices > 1 ? one_in(2) : !has_experts_ && context_ == 1 && one_in(12))
      drawn_.set("schedule.slices", one_of({1, 2, 4}));
    if (one_in(3))
      drawn_.set("schedule.recompute", word({"selective", "full", "full"}));
    else if (one_in(6))
      drawn_.set("schedule.recompute_modules", word({"[core_attn]", "[mlp]", "[layernorm]", "[core_attn, mlp]"}));
    if (one_in(10)) drawn_.set("schedule.offload", word({"[core_attn]", "[qkv_linear, mlp_norm]", "[attn_norm]"}));
    if (one_in(14)) drawn_.set("schedule.offload_layers", one_of({1, 2}));
    if (is_measured_ && one_in(8)) drawn_.set("schedule.cuda_graphs", word({"[attn]", "[mlp]", "[full]"}));
    if (one_in(4)) drawn_.set("schedule.kernels", word({"torch", "fused_softmax", "flash1", "flash2"}));
    if (schedule_->has_groups && one_in(3))
      drawn_.set("schedule.group", one_of({pipeline_, pipeline_ + 1, 2 * pipeline_}));
    if (tensor_ > 1 && one_in(6)) drawn_.set("schedule.overlap_tensor", "true");
    if (schedule_->name == "1f1b-merged" && one_in(2)) drawn_.set("schedule.delay_wgrad", "true");
    if (tensor_ == 1 && context_ == 1 && !uses_kfac_ && !has_experts_ && one_in(7)) {
      drawn_.set("schedule.fill", "evaluation");
      drawn_.set("schedule.evaluation_micro_batches", one_of({1, 2, 5}));
    }
    if (uses_kfac_ && one_in(3)) drawn_.set("schedule.fill", "none");
  }

  void draw_run() {
    if (uses_kfac_) drawn_.set("run.optimizer", one_in(2) ? "kfac" : "{name: kfac, refresh_steps: 2}");
    if (!uses_kfac_ && one_in(12)) drawn_.set("run.optimizer", "{name: adamw, offload_fraction: 0.5}");
    if (!uses_kfac_ && one_in(12)) drawn_.set("run.lora", "{rank: 4}");
    if (one_in(2)) drawn_.set("run.clip_norm", 1);
    if (one_in(4))
      drawn_.set("run.dtype", "float32");
    else if (one_in(10))
      drawn_.set("run.fp8", word({"delayed", "tensorwise", "blockwise"}));
    if (has_experts_) {
      if (one_in(3)) drawn_.set("run.routing_skew", one_in(2) ? "0.5" : "1");
      if (one_in(4)) drawn_.set("run.balancing_loss", "0.01");
      if (one_in(8)) drawn_.set("run.expert_capacity", "1.25");
      if (one_in(8)) drawn_.set("run.router_bias_speed", "0.001");
    }
    if (!is_long_ && one_in(7)) draw_growth();
  }

  void draw_growth() {
    const std::string largest = std::to_string(4 * batch_);
    drawn_.set("training.growth", one_in(2) ? "{rule: norm-test, sizes: 3, eta: 0.9, largest: " + largest + "}"
                                            : "{rule: stages, sizes: 3, largest: " + largest +
                                                  ", stages: [{from: 50, batch: " + std::to_string(2 * batch_) +
                                                  "}, {from: 100, batch: " + largest + "}]}");
  }

  std::mt19937_64 random_;
  DrawnScenario drawn_;
  int ranks_ = 1, tensor_ = 1, context_ = 1, pipeline_ = 1, data_ = 1, chunks_ = 1, stages_ = 1, nodes_ = 1;
  int layers_ = 1, heads_ = 1, sequence_ = 1, batch_ = 1;
  bool is_long_ = false, has_experts_ = false, is_measured_ = false, uses_kfac_ = false;
  const char* family_ = "";
  const Schedule* schedule_ = nullptr;
};

inline DrawnScenario drawn_scenario(std::uint64_t number) { return ScenarioDraw(number).draw(); }

// The scenario with one key less or one smaller number, again and again, as long as `shows` it. Numbers are tried at 1,
// at half and at one less.
inline DrawnScenario smallest(DrawnScenario scenario, const std::function<bool(const DrawnScenario&)>& shows) {
  const auto tried = [&](const DrawnScenario& smaller) {
    if (!shows(smaller)) return false;
    scenario = smaller;
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t at = scenario.keys.size(); at-- > 0;) {
      DrawnScenario smaller = scenario;
      smaller.keys.erase(smaller.keys.begin() + static_cast<std::ptrdiff_t>(at));
      if (tried(smaller)) {
        changed = true;
        continue;
      }
      const std::string text = scenario.keys[at].second;
      std::int64_t number = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), number).ptr != text.data() + text.size()) continue;
      for (const std::int64_t less : {std::int64_t{1}, number / 2, number - 1}) {
        if (less < 1 || less >= number) continue;
        smaller = scenario;
        smaller.keys[at].second = std::to_string(less);
        if (tried(smaller)) {
          changed = true;
          break;
        }
      }
    }
  }
  return scenario;
}

}  // namespace slipway::test
