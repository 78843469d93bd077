// Training of one layout as virtual ranks in this process, and one process on the same model as its truth.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "exec/rank/batches.h"
#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "tests/support/same_training.h"
#include "tests/support/tiny_runs.h"
#include "tests/virtual_ranks/virtual_ranks.h"

namespace slipway::test {

constexpr int steps_of_a_run = 20;

inline Trained train(const Step& input, int run_steps = steps_of_a_run) {
  at::set_num_threads(1);
  const Bundle bundle = tiny_bundle(input);
  for (const Violation& violation : check_graph(bundle.graph)) ADD_FAILURE() << describe(bundle.graph, violation);
  VirtualRanks ranks(bundle, at::kCPU);
  static std::atomic<int> folders = 0;
  const std::string folder = temporary_folder().path("layout" + std::to_string(folders++));
  ranks.dump_gradients_of_step(0, folder);
  std::vector<double> losses;
  for (int step = 0; step < run_steps; ++step) {
    ranks.run_step(step);
    losses.push_back(ranks.take_loss(step));
  }
  return trained(std::move(losses), folder, rank_count(input.layout));
}

struct Grown {
  std::vector<double> losses;
  std::vector<std::int64_t> batches;
};

// Trains with a growing batch on virtual ranks, which choose the batch after each step.
inline Grown train_growing(const Bundle& bundle) {
  at::set_num_threads(1);
  for (const TaskGraph* graph : programs_of(bundle))
    for (const Violation& violation : check_graph(*graph)) ADD_FAILURE() << describe(*graph, violation);
  VirtualRanks ranks(bundle, at::kCPU);
  Grown run;
  Progress now;
  now.batch = first_batch(bundle, now);
  for (int step = 0; step < bundle.run.steps; ++step) {
    const TaskGraph& graph = *programs_of(bundle)[program_of(bundle, now.batch)];
    if (step == 0 || run.batches.back() != now.batch) ranks.enter(graph, now, step);
    ranks.run_step(step);
    run.losses.push_back(ranks.take_loss(step));
    run.batches.push_back(now.batch);
    now = {now.steps + 1, now.samples + now.batch, now.batch};
    now.batch = batch_after(bundle, now, ranks.take_norms(step));
  }
  return run;
}

// One process on the same model, kept for the layouts that share it.
inline const Trained& one_process(Step input, int run_steps = steps_of_a_run) {
  static std::map<std::string, Trained> known;
  static std::mutex training;
  input.layout = Layout{};
  input.schedule = "1f1b";
  input.actions = nullptr;
  // Without any notion of what is balanced together but the micro-batch.
  input.micro_batch = input.routing.balancing_loss > 0 ? balanced_sequences(input.routing, input.micro_batch) : 1;
  input.routing.balancing_sequences = 0;
  input.slices = 1;
  input.recompute = Recompute::none;
  const std::string key = input.model->name + std::to_string(layer_count(input.model)) +
                          std::to_string(blocks_of(input.model).back().tied) + std::to_string(input.clip_norm) + "/" +
                          std::to_string(input.global_batch) + "/" + std::to_string(input.micro_batch) + "/" +
                          std::to_string(run_steps);
  const std::lock_guard lock(training);  // others wait for it
  const auto [at, is_new] = known.try_emplace(key);
  if (is_new) {
    at->second = train(input, run_steps);
    EXPECT_LE(at->second.losses.back(), 0.9 * at->second.losses.front()) << "the loss hardly falls: a weak test";
  }
  return at->second;
}

inline std::string describe_layout(const Step& input) {
  const Layout& l = input.layout;
  return input.schedule + ": tensor " + std::to_string(l.tensor) + (l.sequence_parallel ? " (sequence parallel)" : "") +
         ", pipeline " + std::to_string(l.pipeline) + ", data " + std::to_string(l.data) + ", context " +
         std::to_string(l.context) + ", chunks " + std::to_string(l.chunks) + ", ZeRO " + std::to_string(l.zero) +
         ", expert " + std::to_string(l.expert) + " x " + std::to_string(l.expert_tensor) + ", micro-batch " +
         std::to_string(input.micro_batch) + ", recompute " + name_of(input.recompute);
}

// A layer per stage, two at least: few models, so that one process is trained once for many layouts.
inline Model llama_for(int stages, bool tied) { return tiny_llama(std::max(stages, 2), tied); }

// Sums in another order, in float32: the losses stay together for a while, within the round-off of their sum.
inline void expect_float32_follows_one_process(Step input) {
  input.dtype = input.gradient_dtype = Dtype::float32;
  const Trained many = train(input);
  input.layout = Layout{};
  const Trained one = train(input);
  for (std::size_t step = 0; step < one.losses.size(); ++step)
    EXPECT_NEAR(many.losses[step], one.losses[step], 2e-5 * one.losses[step]) << "step " << step;
}

inline void expect_layout_equals_one_process(Step input, int run_steps = steps_of_a_run, double relative = 1e-9) {
  SCOPED_TRACE(describe_layout(input));
  const Trained& one = one_process(input, run_steps);
  try {
    expect_same_training(one, train(input, run_steps), relative);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

// Two at a time: each is trained by one thread.
inline void expect_layouts_equal_one_process(const std::vector<Step>& inputs, int run_steps = steps_of_a_run,
                                             double relative = 1e-9) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < inputs.size(); i = next++)
      expect_layout_equals_one_process(inputs[i], run_steps, relative);
  };
  std::thread other(work);
  work();
  other.join();
}

// A layout in which every dimension is cut.
inline Step all_cut(const Model& model, int zero = 1) {
  return with_layout(model, {.tensor = 2, .pipeline = 2, .data = 2, .zero = zero, .sequence_parallel = true});
}

}  // namespace slipway::test
