#include "scenarios/tables/price.h"

#include <cmath>
#include <map>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/load_stack.h"
#include "scenarios/language/profiles.h"
#include "scenarios/tables/price_memory.h"

namespace slipway::scenarios {
namespace {

// 0 for equal peaks and memory bandwidths, 1 for e times as much of one of them.
double unlikeness(const Machine& a, const Machine& b) {
  constexpr std::size_t half = static_cast<std::size_t>(Dtype::float16);
  return std::abs(std::log(a.peak_flops[half] / b.peak_flops[half])) +
         std::abs(std::log(a.memory_bandwidth / b.memory_bandwidth));
}

// For a trainer that was never fitted on this machine: shares of peak carry over best between machines alike.
const StackTime& most_alike(const Stack& stack, const Machine& machine) {
  const StackTime* best = &stack.times.at(0);
  for (const StackTime& time : stack.times)
    if (unlikeness(built_in_machine(time.machine), machine) < unlikeness(built_in_machine(best->machine), machine))
      best = &time;
  return *best;
}

}  // namespace

StepWork work_of(const PublishedRow& row) {
  StepWork work = step_work(row.step.model, built_in_machine(row.machine), row.step.dtype);
  const Layout& cut = row.step.layout;
  work.s = static_cast<double>(row.step.model->sequence);
  work.b = static_cast<double>(row.step.micro_batch);
  work.m = static_cast<double>(micro_batches_of(row.step));
  work.t = cut.tensor;
  work.c = cut.context;
  work.p = row.step.layout.pipeline;
  work.d = row.step.layout.data;
  work.gpus = row.gpus;
  work.chunks = row.step.layout.chunks;
  work.fp8 = row.fp8;
  work.gpus_per_node = row.gpus_per_node;
  work.sequence_parallel = cut.sequence_parallel;
  work.zero = row.step.layout.zero;
  work.shard_group = row.shard_group;
  work.kernels = row.step.kernels;
  work.recompute = row.step.recompute;
  work.gradient_bytes = bytes_of(row.step.gradient_dtype);
  if (work.p > work.L) throw std::invalid_argument("it has more pipeline stages than layers");
  return work;
}

const StackTime& time_constants_of(const PublishedRow& row) {
  const Stack* stack = built_in_stack(row.trainer);
  if (stack == nullptr) throw std::invalid_argument("there is no stack profile of trainer '" + row.trainer + "'");
  const StackTime* time = time_on(*stack, row.machine);
  return time != nullptr ? *time : most_alike(*stack, built_in_machine(row.machine));
}

const Machine& machine_of(const PublishedRow& row) { return built_in_machine(row.machine); }

double peak_flops_of(const PublishedRow& row) {
  return built_in_machine(row.machine).peak_flops[static_cast<std::size_t>(row.step.dtype)];
}

RowPrice price(const PublishedRow& row) {
  RowPrice result;
  result.cannot = result.cannot_memory = row.unpriceable;
  if (!row.unpriceable.empty()) return result;
  try {
    const StackTime& time = time_constants_of(row);
    if (time.machine != row.machine) result.borrowed_from = time.machine;
    const TimeModel& model = *time_model_of(row.trainer);
    const StepWork work = work_of(row);
    std::string outside;
    for (const char* feature : model.outside(work)) outside += (outside.empty() ? "" : ", ") + std::string(feature);
    if (!outside.empty())
      throw std::invalid_argument("it is outside what the formula of " + row.trainer + " prices: " + outside);
    const double seconds = model.seconds(work, values_of(time));
    if (!std::isfinite(seconds) || !(seconds > 0))
      throw std::invalid_argument("its shapes are so large that the formula of " + row.trainer + " gives no number");
    result.step_s = seconds;
    result.mfu = mfu_of(row, result.step_s, peak_flops_of(row));
  } catch (const std::invalid_argument& error) {
    result.cannot = error.what();
  }
  try {
    result.memory = price_memory(memory_run_of(row), memory_constants_of(row));
  } catch (const std::invalid_argument& error) {
    result.cannot_memory = error.what();
  }
  return result;
}

}  // namespace slipway::scenarios
