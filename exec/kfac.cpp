#include "exec/kfac.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "exec/data.h"
#include "exec/device.h"
#include "exec/kfac_math.h"

namespace slipway {

Kfac::Kfac(const Bundle& bundle, int rank, const Buckets& buckets)
    : bundle_(bundle),
      graph_(bundle.graph),
      rank_(rank),
      dtype_(kfac_dtype(graph_.shape.dtype)),
      tokens_(static_cast<double>(graph_.global_batch * graph_.model.sequence)),
      loss_tokens_(static_cast<double>(graph_.global_batch * predicted_tokens(graph_.model))) {
  take_linears(buckets);
  take_works();
}

void Kfac::take_linears(const Buckets& buckets) {
  const int pipeline = coordinates_of(graph_.layout, rank_).pipeline;
  const std::vector<Block> blocks = blocks_of(graph_.model);
  std::map<int, int> stage_of;  // blocks of this rank
  for (int stage = 0; stage < graph_.placement.stages(); ++stage) {
    if (graph_.placement.rank[static_cast<std::size_t>(stage)] != pipeline) continue;
    const BlockRange& range = graph_.stages[static_cast<std::size_t>(stage)];
    for (int block = range.first; block < range.last; ++block) stage_of[block] = stage;
  }
  for (const auto& [block, stage] : stage_of) {
    for (const KfacLinear& shape : kfac_linears(blocks[static_cast<std::size_t>(block)])) {
      Linear linear{
          shape,       block,       stage, rank_, &parameter_named(buckets.block(block), shape.parameter),
          a_elements_, b_elements_, {},    {},    {}};
      a_elements_ += shape.in * shape.in;
      b_elements_ += shape.out * shape.out;
      linears_.push_back(std::move(linear));
    }
  }
}

// The graph says who inverts what, and what of it is this rank's.
void Kfac::take_works() {
  std::map<int, std::size_t> first;  // of a block in linears_
  for (std::size_t i = 0; i < linears_.size(); ++i) first.try_emplace(linears_[i].block, i);
  for (const Task& task : graph_.tasks) {
    const Work& work = graph_.works[static_cast<std::size_t>(task.work)];
    if (work.kind != WorkKind::filler) continue;
    if (work.collective != Collective::none) {
      const auto& ranks = graph_.communicators[static_cast<std::size_t>(task.communicator)].ranks;
      uses_ += static_cast<int>(std::count(ranks.begin(), ranks.end(), rank_));
      continue;
    }
    const auto found = first.find(work.block);
    if (found == first.end()) continue;
    const KfacWork what = kfac_work_of(graph_, work);
    const std::size_t linear = found->second + what.linear;
    if (what.stage == KfacStage::inversion) linears_[linear].owner = task.rank;
    if (task.rank != rank_) continue;
    if (what.stage == KfacStage::inversion) ++uses_;
    fillers_[task.work] = {linear, what};
    if (what.stage == KfacStage::curvature) captures_.try_emplace({task.micro_batch, task.slice});
  }
  std::map<const ShardedParameter*, int> factors;  // of a weight
  for (const Linear& linear : linears_) ++factors[linear.weight];
  for (auto& [visit, capture] : captures_)
    for (const auto& [weight, count] : factors) capture.want(*weight, count);
}

LinearCapture* Kfac::capture_of(const Task& segment) {
  if (segment.step > 0) return nullptr;
  const auto found = captures_.find({segment.micro_batch, segment.slice});
  return found == captures_.end() ? nullptr : &found->second;
}

Kfac::Refresh& Kfac::refresh_of(int step) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = refreshes_.try_emplace(step);
  if (is_new) {
    found->second.uses_left = uses_;
  }
  return found->second;
}

at::Tensor& Kfac::sums_of(Refresh& refresh, bool of_input) const {
  at::Tensor& sums = of_input ? refresh.a : refresh.b;
  if (!sums.defined())
    sums = at::zeros({of_input ? a_elements_ : b_elements_},
                     linears_.front().weight->weight.options().dtype(torch_dtype(dtype_)));
  return sums;
}

void Kfac::used(int step) {
  const std::lock_guard lock(mutex_);
  const auto found = refreshes_.find(step);
  if (--found->second.uses_left == 0) refreshes_.erase(found);
}

at::Tensor Kfac::factor(Refresh& refresh, const Linear& linear, bool of_input) const {
  const std::int64_t side = of_input ? linear.shape.in : linear.shape.out;
  return sums_of(refresh, of_input)
      .narrow(0, of_input ? linear.a_begin : linear.b_begin, side * side)
      .view({side, side});
}

at::Tensor Kfac::gradient_of(const Linear& linear) const {
  return linear.weight->gradient.narrow(0, linear.shape.first_row, linear.shape.out);
}

void Kfac::run_filler(TaskId id, int step) {
  const Task& task = graph_.tasks[id];
  const auto found = fillers_.find(task.work);
  if (found == fillers_.end())
    throw std::runtime_error(label_of(graph_, id) + " is no work of K-FAC on this rank");
  if (found->second.work.stage == KfacStage::curvature)
    curvature(found->second, task, step);
  else
    invert(found->second, id, step);
}

void Kfac::curvature(const Filler& filler, const Task& task, int step) {
  const Linear& linear = linears_[filler.linear];
  LinearCapture& capture = captures_.at({task.micro_batch, task.slice});
  Refresh& refresh = refresh_of(step);
  at::Tensor sum = factor(refresh, linear, filler.work.of_input);
  if (filler.work.of_input)
    add_squares(sum, capture.take_input(*linear.weight), 1);
  else
    add_squares(
        sum,
        capture.take_output_gradient(*linear.weight).narrow(-1, linear.shape.first_row, linear.shape.out),
        loss_tokens_);
}

void Kfac::invert(const Filler& filler, TaskId task, int step) {
  Linear& linear = linears_[filler.linear];
  Refresh& refresh = refresh_of(step);
  const bool is_first = !linear.ratio.defined(), of_input = filler.work.of_input;
  if (is_first) linear.ratio = damping_ratio(factor(refresh, linear, true), factor(refresh, linear, false));
  at::Tensor own = factor(refresh, linear, of_input);
  own.div_(tokens_);
  const double root = std::sqrt(bundle_.run.optimizer.damping);
  const at::Tensor failed = invert_damped(own, of_input ? linear.ratio * root : root / linear.ratio);
  failures_.push_back({step, label_of(graph_, task), failed.to(at::kDouble)});
  if (!is_first) exchange_pair(linear, refresh);
  used(step);
}

// Into the memory of the pair before.
void Kfac::exchange_pair(Linear& linear, Refresh& refresh) const {
  linear.ratio.reset();
  for (const bool of_input : {true, false}) {
    at::Tensor& inverse = of_input ? linear.inverse_a : linear.inverse_b;
    const at::Tensor made = factor(refresh, linear, of_input);
    if (inverse.defined())
      inverse.copy_(made);
    else
      inverse = made.clone();
  }
}

void Kfac::precondition(int stage) const {
  for (const Linear& linear : linears_) {
    if (linear.stage != stage || linear.owner != rank_ || !linear.inverse_a.defined()) continue;
    at::Tensor gradient = gradient_of(linear);
    precondition_gradient(gradient, linear.inverse_a, linear.inverse_b);
  }
}

void Kfac::check(int step) {
  for (const Failure& failure : failures_) {
    if (failure.step != step || number_of(failure.minor) == 0) continue;
    throw std::runtime_error(
        failure.label +
        ": K-FAC's factor cannot be inverted (it is not positive definite, or not finite); " +
        "raise run.optimizer.damping or lower run.lr");
  }
  std::erase_if(failures_, [&](const Failure& failure) { return failure.step <= step; });
}

}  // namespace slipway
