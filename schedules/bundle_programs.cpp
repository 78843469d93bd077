// The step programs of a bundle whose batch grows.
#include <algorithm>
#include <stdexcept>

#include "schedules/bundle.h"

namespace slipway {

std::vector<const TaskGraph*> programs_of(const Bundle& bundle) {
  std::vector<const TaskGraph*> programs{&bundle.graph};
  for (const TaskGraph& graph : bundle.larger) programs.push_back(&graph);
  return programs;
}

int program_of(const Bundle& bundle, std::int64_t batch) {
  const std::vector<const TaskGraph*> programs = programs_of(bundle);
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (programs[i]->global_batch == batch) return static_cast<int>(i);
  throw std::out_of_range("the bundle has no step program for a batch of " + std::to_string(batch));
}

namespace {

bool have_same_communicators(const TaskGraph& a, const TaskGraph& b) {
  return std::equal(a.communicators.begin(), a.communicators.end(), b.communicators.begin(), b.communicators.end(),
                    [](const Communicator& x, const Communicator& y) { return x.name == y.name && x.ranks == y.ranks; });
}

bool have_same_places(const TaskGraph& a, const TaskGraph& b) {
  const Layout &x = a.layout, &y = b.layout;
  return a.placement.rank == b.placement.rank && a.placement.copies == b.placement.copies && x.tensor == y.tensor &&
         x.pipeline == y.pipeline && x.context == y.context && x.data == y.data && x.zero == y.zero && x.chunks == y.chunks &&
         x.sequence_parallel == y.sequence_parallel;
}

bool have_same_numbers(const TaskGraph& a, const TaskGraph& b) {
  return a.shape.micro_batch == b.shape.micro_batch && a.shape.sequence == b.shape.sequence && a.shape.dtype == b.shape.dtype &&
         a.gradient_dtype == b.gradient_dtype && a.clip_norm == b.clip_norm && a.slices == b.slices;
}

// What a rule needs (models/batch_rules.h), which a scenario's loader has seen to.
std::string rule_defect(const BatchPlan& plan) {
  bool whole = false;
  switch (plan.rule) {
    case BatchRule::constant:
      whole = true;
      break;
    case BatchRule::linear:
      whole = plan.warmup > 0;
      break;
    case BatchRule::stages:
      whole = !plan.stages.empty();
      break;
    case BatchRule::norm_test:
      whole = plan.eta > 0 && plan.test_every > 0;
      break;
  }
  return whole ? "" : "the rule by which the batch grows is none, or lacks a number";
}

}  // namespace

std::string ladder_defect(const BatchPlan& plan, const std::vector<const TaskGraph*>& programs) {
  if (plan.rungs.empty()) return programs.size() == 1 ? "" : "step programs of batches that no rule leads to";
  if (const std::string defect = rule_defect(plan); !defect.empty()) return defect;
  const TaskGraph& first = *programs.front();
  std::vector<std::int64_t> batches;
  for (const TaskGraph* graph : programs) batches.push_back(graph->global_batch);
  if (batches != plan.rungs || batches.front() < 1 || std::adjacent_find(batches.begin(), batches.end(), std::greater_equal<>()) != batches.end())
    return "the step programs are not those of the batches";
  for (const TaskGraph* graph : programs) {
    if (graph->model != first.model) return "the step programs are of different models";
    if (!have_same_places(*graph, first)) return "the step programs are of different layouts";
    if (!have_same_numbers(*graph, first)) return "the step programs do not compute alike";
    if (graph->stages != first.stages) return "the step programs have different stages";
    if (!have_same_communicators(*graph, first)) return "the step programs have different communicators";
    if (graph->window != 1 || graph->kfac) return "the step programs of a batch that grows have work in the bubbles";
    if (graph->worker_norms != (plan.rule == BatchRule::norm_test))
      return "the step programs measure norms that no rule asks for, or do not measure what it asks for";
  }
  return "";
}

}  // namespace slipway
