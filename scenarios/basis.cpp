#include "scenarios/basis.h"

#include <algorithm>

#include "scenarios/embedded_files.h"
#include "scenarios/language/load_stack.h"
#include "schedules/graph/stack_pace.h"

namespace slipway {
namespace {

std::vector<std::string> stacks_timed_on(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_stacks()) {
    const Stack* stack = built_in_stack(file.name);
    const bool timed = std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
      return time_on(*stack, group.machine.name) != nullptr;
    });
    if (timed) names.emplace_back(file.name);
  }
  return names;
}

void add_trainers_times(const Scenario& scenario, Basis& basis) {
  basis.trainer = scenario.stack->trainer;
  const NodeGroup& first = scenario.cluster.groups.front();
  const StepWork work = step_work_of(lowering_input(scenario), first.machine, first.gpus_per_node);
  for (const char* feature : scenario.stack->model->outside(work)) basis.not_priced.emplace_back(feature);
  for (const char* feature : unknown_to_formulas(scenario.model)) basis.not_priced.emplace_back(feature);
  for (const NodeGroup& group : scenario.cluster.groups)
    if (basis.outside.empty()) basis.outside = outside_fit(scenario, group.machine.name, FittedOf::times);
}

std::string origin_of(const std::string& file, const Provenance& provenance) {
  if (provenance.source.empty()) return file + ": it does not say where its numbers come from (provenance.source)";
  return file + ": " + provenance.source + (provenance.date.empty() ? "" : ", " + provenance.date);
}

void add_own_tables(const Scenario& scenario, Basis& basis) {
  const std::vector<NodeGroup>& groups = scenario.cluster.groups;
  if (const BlockTable& table = groups.front().machine.blocks; !table.empty()) basis.blocks = table.name + " (" + table.source + ")";
  for (std::size_t i = 0; i < groups.size() && i < scenario.machine_files.size(); ++i) {
    if (scenario.machine_files[i].empty()) continue;
    const std::string origin = origin_of(scenario.machine_files[i], groups[i].machine.provenance);
    if (std::find(basis.own_profiles.begin(), basis.own_profiles.end(), origin) == basis.own_profiles.end())
      basis.own_profiles.push_back(origin);
  }
}

}  // namespace

Basis basis_of(const Scenario& scenario) {
  Basis basis;
  add_own_tables(scenario, basis);
  if (scenario.stack && !scenario.trainer.machine.empty()) {
    basis.memory_trainer = scenario.trainer.name;
    basis.memory_outside = outside_fit(scenario, scenario.trainer.machine, FittedOf::memory);
  }
  if (has_pace(scenario)) {
    add_trainers_times(scenario, basis);
    basis.slices = short_slices(scenario, scenario.cluster.groups.front().machine.name);
    return basis;
  }
  basis.book_values =
      scenario.cluster.groups.front().machine.blocks.empty() &&
      std::any_of(scenario.machine_files.begin(), scenario.machine_files.end(), [](const std::string& file) { return file.empty(); });
  if (!basis.book_values) return basis;
  basis.fitted_here = stacks_timed_on(scenario.cluster);
  basis.slices = short_slices(scenario, scenario.cluster.groups.front().machine.name);
  return basis;
}

Basis without_memory(Basis basis) {
  basis.memory_trainer.clear();
  basis.memory_outside.clear();
  return basis;
}

}  // namespace slipway
