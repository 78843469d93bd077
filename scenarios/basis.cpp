#include "scenarios/basis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "scenarios/embedded_files.h"
#include "scenarios/load_stack.h"
#include "scenarios/tables/formats.h"

namespace slipway {
namespace {

struct Quantity {
  const char* name;
  double (*of_row)(const PublishedRow& row);
  double (*of_scenario)(const Scenario& scenario);
};

constexpr std::array quantities{
    Quantity{"tensor", [](const PublishedRow& row) { return static_cast<double>(row.shape.sharding.tensor); },
             [](const Scenario& s) { return static_cast<double>(s.layout.tensor); }},
    Quantity{"pipeline", [](const PublishedRow& row) { return static_cast<double>(row.pipeline); },
             [](const Scenario& s) { return static_cast<double>(s.layout.pipeline); }},
    Quantity{"context", [](const PublishedRow& row) { return static_cast<double>(row.shape.sharding.context); },
             [](const Scenario& s) { return static_cast<double>(s.layout.context); }},
    Quantity{"zero", [](const PublishedRow& row) { return static_cast<double>(row.zero); },
             [](const Scenario& s) { return static_cast<double>(s.layout.zero); }},
    Quantity{"sequence", [](const PublishedRow& row) { return static_cast<double>(row.model.sequence); },
             [](const Scenario& s) { return static_cast<double>(s.model.sequence); }},
    Quantity{"micro-batch", [](const PublishedRow& row) { return static_cast<double>(row.shape.micro_batch); },
             [](const Scenario& s) { return static_cast<double>(s.schedule.micro_batch); }},
    Quantity{"GPUs", [](const PublishedRow& row) { return static_cast<double>(row.gpus); },
             [](const Scenario& s) { return static_cast<double>(rank_count(s.layout)); }},
};

// Of the rows that take part in a fit (stack_text.cpp), of this trainer on this machine.
std::vector<PublishedRow> fitted_rows(const std::string& trainer, const std::string& machine) {
  std::vector<PublishedRow> fitted;
  for (const EmbeddedFile& file : embedded_tables()) {
    std::istringstream in{std::string(file.text)};
    for (PublishedRow& row : read_table(in, std::string(file.path)).rows)
      if (row.trainer == trainer && row.machine == machine && row.unpriceable.empty() && exclusion_of(row) == Exclusion::none)
        fitted.push_back(std::move(row));
  }
  return fitted;
}

// A profile of a file of the user's was fitted to runs that only the user knows.
bool is_built_in(const Stack& stack, const std::string& machine) {
  const Stack* known = built_in_stack(stack.trainer);
  const StackTime* here = time_on(stack, machine);
  const StackTime* there = known == nullptr ? nullptr : time_on(*known, machine);
  return here != nullptr && there != nullptr && values_of(*here) == values_of(*there);
}

std::vector<OutsideFit> outside_on(const Scenario& scenario, const std::string& machine) {
  std::vector<OutsideFit> outside;
  const std::vector<PublishedRow> rows = fitted_rows(scenario.stack->trainer, machine);
  for (const Quantity& quantity : quantities) {
    if (rows.empty()) break;
    const double here = quantity.of_scenario(scenario);
    OutsideFit found{quantity.name, here, quantity.of_row(rows.front()), quantity.of_row(rows.front())};
    for (const PublishedRow& row : rows) {
      found.least = std::min(found.least, quantity.of_row(row));
      found.most = std::max(found.most, quantity.of_row(row));
    }
    if (here < found.least || here > found.most) outside.push_back(found);
  }
  return outside;
}

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

}  // namespace

Basis basis_of(const Scenario& scenario) {
  Basis basis;
  const std::vector<NodeGroup>& groups = scenario.cluster.groups;
  if (has_pace(scenario)) {
    basis.trainer = scenario.stack->trainer;
    for (const NodeGroup& group : groups)
      if (basis.outside.empty() && is_built_in(*scenario.stack, group.machine.name))
        basis.outside = outside_on(scenario, group.machine.name);
    return basis;
  }
  basis.book_values =
      groups.front().machine.blocks.empty() &&
      std::any_of(scenario.machine_files.begin(), scenario.machine_files.end(), [](const std::string& file) { return file.empty(); });
  if (basis.book_values) basis.fitted_here = stacks_timed_on(scenario.cluster);
  return basis;
}

std::string book_error_text() {
  return fmt::format("on average {} to {} % off published runs, mostly too fast", book_error.least_percent, book_error.most_percent);
}

std::string describe(const OutsideFit& outside) {
  return fmt::format("{} {} (fitted: {})", outside.what, outside.here,
                     outside.least == outside.most ? fmt::format("{}", outside.least)
                                                   : fmt::format("{} to {}", outside.least, outside.most));
}

std::string basis_text(const Basis& basis) {
  std::string names;
  if (basis.book_values) {
    for (const std::string& name : basis.fitted_here) names += (names.empty() ? "" : ", ") + name;
    return "No trainer's pace: book values of the hardware, " + book_error_text() +
           (names.empty() ? ". No trainer was fitted on this machine.\n\n"
                          : ".\nTrainers fitted on this machine, for cluster.stack: " + names + ".\n\n");
  }
  for (const OutsideFit& outside : basis.outside) names += (names.empty() ? "" : ", ") + describe(outside);
  return names.empty() ? "" : "Outside the runs that " + basis.trainer + " was fitted to: " + names + ".\n\n";
}

}  // namespace slipway
