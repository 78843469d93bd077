#include "exec/rank/evaluation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "exec/transport/device.h"
#include "schedules/graph/bubble_work.h"

namespace slipway::exec {

namespace {

// Opens the held-out data like run.data, whose errors name that key.
TokenData held_out(const Bundle& bundle) {
  try {
    return {bundle.run.evaluation_data, bundle.graph.step.model, bundle.run.seed};
  } catch (const std::runtime_error& error) {
    const std::string what = error.what(), key = "run.data: ";
    throw std::runtime_error("run.evaluation_data: " + (what.starts_with(key) ? what.substr(key.size()) : what));
  }
}

// Makes the weights views of `flat`; there are no gradients.
void view_in(std::vector<ShardedParameter>& parameters, const at::Tensor& flat) {
  for (ShardedParameter& parameter : parameters) {
    parameter.weight = flat.narrow(0, parameter.offset, parameter.elements).view(parameter.weight.sizes());
    parameter.gradient = at::Tensor();
  }
}

}  // namespace

Evaluation::Evaluation(const Bundle& bundle, int rank, const Buckets& buckets, at::Device device)
    : graph_(bundle.graph),
      buckets_(buckets),
      device_(device),
      data_rank_(coordinates_of(graph_.step.layout, rank).data),
      data_(held_out(bundle)) {
  for (const Task& task : graph_.tasks)
    if (is_evaluation(graph_.work(task))) micro_batches_ = std::max(micro_batches_, task.micro_batch + 1);
  for (const int index : buckets.blocks()) {
    BlockParameters copy = buckets.block(index);
    copy.weights = at::empty_like(copy.weights);
    copy.gradients = at::Tensor();
    view_in(copy.parameters, copy.weights);
    if (!copy.elsewhere.empty()) view_in(copy.elsewhere, frozen_.at(0).weights);  // the embedding's
    frozen_.emplace(index, std::move(copy));
  }
}

void Evaluation::begin(int window) {
  if (window == window_) return;
  window_ = window;
  for (auto& [index, copy] : frozen_) copy.weights.copy_(buckets_.block(index).weights);
}

TokenBatch Evaluation::batch(int micro_batch) {
  const std::int64_t b = graph_.step.micro_batch;
  return data_.batch((std::int64_t{data_rank_} * micro_batches_ + micro_batch) * b, b, device_);
}

std::int64_t Evaluation::samples() const {
  return std::int64_t{graph_.step.layout.data} * micro_batches_ * graph_.step.micro_batch;
}

double Evaluation::loss_tokens() const { return static_cast<double>(samples() * predicted_tokens(graph_.step.model)); }

std::string Evaluation::note() const {
  if (data_.samples() >= samples()) return "";
  const std::int64_t fit = data_.samples() / (std::int64_t{graph_.step.layout.data} * graph_.step.micro_batch);
  return "run.evaluation_data has " + std::to_string(data_.samples()) + " samples of " +
         std::to_string(graph_.step.model->sequence) + " tokens, and each window evaluates " +
         std::to_string(samples()) + ": some count several times in the held-out loss; " +
         (fit > 0
              ? "set schedule.evaluation_micro_batches to at most " + std::to_string(fit) + ", or name a longer text"
              : "name a longer text");
}

void Evaluation::put_residual(const Place& reader, at::Tensor residual) {
  const std::lock_guard lock(mutex_);
  residuals_[reader] = std::move(residual);
}

at::Tensor Evaluation::take_residual(const Place& reader) {
  const std::lock_guard lock(mutex_);
  const auto found = residuals_.extract(reader);
  if (found.empty())
    throw std::logic_error("stage " + std::to_string(reader.stage) + " evaluates micro-batch " +
                           std::to_string(reader.micro_batch) + " before it has come");
  keep_for_this_lane(found.mapped());
  return found.mapped();
}

void Evaluation::add_loss(int window, const at::Tensor& loss) {
  const std::lock_guard lock(mutex_);
  Sum& sum = losses_[window];
  const at::Tensor value = loss.to(at::kDouble);
  sum.loss = sum.loss.defined() ? sum.loss + value : value;
  ++sum.micro_batches;
}

std::optional<double> Evaluation::take_loss(int window) {
  const std::lock_guard lock(mutex_);
  const auto found = losses_.extract(window);
  if (found.empty() || found.mapped().micro_batches < micro_batches_) return std::nullopt;
  return number_of(found.mapped().loss);
}

}  // namespace slipway::exec
