#include "scenarios/search/remedies.h"
#include "scenarios/search/scenario_to_search.h"
#include "scenarios/search/search.h"

#include "library/loading.h"
#include "slipway/plan.h"

namespace slipway {
namespace {

PlannedLayout row_of(const scenarios::PricedLayout& priced) {
  PlannedLayout row;
  for (const std::string& option : scenarios::overrides_of(priced.choice)) {
    const std::size_t sign = option.find('=');
    row.settings.emplace_back(option.substr(0, sign), option.substr(sign + 1));
  }
  row.step_time_s = priced.step_time_s;
  row.interval = interval_of(priced.interval);
  row.mfu = priced.mfu;
  row.compute_share = priced.compute_share;
  row.exposed_comm_share = priced.exposed_comm_share;
  row.bubble_share = priced.bubble_share;
  row.memory_bytes = priced.memory_bytes;
  row.memory_share = priced.memory_share;
  row.fit_probability = priced.fit_probability;
  row.first_is_faster = priced.first_is_faster;
  // A caller's schedule has no name that a scenario could be set to.
  if (priced.choice.own_schedule)
    std::erase_if(row.settings, [](const auto& setting) { return setting.first == "schedule.name"; });
  return row;
}

std::vector<PlannedLayout> rows_of(const std::vector<scenarios::PricedLayout>& priced) {
  std::vector<PlannedLayout> rows;
  for (const scenarios::PricedLayout& layout : priced) rows.push_back(row_of(layout));
  return rows;
}

void check(const PlanOptions& options) {
  scenarios::check_kept(options.keep, "keep");
  scenarios::check_memory_share(options.memory_share, "memory_share " + std::to_string(options.memory_share));
  if (options.top < 1) throw std::invalid_argument("top is " + std::to_string(options.top) + "; allowed: at least 1");
}

}  // namespace

Plan plan(const Scenario& scenario, const PlanOptions& options) {
  return translated([&] {
    check(options);
    const scenarios::ScenarioSource& source = scenario.source().of;
    const scenarios::Scenario read = scenarios::scenario_to_search(source, options.keep);
    scenarios::SearchOptions how;
    how.best = options.top;
    how.memory_share = options.memory_share;
    how.workers = options.workers;
    how.interrupted = options.watch.interrupted;
    if (options.watch.progress)
      how.progress = [&](const scenarios::SearchProgress& now) { options.watch.progress(now.share); };
    const scenarios::SearchResult found =
        scenarios::search_layouts(read, scenarios::search_space(read, options.keep), how);
    Plan answer;
    answer.best = rows_of(found.best);
    answer.front = rows_of(found.pareto);
    if (found.closest) {
      answer.closest = row_of(*found.closest);
      answer.remedies = scenarios::remedies(source, read, options.keep, *found.closest, how);
    }
    answer.legal = found.legal, answer.too_large = found.too_large, answer.simulated = found.simulated;
    answer.complete = found.complete;
    return answer;
  });
}

}  // namespace slipway
