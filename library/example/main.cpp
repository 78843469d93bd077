// A program of its own that links libslipway: a prediction, a plan, and a schedule as a function.
//
//   cmake -S . -B build -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build && build/example
#include <cstdio>
#include <exception>

#include <slipway/slipway.h>

namespace {

// 1F1B: a rank begins as many forwards as ranks follow it, then one backward after each forward.
slipway::ActionLists one_forward_one_backward(const slipway::Shape& shape) {
  slipway::ActionLists lists(static_cast<std::size_t>(shape.pipeline));
  for (int rank = 0; rank < shape.pipeline; ++rank) {
    const int warm_up = shape.pipeline - rank - 1;
    for (int step = 0; step < shape.micro_batches + warm_up; ++step) {
      auto& list = lists[static_cast<std::size_t>(rank)];
      if (step < shape.micro_batches) list.push_back({slipway::Pass::forward, rank, step});
      if (step >= warm_up) list.push_back({slipway::Pass::backward, rank, step - warm_up});
    }
  }
  return lists;
}

void show(const char* what, const slipway::Prediction& answer) {
  std::printf("%s: %.3f s a step, MFU %.1f %%, %s\n", what, answer.step_time_s, 100 * answer.mfu,
              answer.fits ? "fits" : "does not fit");
}

}  // namespace

int main() {
  const auto scenario = slipway::Scenario::from_text(
      "model: {name: llama-3.1-8b, sequence: 8192}\n"
      "cluster: {machine: h100-80gb, nodes: 2, gpus_per_node: 8}\n"
      "layout: {tensor: 4, sequence_parallel: true, pipeline: 4}\n"
      "schedule: {name: 1f1b, micro_batch: 1, global_batch: 16}\n",
      "example.yaml");
  try {
    show("1f1b", slipway::predict(scenario));
    show("zb-h1", slipway::predict(scenario.with({{"schedule.name", "zb-h1"}})));
    show("own", slipway::predict(scenario.with_schedule({"own", one_forward_one_backward})));
    slipway::PlanOptions options;
    options.keep = {"layout.pipeline"};
    const slipway::Plan plan = slipway::plan(scenario, options);
    for (const auto& [key, value] : plan.best.front().settings) std::printf("  %s=%s\n", key.c_str(), value.c_str());
    slipway::predict(scenario.with({{"layout.tensor", "3"}}));
  } catch (const slipway::Refusal& refusal) {
    for (const slipway::Defect& defect : refusal.defects())
      std::printf("refused: %s: %s; %s\n", defect.key.c_str(), defect.message.c_str(), defect.remedy.c_str());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "failed: %s\n", failure.what());
    return 1;
  }
}
