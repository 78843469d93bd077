#include "exec/evaluation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "exec/device.h"
#include "schedules/evaluation_work.h"

namespace slipway {

namespace {

// Read as run.data is, whose errors name that key.
TokenData held_out(const Bundle& bundle) {
  try {
    return {bundle.run.evaluation_data, bundle.graph.model, bundle.run.seed};
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
      data_rank_(coordinates_of(graph_.layout, rank).data),
      data_(held_out(bundle)) {
  for (const Task& task : graph_.tasks)
    if (is_evaluation(graph_.works[static_cast<std::size_t>(task.work)]))
      micro_batches_ = std::max(micro_batches_, task.micro_batch + 1);
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
  const std::int64_t b = graph_.shape.micro_batch;
  return data_.batch((std::int64_t{data_rank_} * micro_batches_ + micro_batch) * b, b, device_);
}

double Evaluation::loss_tokens() const {
  return static_cast<double>(graph_.layout.data * micro_batches_ * graph_.shape.micro_batch * predicted_tokens(graph_.model));
}

void Evaluation::put_residual(int stage, int micro_batch, at::Tensor residual) {
  const std::lock_guard lock(mutex_);
  residuals_[{stage, micro_batch}] = std::move(residual);
}

at::Tensor Evaluation::take_residual(int stage, int micro_batch) {
  const std::lock_guard lock(mutex_);
  const auto found = residuals_.extract({stage, micro_batch});
  if (found.empty())
    throw std::logic_error("stage " + std::to_string(stage) + " evaluates micro-batch " + std::to_string(micro_batch) +
                           " before it has come");
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

}  // namespace slipway
