#include "scenarios/validate/refit.h"

#include <set>

#include "scenarios/tables/price.h"

namespace slipway::scenarios {

Refit::Refit(const std::vector<RefitRow>& rows)
    : model_(time_model_of(rows.at(0).row->trainer)), time_(&time_constants_of(*rows.at(0).row)) {
  for (const RefitRow& row : rows) {
    works_.push_back(work_of(*row.row));
    measured_.push_back(row.trains ? row.row->step_s : 0);
  }
  for (const StackConstant& constant : time_->constants) parameters_.push_back({constant.prior, constant.spread});
}

PriorFit Refit::fit_on(const std::vector<std::size_t>& training) const {
  std::vector<double> measured;
  for (const std::size_t i : training) measured.push_back(measured_[i]);
  const auto predict = [&](std::span<const double> values) {
    std::vector<double> seconds;
    seconds.reserve(training.size());
    for (const std::size_t i : training) seconds.push_back(model_->seconds(works_[i], values));
    return seconds;
  };
  return fit_with_priors(parameters_, measured, predict, {.scale = time_->scale, .start = {}, .most_rounds = 60});
}

PriorFit Refit::all() const {
  std::vector<std::size_t> training;
  for (std::size_t i = 0; i < works_.size(); ++i)
    if (measured_[i] > 0) training.push_back(i);
  return fit_on(training);
}

std::vector<double> Refit::left_out(const std::vector<int>& parts) const {
  std::vector<double> seconds(works_.size(), 0.0);
  for (const int part : std::set<int>(parts.begin(), parts.end())) {
    std::vector<std::size_t> training;
    for (std::size_t i = 0; i < works_.size(); ++i)
      if (parts[i] != part && measured_[i] > 0) training.push_back(i);
    if (training.empty()) continue;
    const std::vector<double> values = fit_on(training).values;
    for (std::size_t i = 0; i < works_.size(); ++i)
      if (parts[i] == part) seconds[i] = model_->seconds(works_[i], values);
  }
  return seconds;
}

}  // namespace slipway::scenarios
