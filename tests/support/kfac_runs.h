// Training with K-FAC: bundles of windows, filled or not, and a separate implementation as their truth, on the plain
// model of tests/support/reference_model.h. It does not know tasks. It gets only the step of a window from which a
// Linear's inverses are those of the window's first step.
#pragma once

#include <torch/optim/adamw.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "models/machine/priced_cluster.h"
#include "models/training/kfac.h"
#include "schedules/check/check.h"
#include "schedules/fill/kfac.h"
#include "tests/support/hand_graph.h"
#include "tests/support/reference_model.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {

struct KfacWindow {
  bool filled = false;
  int refresh_steps = 1;             // without bubble work
  double bubble_work_seconds = 0.4;  // per item; a forward takes 1, a backward 2
};

// A prediction and a measurement join on labels.
inline void expect_labels_are_unique(const TaskGraph& graph) {
  std::set<std::tuple<int, std::int32_t, std::string>> seen;  // of (step of the window, rank, label)
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    for (const std::int32_t rank : members_of(graph, id))
      EXPECT_TRUE(seen.insert({graph.tasks[id].step, rank, label_of(graph, id)}).second) << label_of(graph, id);
}

inline Bundle kfac_bundle(Step input, const KfacWindow& window) {
  input.optimizer.name = "kfac";
  Bundle bundle = tiny_bundle(input);
  PricedCluster cluster = hand_cluster(1, rank_count(input.layout), 1e9, 1e-6);
  for (const Dtype dtype : {input.dtype, kfac_dtype(input.dtype)})
    cluster.groups[0].machine.peak_flops[static_cast<std::size_t>(dtype)] = 1e12;
  cluster.groups[0].machine.memory_bandwidth = 1e12;
  BubbleWork bubble_work = kfac_bubble_work(bundle.graph, cluster);
  for (BubbleTask& item : bubble_work.items)
    item.seconds = item.task.communicator == none ? window.bubble_work_seconds : 0.01;
  FillOptions options;
  options.use_bubbles = window.filled;
  options.steps = window.refresh_steps;
  bundle.graph = fill(bundle.graph, unit_durations(bundle.graph), bubble_work, options).graph;
  for (const Violation& violation : check_graph(bundle.graph)) ADD_FAILURE() << describe(bundle.graph, violation);
  expect_labels_are_unique(bundle.graph);
  bundle.graph.step.optimizer.name = "kfac";
  bundle.graph.step.optimizer.lr = 5e-3;
  bundle.graph.step.optimizer.damping = 3e-2;
  return bundle;
}

// "layers.0.q"
using LinearName = std::string;
struct LinearOfModel {
  LinearName name;
  std::string weight;  // parameter
  KfacLinear shape;
};
inline std::vector<LinearOfModel> linears_of(const Model& model) {
  std::vector<LinearOfModel> list;
  const std::vector<Block> blocks = blocks_of(model);
  for (std::size_t i = 1; i + 1 < blocks.size(); ++i)
    for (const KfacLinear& shape : kfac_linears(blocks[i])) {
      const std::string prefix = "layers." + std::to_string(i - 1) + ".";
      list.push_back({prefix + shape.name, prefix + shape.parameter, shape});
    }
  return list;
}

// By the order of the compute lanes: the number of preconditionings of its rank and stage before both inversions of a
// Linear.
inline std::map<LinearName, int> first_steps_with_new_inverses(const TaskGraph& graph) {
  std::map<LinearName, int> first;
  for (std::size_t rank = 0; rank < graph.compute_order.size(); ++rank) {
    std::map<int, int> preconditioned;  // by stage
    for (const TaskId id : graph.compute_order[rank]) {
      const Work& work = graph.work(id);
      if (work.kind == WorkKind::precondition) ++preconditioned[work.stage];
      const std::size_t inverse = work.suffix.rfind(".inv");
      if (inverse == std::string::npos) continue;
      const std::size_t dot = work.suffix.rfind('.', inverse - 1);
      const LinearName name = "layers." + std::to_string(work.block - 1) + work.suffix.substr(dot, inverse - dot);
      first[name] = std::max(first[name], preconditioned[work.stage]);
    }
  }
  return first;
}

class KfacReference {
 public:
  KfacReference(const Bundle& bundle, std::map<LinearName, int> first_step)
      : bundle_(bundle),
        first_step_(std::move(first_step)),
        linears_(linears_of(bundle.graph.step.model)),
        weights_(whole_weights(bundle.graph.step.model, bundle.run.seed)),
        reference_(bundle.graph.step.model, weights_,
                   [this](const std::string& name, const at::Tensor& x, const at::Tensor& y) { note(name, x, y); }),
        adamw_(others(), torch::optim::AdamWOptions(bundle.graph.step.optimizer.lr)
                             .betas({bundle.graph.step.optimizer.beta1, bundle.graph.step.optimizer.beta2})
                             .eps(bundle.graph.step.optimizer.epsilon)),
        data_(bundle.run.data, bundle.graph.step.model, bundle.run.seed) {
    for (auto& group : adamw_.param_groups())
      static_cast<torch::optim::AdamWOptions&>(group.options())
          .weight_decay(group.params().front().dim() == 2 ? bundle.graph.step.optimizer.weight_decay : 0);
  }

  // Steps must come in order from 0. Returns the loss.
  double train(int step) {
    const std::int64_t batch = bundle_.graph.step.global_batch;
    products_.clear();
    for (auto& [name, weight] : weights_) weight.mutable_grad() = at::zeros_like(weight);
    const TokenBatch tokens = data_.batch(step * batch, batch, at::kCPU);
    const at::Tensor loss = reference_.loss(tokens);
    loss.backward();
    at::NoGradGuard no_grad;
    const int in_window = step % bundle_.graph.window;
    if (in_window == 0) fresh_ = inverses(tokens);
    for (const LinearOfModel& linear : linears_) {
      if (first_step_.at(linear.name) <= in_window) used_[linear.name] = fresh_[linear.name];
      precondition(linear);
    }
    clip(weights_, bundle_.graph.step.clip_norm);
    update();
    for (const LinearOfModel& linear : linears_)
      if (in_window + 1 == bundle_.graph.window) used_[linear.name] = fresh_[linear.name];
    return loss.item<double>();
  }

  const Weights& weights() const { return weights_; }  // with the gradients that were used

 private:
  struct Product {
    at::Tensor x, y;
  };
  struct Pair {
    at::Tensor a, b;
  };

  void note(const std::string& name, const at::Tensor& x, const at::Tensor& y) {
    y.retain_grad();
    products_[name + ".weight"] = {x.detach(), y};
  }

  bool is_natural(const std::string& name) const {
    return std::any_of(linears_.begin(), linears_.end(),
                       [&](const LinearOfModel& linear) { return linear.weight == name; });
  }

  std::vector<torch::optim::OptimizerParamGroup> others() {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (auto& [name, weight] : weights_)
      if (!is_natural(name)) groups.emplace_back(std::vector<at::Tensor>{weight});
    return groups;
  }

  // Osawa et al. 2022: means over tokens, at::linalg_inv.
  std::map<LinearName, Pair> inverses(const TokenBatch& batch) {
    std::map<LinearName, Pair> result;
    const std::int64_t all = batch.tokens.numel();
    const std::int64_t predicted = batch.counted.defined() ? batch.counted.sum().item<std::int64_t>() : all;
    for (const LinearOfModel& linear : linears_) {
      const Product& product = products_.at(linear.weight);
      const auto in = linear.shape.in, out = linear.shape.out;
      const at::Tensor x = product.x.reshape({all, in});
      const at::Tensor g =
          static_cast<double>(predicted) *
          product.y.grad().reshape({all, -1}).slice(1, linear.shape.first_row, linear.shape.first_row + out);
      const at::Tensor a = at::einsum("ti,tj->ij", {x, x}) / all, b = at::einsum("ti,tj->ij", {g, g}) / all;
      const double mean_a = a.trace().item<double>() / static_cast<double>(in),
                   mean_b = b.trace().item<double>() / static_cast<double>(out);
      const double pi = std::sqrt(mean_a / mean_b), root = std::sqrt(bundle_.graph.step.optimizer.damping);
      result[linear.name] = {at::linalg_inv(a + pi * root * at::eye(in, at::kDouble)),
                             at::linalg_inv(b + root / pi * at::eye(out, at::kDouble))};
    }
    return result;
  }

  void precondition(const LinearOfModel& linear) {
    const auto pair = used_.find(linear.name);
    if (pair == used_.end()) return;
    at::Tensor rows = weights_.at(linear.weight)
                          .mutable_grad()
                          .slice(0, linear.shape.first_row, linear.shape.first_row + linear.shape.out);
    rows.copy_(pair->second.b.matmul(rows.matmul(pair->second.a)));
  }

  void update() {
    const Optimizer& o = bundle_.graph.step.optimizer;
    adamw_.step();
    for (auto& [name, weight] : weights_)
      if (is_natural(name)) weight.copy_(weight - o.lr * (o.weight_decay * weight + weight.grad()));
  }

  const Bundle& bundle_;
  std::map<LinearName, int> first_step_;
  std::vector<LinearOfModel> linears_;
  Weights weights_;
  std::map<std::string, Product> products_;
  ReferenceModel reference_;
  torch::optim::AdamW adamw_;
  TokenData data_;
  std::map<LinearName, Pair> fresh_, used_;
};

}  // namespace slipway::test
