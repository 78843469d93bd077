#include "scenarios/laboratory/calibrate/measured_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "models/fit/folds.h"
#include "models/fit/prior_fit.h"
#include "models/trace/statistics.h"

namespace slipway::scenarios {

namespace {

// True for a measurement that neither a kernel's constants nor a link's describe.
bool is_priced_elsewhere(const Measurement& measurement, const Machine& machine) {
  return kernel_tables({measurement}, machine).empty() && beside_kernels(observations_of({measurement})).empty();
}

std::string not_used_of(const std::vector<Measurement>& measurements, const Machine& machine) {
  std::map<std::string, int> counts;
  for (const Measurement& measurement : measurements)
    if (is_priced_elsewhere(measurement, machine)) ++counts[measurement.what];
  std::string text;
  for (const auto& [what, count] : counts) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", what, count);
  return text;
}

// One constant of one kernel, among those that tasks may move.
struct Place {
  KernelKey key;
  std::size_t constant = 0;
};

std::vector<Place> places_in(const MachineKernels& kernels) {
  std::vector<Place> places;
  for (const KernelKey& key : keys_of(kernels))
    if (key.kind == KernelKind::gemm || key.kind == KernelKind::attention)
      for (std::size_t c = 0; c < constants_of(key.kind).size(); ++c)
        if ((*values_of(kernels, key))[c] > 0) places.push_back({key, c});
  return places;
}

Machine with_values(Machine machine, const std::vector<Place>& places, std::span<const double> values) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    KernelValues all = *values_of(machine.kernels, places[i].key);
    all[places[i].constant] = values[i];
    set_values(machine.kernels, places[i].key, all);
  }
  return machine;
}

struct TaskFit {
  PriorFit fit;
  std::vector<double> predicted_s;  // of all tasks
};

// To the tasks of the other parts than `left_out`.
TaskFit fit_tasks(const std::vector<Observation>& tasks, const std::vector<int>& part, int left_out,
                  const Machine& machine, const std::vector<Place>& places) {
  std::vector<const Observation*> rows;
  std::vector<double> measured;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (part[i] == left_out) continue;
    rows.push_back(&tasks[i]);
    measured.push_back(tasks[i].seconds);
  }
  std::vector<PriorParameter> priors;
  for (const Place& place : places) {
    const KernelConstant& constant = constants_of(place.key.kind)[place.constant];
    priors.push_back({(*values_of(machine.kernels, place.key))[place.constant], constant.spread, constant.most});
  }
  const auto predict = [&](std::span<const double> values) {
    const Machine moved = with_values(machine, places, values);
    std::vector<double> seconds;
    for (const Observation* row : rows) seconds.push_back(row->predict(moved));
    return seconds;
  };
  TaskFit result{fit_with_priors(priors, measured, predict), {}};
  const Machine fitted = with_values(machine, places, result.fit.values);
  for (const Observation& task : tasks) result.predicted_s.push_back(task.predict(fitted));
  return result;
}

KernelError error_of(const std::vector<Observation>& tasks, const std::vector<double>& predicted_s) {
  std::vector<double> errors;
  double sum = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    errors.push_back(std::abs(predicted_s[i] / tasks[i].seconds - 1));
    sum += errors.back();
  }
  return {sum / static_cast<double>(errors.size()), median(errors)};
}

}  // namespace

MeasuredKernels measured_kernels(const std::vector<Measurement>& measurements, const Machine& start, bool few) {
  MeasuredKernels result;
  if (start.cores > 0) return result;
  result.not_used = not_used_of(measurements, start);
  for (auto& [key, table] : kernel_tables(measurements, start)) {
    if (table.rows.size() < (few && table.around ? 1 : least_shapes)) {
      result.too_few +=
          fmt::format("{}{} ({})", result.too_few.empty() ? "" : ", ", models::name_of(key), table.rows.size());
      continue;
    }
    KernelFit fit = fit_kernel(table);
    result.fitted.push_back({{start.name, key, table}, std::move(fit)});
  }
  const bool has_products =
      start.kernels.gemm[static_cast<std::size_t>(Format::bfloat16)].has_value() ||
      std::any_of(result.fitted.begin(), result.fitted.end(), [](const FittedKernel& each) {
        return each.measured.key.kind == KernelKind::gemm && each.measured.key.format == Format::bfloat16;
      });
  if (!has_products) result.fitted.clear();
  return result;
}

std::vector<FittedKernel> traced_kernels(const std::vector<Observation>& observations, const Machine& machine) {
  std::vector<Observation> tasks;
  for (const Observation& each : observations)
    if (each.group == ObservationGroup::compute && !each.isolated && each.overlap_share <= undisturbed_share)
      tasks.push_back(each);
  if (tasks.size() < least_shapes) return {};
  const std::vector<Place> places = places_in(machine.kernels);
  std::vector<std::string> names;
  for (const Observation& task : tasks) names.push_back(task.name);
  constexpr int parts = 5, none = -1;
  const std::vector<int> part = folds_of(names, parts);
  const TaskFit all = fit_tasks(tasks, part, none, machine, places);
  std::vector<double> left_out(tasks.size());
  for (int fold = 0; fold < parts; ++fold) {
    const TaskFit others = fit_tasks(tasks, part, fold, machine, places);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (part[i] == fold) left_out[i] = others.predicted_s[i];
  }
  // Tasks hold several kernels, so all of these have the same rows and errors.
  KernelFit fit;
  fit.in_sample = error_of(tasks, all.predicted_s), fit.left_out = error_of(tasks, left_out),
  fit.predicted_s = left_out;
  KernelTable table;
  for (const Observation& task : tasks) table.rows.push_back({{}, task.name, task.seconds});

  constexpr double told = 0.95;  // of its prior spread is left of a constant of which the tasks say something
  const Machine fitted = with_values(machine, places, all.fit.values);
  std::vector<FittedKernel> kernels;
  for (const KernelKey& key : keys_of(machine.kernels)) {
    const auto constants = constants_of(key.kind);
    bool says = false;
    fit.values = *values_of(fitted.kernels, key), fit.spread = {};
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i].key != key) continue;
      const double left = all.fit.remaining_spread[i];
      fit.spread[places[i].constant] = left * constants[places[i].constant].spread;
      says |= left < told;
    }
    table.kind = key.kind;
    if (says) kernels.push_back({{machine.name, key, table}, fit});
  }
  return kernels;
}

std::vector<Observation> beside_kernels(std::vector<Observation> observations) {
  std::erase_if(observations, [](const Observation& each) {
    return each.group == ObservationGroup::compute || (is_between_ranks(each.group) && each.kind != "transfer");
  });
  return observations;
}

}  // namespace slipway::scenarios
