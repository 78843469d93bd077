#include "scenarios/search/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "scenarios/predict/readable.h"
#include "scenarios/search/layout_text.h"
#include "scenarios/search/scenario_to_search.h"
#include "scenarios/search/screen.h"
#include "scenarios/search/variation.h"

namespace slipway::scenarios {
namespace {

constexpr int most_times = 64;

class Trial {
 public:
  Trial(const ScenarioSource& source, const SearchOptions& options) : source_(source), options_(options) {}

  // The words of the first variation that has a fitting layout among those with the least memory, and this layout.
  std::optional<std::string> first_fitting(const std::vector<Variation>& variations,
                                           const std::vector<std::string>& kept) const {
    for (const Variation& variation : variations) {
      if (interrupted()) break;
      if (const auto choice = fitting(variation, kept)) return variation.words + ": " + layout_text(*choice);
    }
    return std::nullopt;
  }

 private:
  std::optional<Step> fitting(const Variation& variation, const std::vector<std::string>& kept) const {
    try {
      ScenarioSource source = source_;
      source.overrides.insert(source.overrides.end(), variation.overrides.begin(), variation.overrides.end());
      const Scenario scenario = scenario_to_search(source, kept);
      const Screening screened = screen(scenario, search_space(scenario, kept), options_.memory_share,
                                        workers_of(options_), [this] { return interrupted(); });
      for (const Candidate& candidate : screened.smallest)
        if (fits(price_if_it_fits(scenario, candidate.choice, options_.memory_share), options_.memory_share))
          return candidate.choice;
    } catch (const UsageError&) {             // such a scenario is refused,
    } catch (const std::invalid_argument&) {  // or no layout of it is possible, so it is no remedy
    }
    return std::nullopt;
  }

  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  const ScenarioSource& source_;
  const SearchOptions& options_;
};

std::vector<Variation> more_nodes(const Scenario& scenario) {
  const NodeGroup& group = scenario.cluster.groups.front();
  std::vector<Variation> variations;
  for (int times = 2; times <= most_times; times *= 2) {
    const int nodes = times * group.nodes;
    const std::string words =
        fmt::format("{} of {} GPUs instead of {}", counted(nodes, "node"), group.gpus_per_node, group.nodes);
    for (const char* key : {"cluster.nodes", "cluster.groups.0.nodes"}) {  // the short form, or the first of a list
      variations.push_back({words, {fmt::format("{}={}", key, nodes)}});
      if (!scenario.step.layout.placement.empty()) variations.back().overrides.emplace_back("layout.placement=");
    }
  }
  return variations;
}

std::vector<Variation> shorter_sequences(const Scenario& scenario) {
  const std::int64_t whole = scenario.step.model->sequence;
  std::vector<Variation> variations;
  for (std::int64_t sequence = whole; sequence % 2 == 0 && sequence * most_times > whole;) {
    sequence /= 2;
    variations.push_back({fmt::format("model.sequence {} instead of {}", sequence, whole),
                          {fmt::format("model.sequence={}", sequence)}});
  }
  return variations;
}

}  // namespace

std::vector<std::string> remedies(const ScenarioSource& source, const Scenario& scenario,
                                  const std::vector<std::string>& kept, const PricedLayout& closest,
                                  const SearchOptions& options) {
  std::vector<std::string> list;
  const Trial trial(source, options);
  const auto add_first = [&](const std::vector<Variation>& variations, const std::vector<std::string>& keys) {
    if (auto words = trial.first_fitting(variations, keys)) list.push_back(std::move(*words));
  };
  if (!kept.empty()) add_first({{"without --keep", {}}}, {});
  add_first(more_nodes(scenario), kept);
  add_first(shorter_sequences(scenario), kept);
  const std::string gpu = readable_bytes(closest.memory_bytes / options.memory_share);
  list.push_back(fmt::format("GPUs with {} of memory at least: {}", gpu, layout_text(closest.choice)));
  return list;
}

}  // namespace slipway::scenarios
