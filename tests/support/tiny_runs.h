// Tiny models on a tiny text, for the tests of the executor: bundles are made in memory, without scenarios.
#pragma once

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

#include "models/model/model.h"
#include "schedules/bundle/bundle.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"

namespace slipway::test {

inline Model tiny_llama(std::int64_t layers, bool tied) {
  return llama("tiny-llama", {.layers = layers,
                              .hidden = 32,
                              .ffn = 48,
                              .heads = 4,
                              .kv_heads = 2,
                              .vocab = 256,
                              .sequence = 16,
                              .tied = tied});
}
// Norms of query and key, heads wider than hidden / heads.
inline Model tiny_qwen3(std::int64_t layers, bool tied = true) {
  return llama("tiny-qwen3", {.layers = layers,
                              .hidden = 32,
                              .ffn = 48,
                              .heads = 4,
                              .kv_heads = 2,
                              .vocab = 256,
                              .sequence = 16,
                              .tied = tied,
                              .head_dim = 12,
                              .qk_norm = true});
}
// Four experts, two per token.
inline Model tiny_mixtral(std::int64_t layers, bool tied = false) {
  return llama("tiny-mixtral", {.layers = layers,
                                .hidden = 32,
                                .ffn = 24,
                                .heads = 4,
                                .kv_heads = 2,
                                .vocab = 256,
                                .sequence = 16,
                                .tied = tied,
                                .experts = 4,
                                .experts_per_token = 2});
}
// A layer without experts before three with them.
inline Model tiny_dense_first() {
  Model model = tiny_mixtral(3);
  model.name = "tiny-dense-first";
  BlockRun dense{model.runs[1].block, 1};
  dense.block.experts = dense.block.experts_per_token = 0;
  dense.block.ffn = 48;
  model.runs.insert(model.runs.begin() + 1, dense);
  return model;
}
inline Model tiny_gpt(std::int64_t layers, bool tied = true) {
  return gpt("tiny-gpt", {.layers = layers,
                          .hidden = 32,
                          .ffn = 64,
                          .heads = 4,
                          .vocab = 256,
                          .max_positions = 24,
                          .sequence = 16,
                          .tied = tied});
}
inline Model tiny_bert(std::int64_t layers) {
  return bert("tiny-bert", {.layers = layers,
                            .hidden = 32,
                            .ffn = 64,
                            .heads = 4,
                            .vocab = 260,
                            .max_positions = 24,
                            .token_types = 2,
                            .sequence = 16});
}

// A folder of this test process, removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / ("slipway-test-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};
inline const TemporaryFolder& temporary_folder() {
  static const TemporaryFolder folder;
  return folder;
}

// Text with enough regularity that a loss falls within 20 steps.
inline std::string tiny_text() {
  const std::string path = temporary_folder().path("text.txt");
  if (std::filesystem::exists(path)) return path;
  std::ofstream out(path);
  for (int i = 0; i < 200; ++i) out << "the pipeline has " << i % 7 << " stages and " << i % 5 << " bubbles; ";
  return path;
}

inline Step tiny_input(const Model& model) {
  Step input;
  input.model = model;
  input.micro_batch = 1;
  input.dtype = input.gradient_dtype = Dtype::float64;
  input.global_batch = 8;
  return input;
}

// Forward 1, backward 2, everything else 0.
inline Durations unit_durations(const TaskGraph& graph) {
  Durations durations(std::vector<double>(graph.tasks.size(), 0));
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    const Work& work = graph.work(id);
    if (work.kind == WorkKind::segment) durations[id] = work.pass == Pass::forward ? 1 : 2;
  }
  return durations;
}

inline Bundle tiny_bundle(const Step& input) {
  Bundle bundle;
  bundle.scenario = input.model->name;
  bundle.graph = lower(input);
  set_global_order(bundle.graph, unit_durations(bundle.graph));
  bundle.run.seed = 7;
  bundle.run.data = tiny_text();
  bundle.graph.step.optimizer.lr = 5e-3;
  return bundle;
}

// Adds a step program for each batch.
inline Bundle growing_bundle(Step input, const BatchSchedule& schedule) {
  Bundle bundle;
  input.worker_norms = schedule.rule == BatchRule::norm_test;
  for (const std::int64_t batch : schedule.rungs) {
    input.global_batch = batch;
    Bundle one = tiny_bundle(input);
    if (batch == schedule.rungs.front())
      bundle = std::move(one);
    else
      bundle.larger.push_back(std::move(one.graph));
  }
  bundle.batches = schedule;
  return bundle;
}
// 4 samples a step, from 8 samples on 8, from 24 on 16: two steps with each of the first two batches.
inline BatchSchedule in_stages() {
  return {.rule = BatchRule::stages, .rungs = {4, 8, 16}, .stages = {{8, 8}, {24, 16}}};
}
inline BatchSchedule by_norm_test(double eta) {
  return {.rule = BatchRule::norm_test, .rungs = {4, 8, 16}, .eta = eta};
}

// A bundle for pipeline × data ranks that would train for a very long time.
inline Bundle endless_bundle(int pipeline, int data) {
  Step input = tiny_input(tiny_llama(2, false));
  input.layout.pipeline = pipeline;
  input.layout.data = data;
  Bundle bundle = tiny_bundle(input);
  bundle.run.steps = 1000000;
  return bundle;
}

// Degrees of parallelism of a tiny run.
struct Degrees {
  int tensor = 1, pipeline = 1, data = 1, context = 1, zero = 0, chunks = 1;
  bool sequence_parallel = false;
};

inline Step with_layout(const Model& model, const Degrees& degrees) {
  Step input = tiny_input(model);
  input.layout.tensor = degrees.tensor;
  input.layout.pipeline = degrees.pipeline;
  input.layout.data = degrees.data;
  input.layout.context = degrees.context;
  input.layout.chunks = degrees.chunks;
  input.layout.zero = degrees.zero;
  input.layout.sequence_parallel = degrees.sequence_parallel;
  if (degrees.chunks > 1) input.schedule = "interleaved-1f1b";
  return input;
}

}  // namespace slipway::test
