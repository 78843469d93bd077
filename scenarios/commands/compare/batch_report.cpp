#include "scenarios/commands/compare/batch_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "models/trace/statistics.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

struct Sums {
  double noise = 0, signal = 0;
  bool measured = false;
};

// The losses of the trace's own steps, without those of the training before it.
std::vector<LossPoint> own_losses(const Trace& trace) {
  const int before = steps_before(trace);
  std::vector<LossPoint> own;
  for (const LossPoint& point : trace.losses)
    if (point.step >= before) own.push_back(point);
  return own;
}

std::optional<double> noise_scale_of(const Sums& sums, std::int64_t batch) {
  if (!sums.measured) return std::nullopt;
  if (sums.signal <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(batch) * sums.noise / sums.signal;
}

// Three digits, so that a scale of a few sequences differs visibly from one of one.
std::string noise_text(double sequences) {
  return (sequences < 1000 ? fmt::format("{:.3g}", sequences) : readable_count(sequences)) + " sequences";
}

std::string off_by(const BatchRow& row) {
  if (!row.predicted_step_s || !row.measured.step_s) return "-";
  return readable_share(std::abs(*row.predicted_step_s / *row.measured.step_s - 1));
}

// JSON has no infinity, the table has words for it.
std::string noise_cell(const BatchRow& row) {
  const double noise = row.measured.noise_scale.value_or(std::numeric_limits<double>::quiet_NaN());
  return std::isfinite(noise) ? noise_text(noise) : std::isinf(noise) ? "no signal" : "-";
}

}  // namespace

std::vector<BatchMeasured> batches_of(const Trace& trace, const StepTimes& times) {
  std::vector<BatchMeasured> batches;
  std::vector<double> periods;
  Sums sums;
  const std::vector<LossPoint> losses = own_losses(trace);
  for (std::size_t i = 0; i < losses.size() && losses[i].batch; ++i) {
    const int step = static_cast<int>(i);
    const bool goes_on = i + 1 < losses.size() && losses[i + 1].batch == losses[i].batch;
    if (batches.empty() || batches.back().batch != *losses[i].batch) {
      batches.push_back({*losses[i].batch, step, step, {}, {}});
      periods.clear();
      sums = {};
    }
    BatchMeasured& now = batches.back();
    now.last = step;
    if (goes_on && step >= times.first && step <= times.last) periods.push_back(times.period_s[step - times.first]);
    if (losses[i].gradient_square && losses[i].gradient_variance) {
      sums.noise += *losses[i].gradient_variance;
      sums.signal += *losses[i].gradient_square - *losses[i].gradient_variance;
      sums.measured = true;
    }
    if (goes_on) continue;
    if (!periods.empty()) now.step_s = median(periods);
    now.noise_scale = noise_scale_of(sums, now.batch);
  }
  return batches;
}

const BatchMeasured& longest_of(const std::vector<BatchMeasured>& batches) {
  return *std::max_element(batches.begin(), batches.end(), [](const BatchMeasured& a, const BatchMeasured& b) {
    return a.last - a.first < b.last - b.first;
  });
}

std::vector<std::int64_t> batches_in(const Trace& trace) {
  std::vector<std::int64_t> batches;
  for (const LossPoint& point : own_losses(trace))
    if (point.batch && (batches.empty() || batches.back() != *point.batch)) batches.push_back(*point.batch);
  return batches;
}

Trace steps_of_batch(const Trace& trace, std::int64_t batch) {
  const std::vector<LossPoint> losses = own_losses(trace);
  const auto is_of = [&](const LossPoint& point) { return point.batch == batch; };
  const auto from = std::find_if(losses.begin(), losses.end(), is_of), to = std::find_if_not(from, losses.end(), is_of);
  if (from == to)
    throw std::invalid_argument(
        fmt::format("its batch grew, through {}, and was never {}", fmt::join(batches_in(trace), ", "), batch));
  const int first = static_cast<int>(from - losses.begin());
  Trace part = trace;
  part.steps = static_cast<int>(to - from);
  std::erase_if(part.records,
                [&](const TraceRecord& record) { return record.step < first || record.step >= first + part.steps; });
  for (TraceRecord& record : part.records) record.step -= first;
  const int end = steps_before(trace) + first + part.steps;
  std::erase_if(part.losses, [&](const LossPoint& point) { return point.step >= end; });
  return part;
}

std::vector<BatchRow> batch_rows(const std::vector<BatchMeasured>& batches, double sequence, int steps_before,
                                 const std::map<std::int64_t, double>& predicted_s) {
  std::vector<BatchRow> rows;
  for (const BatchMeasured& each : batches) {
    BatchRow& row = rows.emplace_back(
        BatchRow{each, steps_before + each.first + 1, steps_before + each.last + 1, std::nullopt, std::nullopt});
    if (each.step_s) row.tokens_per_s = static_cast<double>(each.batch) * sequence / *each.step_s;
    if (const auto found = predicted_s.find(each.batch); found != predicted_s.end())
      row.predicted_step_s = found->second;
  }
  return rows;
}

const Description<BatchRow>& batch_keys() {
  static const Description<BatchRow> description =
      Description<BatchRow>()
          .key("batch", "count", "sequences per step", [](const BatchRow& row) { return row.measured.batch; })
          .column("batch")
          .key("first_step", "number", "of the training, counted from 1", &BatchRow::first_step)
          .wide_column("steps",
                       [](const BatchRow& row) { return fmt::format("{} to {}", row.first_step, row.last_step); })
          .key("last_step", "number", "the same", &BatchRow::last_step)
          .key("step_time_s", "s", "median of its steps with a successor of the same batch; absent without one",
               [](const BatchRow& row) { return row.measured.step_s; })
          .column("step time", or_dash(readable_seconds))
          .only_column("tokens/s",
                       [](const BatchRow& row) { return row.tokens_per_s ? readable_count(*row.tokens_per_s) : "-"; })
          .key("predicted_step_s", "s", "simulated before the run; present with --confirm", &BatchRow::predicted_step_s)
          .column("predicted", or_dash(readable_seconds))
          .if_any()
          .only_column("off by", off_by)
          .if_any()
          .key("noise_scale", "count",
               "gradient noise scale in sequences; null where no signal stands out of the noise or the training has "
               "diverged; present with the norm test",
               [](const BatchRow& row) { return row.measured.noise_scale; })
          .wide_column("noise scale", noise_cell)
          .if_any();
  return description;
}

}  // namespace slipway::scenarios
