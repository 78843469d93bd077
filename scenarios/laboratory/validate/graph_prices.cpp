#include "scenarios/laboratory/validate/graph_prices.h"

#include <algorithm>
#include <stdexcept>

#include "scenarios/laboratory/tables/price.h"
#include "scenarios/laboratory/tables/priced_run.h"
#include "scenarios/predict/simulated_step.h"
#include "scenarios/search/workers.h"

namespace slipway::scenarios {
namespace {

void keep_price(RowResult& result, const Workers::Outcome& outcome) {
  RowPrice& price = result.price;
  price.step_s = price.mfu = 0;
  price.cannot.clear();
  if (outcome.failure) {
    price.cannot = *outcome.failure;
    return;
  }
  price.step_s = outcome.answer.get<double>();
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
  const auto work = [&](int job, double) {
    const PublishedRow& row = *result_of(job).row;
    Scenario scenario = scenario_of(row);
    return engine == GraphEngine::simulation ? price_layout(scenario, scenario.step).step_time_s
           : engine == GraphEngine::book ? PricedStep(scenario).replay([](const Machine&) { return book_constants(); })
                                         : replayed_step_s(scenario);
  };
  Workers workers(core_count(), work);
  Dealing how;
  how.go_on = [&](int done) {
    progress(static_cast<double>(done) / static_cast<double>(std::max<std::size_t>(1, jobs.size())));
    return true;
  };
  deal(
      workers, jobs, [&](const Workers::Outcome& outcome) { keep_price(result_of(outcome.job), outcome); }, how);
}

}  // namespace slipway::scenarios
