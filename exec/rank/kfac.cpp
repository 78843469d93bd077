#include "exec/rank/kfac.h"

#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include "exec/files/data.h"
#include "exec/rank/kfac_math.h"
#include "exec/transport/device.h"

namespace slipway::exec {

namespace {

std::int64_t elements_of(const KfacLinear& linear) { return linear.in * linear.out; }

}  // namespace

Kfac::Kfac(const Bundle& bundle, int rank, const Buckets& buckets)
    : bundle_(bundle),
      graph_(bundle.graph),
      rank_(rank),
      dtype_(kfac_dtype(graph_.step.dtype)),
      tokens_(static_cast<double>(graph_.step.global_batch * graph_.step.model->sequence)),
      loss_tokens_(static_cast<double>(graph_.step.global_batch * predicted_tokens(graph_.step.model))) {
  take_linears(buckets);
  take_works();
}

void Kfac::take_linears(const Buckets& buckets) {
  const int pipeline = coordinates_of(graph_.step.layout, rank_).pipeline;
  const std::vector<Block> blocks = blocks_of(graph_.step.model);
  std::map<int, int> stage_of;  // blocks of this rank
  for (int stage = 0; stage < graph_.placement.stages(); ++stage) {
    if (graph_.placement.rank[stage] != pipeline) continue;
    const BlockRange& range = graph_.stages[stage];
    for (int block = range.first; block < range.last; ++block) stage_of[block] = stage;
  }
  for (const auto& [block, stage] : stage_of) {
    for (const KfacLinear& shape : kfac_linears(blocks[block])) {
      Linear linear{shape,       block,       stage, rank_, &parameter_named(buckets.block(block), shape.parameter),
                    a_elements_, b_elements_, {},    {},    {}};
      a_elements_ += shape.in * shape.in;
      b_elements_ += shape.out * shape.out;
      linears_.push_back(std::move(linear));
    }
  }
}

// Reads from the graph which rank inverts what, and this rank's part.
void Kfac::take_works() {
  std::map<int, std::size_t> first;  // of a block in linears_
  for (std::size_t i = 0; i < linears_.size(); ++i) first.try_emplace(linears_[i].block, i);
  for (const Task& task : graph_.tasks) {
    const Work& work = graph_.work(task);
    if (work.kind != WorkKind::bubble_work) continue;
    if (work.collective != Collective::none) {
      const auto& ranks = graph_.communicator(task).ranks;
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
    bubble_work_[task.work] = {linear, what};
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

void Kfac::run_bubble_work(TaskId id, int step) {
  const Task& task = graph_.tasks[id];
  const auto found = bubble_work_.find(task.work);
  if (found == bubble_work_.end()) throw std::runtime_error(label_of(graph_, id) + " is no work of K-FAC on this rank");
  if (found->second.work.stage == KfacStage::curvature)
    curvature(found->second, task, step);
  else
    invert(found->second, id, step);
}

void Kfac::curvature(const FactorTask& bubble_work, const Task& task, int step) {
  const Linear& linear = linears_[bubble_work.linear];
  LinearCapture& capture = captures_.at({task.micro_batch, task.slice});
  Refresh& refresh = refresh_of(step);
  at::Tensor sum = factor(refresh, linear, bubble_work.work.of_input);
  if (bubble_work.work.of_input)
    add_squares(sum, capture.take_input(*linear.weight), 1);
  else
    add_squares(sum, capture.take_output_gradient(*linear.weight).narrow(-1, linear.shape.first_row, linear.shape.out),
                loss_tokens_);
}

void Kfac::invert(const FactorTask& bubble_work, TaskId task, int step) {
  Linear& linear = linears_[bubble_work.linear];
  Refresh& refresh = refresh_of(step);
  const bool is_first = !linear.ratio.defined(), of_input = bubble_work.work.of_input;
  if (is_first) linear.ratio = damping_ratio(factor(refresh, linear, true), factor(refresh, linear, false));
  at::Tensor own = factor(refresh, linear, of_input);
  own.div_(tokens_);
  const double root = std::sqrt(bundle_.graph.step.optimizer.damping);
  const at::Tensor failed = invert_damped(own, of_input ? linear.ratio * root : root / linear.ratio);
  failures_.push_back({step, label_of(graph_, task), failed.to(at::kDouble)});
  if (!is_first) exchange_pair(linear, refresh);
  used(step);
}

// Writes into the memory of the pair before.
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
    throw std::runtime_error(failure.label +
                             ": K-FAC's factor cannot be inverted (it is not positive definite, or not finite); " +
                             "raise run.optimizer.damping or lower run.lr");
  }
  std::erase_if(failures_, [&](const Failure& failure) { return failure.step <= step; });
}

// K-FAC's inverses in a checkpoint: "layers.0.q.inverse_A", each from the rank that made it, so that any layout finds
// them.

std::string Kfac::checkpoint_name(const Linear& linear, bool of_input) const {
  const std::string& weight = linear.weight->meta.name;
  return weight.substr(0, weight.size() - std::strlen(linear.shape.parameter)) + linear.shape.name +
         (of_input ? ".inverse_A" : ".inverse_B");
}

void Kfac::save(ShardWriter& out) const {
  for (const Linear& linear : linears_) {
    if (linear.owner != rank_ || !linear.inverse_a.defined()) continue;
    for (const bool of_input : {true, false}) {
      const at::Tensor host = (of_input ? linear.inverse_a : linear.inverse_b).to(at::kCPU).contiguous();
      out.add({checkpoint_name(linear, of_input), dtype_, host.size(0), host.size(1)},
              {static_cast<const char*>(host.const_data_ptr()), host.nbytes()});
    }
  }
}

at::Tensor Kfac::stored_inverse(const CheckpointReader& checkpoint, const Linear& linear, bool of_input) const {
  const StoredMatrix* const stored = checkpoint.matrix(checkpoint_name(linear, of_input));
  if (stored == nullptr) return {};
  const std::int64_t side = of_input ? linear.shape.in : linear.shape.out;
  if (stored->rows != side || stored->columns != side)
    throw std::runtime_error(checkpoint.folder() + ": " + stored->name + " is " + std::to_string(stored->rows) + " x " +
                             std::to_string(stored->columns) + " there, but " + std::to_string(side) + " x " +
                             std::to_string(side) + " in this model; resume with the model that was trained");
  at::Tensor host = at::empty({side, side}, torch_dtype(stored->dtype));
  const std::string bytes = checkpoint.read(*stored);
  std::memcpy(host.mutable_data_ptr(), bytes.data(), bytes.size());
  return host.to(linear.weight->weight.device(), torch_dtype(dtype_));
}

void Kfac::load(const CheckpointReader& checkpoint) {
  for (Linear& linear : linears_) {
    if (linear.owner != rank_) continue;
    linear.inverse_a = stored_inverse(checkpoint, linear, true);
    linear.inverse_b = stored_inverse(checkpoint, linear, false);
    if (linear.inverse_a.defined() == linear.inverse_b.defined()) continue;
    throw std::runtime_error(checkpoint.folder() + ": only one inverse of " + checkpoint_name(linear, true) +
                             " and its partner is there; resume from another checkpoint");
  }
}

// Messages between K-FAC's replicas: sums of factors, and preconditioned gradients.

Message Kfac::message(TaskId task, int step) {
  const Work& work = graph_.work(task);
  if (work.kind == WorkKind::precondition) return gather_message(task);
  const at::Tensor& sums = sums_of(refresh_of(step), reduces_input_factors(work));
  keep_for_this_lane(sums);
  return {sums, sums};
}

void Kfac::arrived(TaskId task, int step, const Message& message) {
  if (graph_.work(task).kind == WorkKind::precondition)
    spread_gathered(task, message.output);
  else
    used(step);
}

// Linears of a part of the model that this member preconditions.
std::vector<const Kfac::Linear*> Kfac::share_of(int member, int part) const {
  const BlockRange& range = graph_.stages[part];
  std::vector<const Linear*> share;
  for (const Linear& linear : linears_)
    if (linear.owner == member && linear.block >= range.first && linear.block < range.last) share.push_back(&linear);
  return share;
}

Message Kfac::gather_message(TaskId task) const {
  const int part = graph_.work(task).stage;
  std::int64_t longest = 0;
  const auto members = members_of(graph_, task);
  for (const std::int32_t member : members) {
    std::int64_t elements = 0;
    for (const Linear* linear : share_of(member, part)) elements += elements_of(linear->shape);
    longest = std::max(longest, elements);
  }
  const auto options = linears_.front().weight->gradient.options();
  const at::Tensor all = at::empty({longest * static_cast<std::int64_t>(members.size())}, options);
  const auto me = std::find(members.begin(), members.end(), rank_) - members.begin();
  const at::Tensor mine = all.narrow(0, me * longest, longest).zero_();
  std::int64_t next = 0;
  for (const Linear* linear : share_of(rank_, part)) {
    mine.narrow(0, next, elements_of(linear->shape)).copy_(gradient_of(*linear).flatten());
    next += elements_of(linear->shape);
  }
  return {mine, all};
}

void Kfac::spread_gathered(TaskId task, const at::Tensor& gathered) const {
  const int part = graph_.work(task).stage;
  const auto members = members_of(graph_, task);
  const std::int64_t longest = gathered.size(0) / static_cast<std::int64_t>(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) {
    std::int64_t next = static_cast<std::int64_t>(m) * longest;
    for (const Linear* linear : share_of(members[m], part)) {
      at::Tensor gradient = gradient_of(*linear);
      if (members[m] != rank_) gradient.copy_(gathered.narrow(0, next, elements_of(linear->shape)).view_as(gradient));
      next += elements_of(linear->shape);
    }
  }
}

}  // namespace slipway::exec
