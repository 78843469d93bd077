#include "scenarios/search/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "scenarios/predict/readable.h"
#include "scenarios/search/layout_text.h"
#include "scenarios/search/screen.h"

namespace slipway::scenarios {
namespace {

constexpr int most_times = 64;

class Trial {
 public:
  Trial(const std::vector<std::string>& kept, const SearchOptions& options) : kept_(kept), options_(options) {}

  // A fitting layout of `scenario` among those with the least memory.
  std::optional<Step> fitting(const Scenario& scenario, bool keeps) const {
    try {
      const SearchSpace space = search_space(scenario, keeps ? kept_ : std::vector<std::string>{});
      const Screening screened =
          screen(scenario, space, options_.memory_share, workers_of(options_), [this] { return interrupted(); });
      for (const Candidate& candidate : screened.smallest)
        if (fits(price_if_it_fits(scenario, candidate.choice, options_.memory_share), options_.memory_share))
          return candidate.choice;
    } catch (const std::invalid_argument&) {  // no layout of this scenario is possible, so it is no remedy
    }
    return std::nullopt;
  }

  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

 private:
  const std::vector<std::string>& kept_;
  const SearchOptions& options_;
};

void try_nodes(const Trial& trial, const Scenario& scenario, bool keeps, std::vector<std::string>& list) {
  Scenario larger = scenario;
  int& nodes = larger.cluster.groups.front().nodes;
  const int before = nodes;
  const bool is_networked = std::any_of(larger.cluster.fabrics.begin(), larger.cluster.fabrics.end(),
                                        [](const Fabric& fabric) { return fabric.scope == Fabric::Scope::cluster; });
  for (int times = 2; times <= most_times && !trial.interrupted(); times *= 2) {
    nodes = times * before;
    larger.cluster.gpu_of_rank.clear(), larger.step.layout.placement.clear(), larger.cluster.degradation = {};
    if (!is_networked) larger.cluster.fabrics = default_fabrics(larger.cluster.groups);
    const auto choice = trial.fitting(larger, keeps);
    if (!choice) continue;
    list.push_back(fmt::format("{} of {} GPUs instead of {}: {}", counted(nodes, "node"),
                               larger.cluster.groups.front().gpus_per_node, before, layout_text(*choice)));
    return;
  }
}

void try_sequence(const Trial& trial, const Scenario& scenario, bool keeps, std::vector<std::string>& list) {
  Scenario shorter = scenario;
  Model model = scenario.step.model;
  std::int64_t& sequence = model.sequence;
  while (sequence % 2 == 0 && sequence * most_times > scenario.step.model->sequence && !trial.interrupted()) {
    sequence /= 2;
    shorter.step.model = model;
    const auto choice = trial.fitting(shorter, keeps);
    if (!choice) continue;
    list.push_back(fmt::format("model.sequence {} instead of {}: {}", sequence, scenario.step.model->sequence,
                               layout_text(*choice)));
    return;
  }
}

}  // namespace

std::vector<std::string> remedies(const Scenario& scenario, const std::vector<std::string>& kept,
                                  const PricedLayout& closest, const SearchOptions& options) {
  const bool keeps = !kept.empty();
  std::vector<std::string> list;
  const Trial trial(kept, options);
  if (const auto choice = keeps ? trial.fitting(scenario, false) : std::nullopt)
    list.push_back("without --keep: " + layout_text(*choice));
  try_nodes(trial, scenario, keeps, list);
  try_sequence(trial, scenario, keeps, list);
  const std::string gpu = readable_bytes(closest.memory_bytes / options.memory_share);
  list.push_back(fmt::format("GPUs with {} of memory at least: {}", gpu, layout_text(closest.choice)));
  return list;
}

}  // namespace slipway::scenarios
