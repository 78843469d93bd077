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
         x.pipeline == y.pipeline && x.context == y.context && x.data == y.data && x.zero == y.zero;
}

}  // namespace

std::string ladder_defect(const Bundle& bundle) {
  if (!grows(bundle)) return bundle.larger.empty() ? "" : "step programs of batches that no rule leads to";
  const std::vector<const TaskGraph*> programs = programs_of(bundle);
  std::vector<std::int64_t> batches;
  for (const TaskGraph* graph : programs) batches.push_back(graph->global_batch);
  if (batches != bundle.batches.rungs || !std::is_sorted(batches.begin(), batches.end()))
    return "the step programs are not those of the batches";
  for (const TaskGraph* graph : programs) {
    if (graph->model != bundle.graph.model) return "the step programs are of different models";
    if (!have_same_places(*graph, bundle.graph)) return "the step programs are of different layouts";
    if (graph->stages != bundle.graph.stages) return "the step programs have different stages";
    if (!have_same_communicators(*graph, bundle.graph)) return "the step programs have different communicators";
  }
  return "";
}

}  // namespace slipway
