#include "scenarios/validate/graph_prices.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "scenarios/plan/ranking.h"
#include "scenarios/step/simulated_step.h"
#include "scenarios/tables/price.h"
#include "scenarios/tables/priced_run.h"

namespace slipway::scenarios {
namespace {

void keep_price(RowResult& result, const Workers::Outcome& outcome) {
  RowPrice& price = result.price;
  price.step_s = price.mfu = 0;
  price.cannot.clear();
  if (outcome.failed) {
    price.cannot = outcome.text;
    return;
  }
  std::memcpy(&price.step_s, outcome.result, sizeof price.step_s);
  result.peak_flops = peak_flops_of(*result.row);
  price.mfu = mfu_of(*result.row, price.step_s, result.peak_flops);
}

}  // namespace

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
    const double seconds = engine == GraphEngine::simulation ? price_layout(scenario, scenario.step).step_time_s
                           : engine == GraphEngine::book
                               ? PricedStep(scenario).replay([](const Machine&) { return book_constants(); })
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
