#include "schedules/fill/kfac.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>

#include "schedules/graph/bubble_work.h"
#include "schedules/lower/kfac_shares.h"
#include "schedules/lower/segments.h"
#include "schedules/time/durations.h"
#include "schedules/time/link_path.h"
#include "schedules/time/message_price.h"

namespace slipway::schedules {
namespace {

enum Priority { curvature_a, curvature_b, inversion_a, inversion_b };

// One pass of one micro-batch over one block of one rank.
struct Visit {
  int stage, block, micro_batch, slice;
  auto operator<=>(const Visit&) const = default;
};
struct VisitTasks {
  TaskId inputs = 0;  // inputs exist from its end on: forward, or recomputation
  TaskId errors = 0;  // output gradients exist: backward, or input gradient
  TaskId last = 0;    // both would be freed after it: backward, or weight gradient
};

class Maker {
 public:
  Maker(const TaskGraph& step, const PricedCluster& cluster)
      : step_(step), cluster_(cluster), blocks_(blocks_of(step.step.model)) {}

  BubbleWork run() {
    bubble_work_.name = "kfac";
    find_replicas();
    for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(step_.compute_order.size()); ++rank) {
      const std::map<Visit, VisitTasks> visits = visits_of(rank);
      if (!visits.empty()) add_rank(rank, visits);
    }
    add_reductions();
    bubble_work_.groups = groups_;
    return std::move(bubble_work_);
  }

 private:
  struct Replicas {
    std::int32_t communicator = none;  // in BubbleWork
    int index = 0, count = 1;
    BubbleGroup reduced_a = none, reduced_b = none;
  };
  struct Reduction {  // one kind, over one group of replicas
    std::int32_t communicator = none;
    BubbleGroup group = none;
    std::vector<BubbleGroup> after;
    std::vector<int> sums;  // in BubbleWork::kept, of each member
    double bytes = 0;
    const char* suffix = "";
    std::int32_t stage = 0;
  };

  const Machine& machine_of(std::int32_t rank) const { return cluster_.groups[place_of(cluster_, rank).group].machine; }

  void find_replicas() {
    replicas_.resize(step_.compute_order.size());
    for (const Communicator& communicator : step_.communicators) {
      if (communicator.axis != Axis::data) continue;
      const auto id = static_cast<std::int32_t>(bubble_work_.communicators.size());
      bubble_work_.communicators.push_back({"kfac", Axis::data, communicator.ranks});
      const BubbleGroup a = groups_++, b = groups_++;
      for (std::size_t i = 0; i < communicator.ranks.size(); ++i) {
        Replicas& replicas = replicas_[communicator.ranks[i]];
        if (replicas.communicator != none)
          throw std::invalid_argument(
              "K-FAC shares the inversions of a rank out among one group of replicas, but the stages of rank " +
              std::to_string(communicator.ranks[i]) + " have different ones; keep copies of the same stages together");
        replicas = {id, static_cast<int>(i), static_cast<int>(communicator.ranks.size()), a, b};
      }
      reductions_.push_back({id, a, {}, {}, 0, input_reduction_suffix, 0});
      reductions_.push_back({id, b, {}, {}, 0, gradient_reduction_suffix, 0});
    }
  }

  // Reads in the lane's order, so that of several segments of a pass the last one stays.
  std::map<Visit, VisitTasks> visits_of(std::int32_t rank) const {
    std::map<Visit, VisitTasks> visits;
    for (const TaskId id : step_.compute_order[rank]) {
      const Task& task = step_.tasks[id];
      const Work& work = step_.work(task);
      if (work.kind != WorkKind::segment) continue;
      const auto operators = step_.operators(work);
      const int last = operators[work.last_op - 1].block;
      for (int block = operators[work.first_op].block; block <= last; ++block) {
        if (blocks_[block].kind != BlockKind::transformer) continue;
        VisitTasks& tasks = visits[{work.stage, block, task.micro_batch, task.slice}];
        if (work.pass == Pass::forward || work.pass == Pass::recompute) tasks.inputs = id;
        if (work.pass == Pass::backward || work.pass == Pass::input_grad) tasks.errors = tasks.last = id;
        if (work.pass == Pass::weight_grad) tasks.last = id;
      }
    }
    return visits;
  }

  int work(int stage, int block, const KfacLinear& linear, KfacStage kind, bool of_input) {
    Work work;
    work.kind = WorkKind::bubble_work;
    work.stage = stage;
    work.block = block;
    work.bubble_work = name_of(kind);
    work.dtype = kfac_dtype(step_.shape().dtype);
    work.suffix = "." + block_name(blocks_, block) + kfac_suffix(linear, kind, of_input);
    bubble_work_.works.push_back(work);
    return static_cast<int>(bubble_work_.works.size()) - 1;
  }

  void add_rank(std::int32_t rank, const std::map<Visit, VisitTasks>& visits) {
    const BubbleGroup a = groups_++, b = groups_++;
    std::map<std::pair<int, int>, std::vector<KfacSeconds>> costs;  // of (block, stage)
    std::map<std::tuple<int, int, std::size_t, int>, int> works;    // of (stage, block, Linear, A or B)
    for (const auto& [visit, tasks] : visits) {
      const Block& block = blocks_[visit.block];
      const auto linears = kfac_linears(block);
      auto& seconds = costs[{visit.block, visit.stage}];
      if (seconds.empty()) seconds = kfac_seconds(block, step_.shape(), machine_of(rank));
      std::map<std::string, int> inputs;  // Linears of the same input keep it once
      for (std::size_t l = 0; l < linears.size(); ++l) {
        for (const int side : {0, 1}) {
          const auto [known, is_new] = works.try_emplace({visit.stage, visit.block, l, side}, 0);
          if (is_new) known->second = work(visit.stage, visit.block, linears[l], KfacStage::curvature, side == 0);
        }
        const auto [input, first] = inputs.try_emplace(linears[l].input, 0);
        if (first) input->second = kept(tasks.last, linears[l].in);
        add({TaskKind::bubble_work, rank, none, works[{visit.stage, visit.block, l, 0}], visit.micro_batch,
             visit.slice},
            seconds[l].curvature_a, curvature_a, a, {tasks.inputs}, {}, {input->second});
        holds(rank, kfac_curvature_bytes(step_.shape(), linears[l], true));
        add({TaskKind::bubble_work, rank, none, works[{visit.stage, visit.block, l, 1}], visit.micro_batch,
             visit.slice},
            seconds[l].curvature_b, curvature_b, b, {tasks.errors}, {}, {kept(tasks.last, linears[l].out)});
        holds(rank, kfac_curvature_bytes(step_.shape(), linears[l], false));
      }
    }
    add_inversions(rank, costs, a, b);
  }

  // Keeps one micro-batch's activations or gradients of this width.
  int kept(TaskId from, std::int64_t width) {
    const double tokens =
        static_cast<double>(step_.shape().micro_batch * step_.shape().sequence) / step_.shape().sharding.context;
    bubble_work_.kept.push_back(
        {from, tokens * static_cast<double>(width) * bytes_of(step_.shape().dtype), none, none});
    return static_cast<int>(bubble_work_.kept.size()) - 1;
  }

  // Adds bytes that the last item holds while it runs.
  void holds(std::int32_t rank, double bytes) {
    if (bytes > 0) bubble_work_.kept.push_back({0, bytes, static_cast<int>(bubble_work_.items.size()) - 1, rank});
  }

  // Adds the sums of all factors of a kind, held from the first curvature on.
  int sums(std::int32_t rank, BubbleGroup curvature, double bytes) {
    bubble_work_.kept.push_back({0, bytes, none, rank, curvature});
    return static_cast<int>(bubble_work_.kept.size()) - 1;
  }

  void add(Task task, double seconds, int priority, BubbleGroup group, std::vector<TaskId> after,
           std::vector<BubbleGroup> after_groups, std::vector<int> reads) {
    bubble_work_.items.push_back(
        {task, seconds, priority, group, std::move(after), std::move(after_groups), std::move(reads)});
  }

  struct Linear {
    int stage, block;
    KfacLinear linear;
    KfacSeconds seconds;
  };

  void add_inversions(std::int32_t rank, const std::map<std::pair<int, int>, std::vector<KfacSeconds>>& costs,
                      BubbleGroup a, BubbleGroup b) {
    std::vector<Linear> all;
    std::vector<KfacLinear> shapes;
    double bytes_a = 0, bytes_b = 0;
    const double bytes_each = bytes_of(kfac_dtype(step_.shape().dtype));
    for (const auto& [place, seconds] : costs) {
      const auto [block, stage] = place;
      const auto linears = kfac_linears(blocks_[block]);
      for (std::size_t l = 0; l < linears.size(); ++l) {
        all.push_back({stage, block, linears[l], seconds[l]});
        shapes.push_back(linears[l]);
        bytes_a += static_cast<double>(linears[l].in * linears[l].in) * bytes_each;
        bytes_b += static_cast<double>(linears[l].out * linears[l].out) * bytes_each;
      }
    }
    const Replicas& replicas = replicas_[rank];
    const std::vector<int> read{sums(rank, a, bytes_a), sums(rank, b, bytes_b)};
    for (Reduction& reduction : reductions_) {
      if (reduction.communicator != replicas.communicator) continue;
      const bool of_input = reduction.group == replicas.reduced_a;
      reduction.after.push_back(of_input ? a : b);
      reduction.sums.push_back(of_input ? read[0] : read[1]);
      reduction.bytes = of_input ? bytes_a : bytes_b;
      reduction.stage = step_.placement.part_of(all.front().stage);  // of the lowest block: equal on all replicas
    }
    std::vector<BubbleGroup> both{a, b};
    if (replicas.communicator != none) both = {replicas.reduced_a, replicas.reduced_b};
    const BubbleGroup done = groups_++;
    const std::vector<int> owners = kfac_owners(shapes, replicas.count);
    for (std::size_t l = 0; l < all.size(); ++l) {
      if (owners[l] != replicas.index) continue;
      const Linear& linear = all[l];
      for (const bool of_input : {true, false}) {
        const int id = work(linear.stage, linear.block, linear.linear, KfacStage::inversion, of_input);
        add({TaskKind::bubble_work, rank, none, id, none, 0},
            of_input ? linear.seconds.inversion_a : linear.seconds.inversion_b, of_input ? inversion_a : inversion_b,
            done, {}, both, read);
        const std::int64_t side = of_input ? linear.linear.in : linear.linear.out;
        holds(rank, kfac_inversion_bytes(machine_of(rank), side, step_.shape().dtype));
      }
    }
  }

  void add_reductions() {
    for (const Reduction& reduction : reductions_) {
      if (reduction.after.empty()) continue;  // no Linear on these ranks
      Work work;
      work.kind = WorkKind::bubble_work;
      work.stage = reduction.stage;
      work.bubble_work = name_of(Collective::all_reduce);
      work.collective = Collective::all_reduce;
      work.dtype = kfac_dtype(step_.shape().dtype);
      work.bytes = reduction.bytes;
      work.suffix = reduction.suffix;
      bubble_work_.works.push_back(work);
      const Communicator& communicator = bubble_work_.communicators[reduction.communicator];
      const LinkPath path = path_of(cluster_, communicator);
      add({TaskKind::collective, none, reduction.communicator, static_cast<int>(bubble_work_.works.size()) - 1, none,
           0},
          message_seconds(work, static_cast<int>(communicator.ranks.size()), path), 0, reduction.group, {},
          reduction.after, reduction.sums);
    }
  }

  const TaskGraph& step_;
  const PricedCluster& cluster_;
  const std::vector<Block> blocks_;
  BubbleWork bubble_work_;
  std::vector<Replicas> replicas_;  // per rank
  std::vector<Reduction> reductions_;
  int groups_ = 0;
};

}  // namespace

BubbleWork kfac_bubble_work(const TaskGraph& step, const PricedCluster& cluster) {
  if (step.step.layout.tensor > 1)
    throw std::invalid_argument("K-FAC needs whole layers on a rank (tensor 1): their factors are not sharded");
  return Maker(step, cluster).run();
}

}  // namespace slipway::schedules
