#include "scenarios/validate/graph_prices.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "scenarios/language/load_stack.h"
#include "scenarios/memory/changes.h"
#include "scenarios/plan/ranking.h"
#include "scenarios/tables/price_memory.h"
#include "schedules/step/action.h"

namespace slipway::scenarios {
namespace {

void keep_price(RowResult& result, const Workers::Outcome& outcome) {
  RowPrice& price = result.price;
  price.step_s = price.mfu = 0;
  price.cannot.clear();
  price.borrowed_from.clear();
  if (outcome.failed) {
    price.cannot = outcome.text;
    return;
  }
  std::memcpy(&price.step_s, outcome.result, sizeof price.step_s);
  result.peak_flops = peak_flops_of(*result.row);
  price.mfu = mfu_of(*result.row, price.step_s, result.peak_flops);
}

// In Megatron-Core, keys and values go around a ring: Transformer Engine's default (cp_comm_type p2p). Megatron-LM had
// no other choice before December 2024 (NVIDIA/Megatron-LM, pull request 1160), after Fujii's runs.
ContextExchange exchange_of(const std::string& trainer) {
  return trainer == "megatron-core" ? ContextExchange::ring : ContextExchange::all_gather;
}

}  // namespace

NodeGroup nodes_of(const PublishedRow& row) {
  const int per_node = std::min(row.gpus, row.gpus_per_node);
  if (row.gpus % per_node != 0)
    throw std::invalid_argument("its GPUs do not fill whole nodes of " + std::to_string(per_node));
  Machine machine = machine_of(row);
  if (node_share({machine, 1, row.gpus_per_node}, 2) == 1) machine.node_link.mesh = 0;  // also of a part of such a node
  return {machine, row.gpus / per_node, per_node};
}

Scenario scenario_of(const PublishedRow& row) {
  Scenario scenario;
  scenario.name = in_words(row);
  scenario.cluster.name = row.machine;
  scenario.cluster.groups = {nodes_of(row)};
  scenario.cluster.fabrics = default_fabrics(scenario.cluster.groups);
  if (const Stack* stack = built_in_stack(row.trainer); stack != nullptr && time_on(*stack, row.machine) != nullptr) {
    scenario.stack = *stack;
  }
  scenario.trainer = memory_constants_of(row);
  scenario.step = step_of(row);
  derive_step(scenario);
  return scenario;
}

Step step_of(const PublishedRow& row) {
  Step step = row.step;
  Layout& layout = step.layout;
  layout.sequence_parallel = layout.sequence_parallel && layout.tensor > 1;
  layout.zero = layout.data > 1 ? layout.zero : 0;
  layout.context_exchange = exchange_of(row.trainer);
  layout.split = row.trainer == "nanotron" ? SplitKind::balanced : SplitKind::even;
  step.schedule = layout.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  return step;
}

void price_by_graph(Validation& validation, GraphEngine engine, const std::function<void(double)>& progress) {
  validation.priced_by = name_of(engine);
  std::vector<int> jobs;
  for (std::size_t i = 0; i < validation.rows.size(); ++i)
    if (validation.rows[i].row->unpriceable.empty() && validation.rows[i].row->status != RowStatus::infeasible)
      jobs.push_back(static_cast<int>(i));
  const auto result_of = [&](int job) -> RowResult& { return validation.rows[job]; };
  const auto work = [&](int job, std::byte* result) {
    const PublishedRow& row = *result_of(job).row;
    Scenario scenario = scenario_of(row);
    if (engine == GraphEngine::book) {
      scenario.stack.reset();
      derive_step(scenario);
    }
    const double seconds = engine == GraphEngine::simulation ? price_layout(scenario, scenario.step).step_time_s
                                                             : replayed_step_s(scenario);
    std::memcpy(result, &seconds, sizeof seconds);
  };
  Workers workers(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())), work);
  std::size_t given = 0, taken = 0;
  while (taken < jobs.size()) {
    while (given < jobs.size() && workers.idle()) workers.give(jobs[given++]);
    constexpr int pause_ms = 500;
    if (const auto outcome = workers.take(pause_ms)) {
      keep_price(result_of(outcome->job), *outcome);
      ++taken;
    }
    progress(static_cast<double>(taken) / static_cast<double>(jobs.size()));
  }
}

}  // namespace slipway::scenarios
