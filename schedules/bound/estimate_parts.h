// Caches that estimates of many layouts share, each kept until its key changes or for good (private to
// schedules/bound).
//
//   shape (t, sp, c, b, recompute) ──► price of each block run ─┐
//   (t, c, d, p) ──► Wiring ────────────────────────────────────┼──► StageCosts ──► bound of (schedule, ZeRO)
//   p·v stages ──► blocks of each run on each stage ────────────┘    (schedule, p, v, m) ──► ScheduleUse
#pragma once

#include <algorithm>
#include <compare>
#include <map>

#include "models/machine/priced_cluster.h"
#include "models/model/parameters.h"
#include "schedules/bound/balanced_split.h"
#include "schedules/bound/block_price.h"
#include "schedules/bound/estimate.h"
#include "schedules/bound/wiring.h"
#include "schedules/time/link_path.h"

namespace slipway::schedules {

// Properties of the action lists of one shape, a schedule's or a CSV's.
struct ScheduleUse {
  // Whole backwards only, without delayed weight gradients; stage s on rank s mod p; each rank ends with a backward of
  // its first stage. Requires a named schedule: a CSV may order chunks as no schedule does, and then the sharp bounds
  // do not hold (tests/scenarios/search_test.cpp).
  bool is_plain = false;
  // Actions that are one (Action::with_next), in one order: `count` of them in a step. `whole`: both gradients.
  struct Pair {
    int forward = 0, backward = 0;  // stages
    bool whole = true;
    auto operator<=>(const Pair&) const = default;
  };
  std::map<Pair, int> pairs;
  std::vector<std::vector<int>> in_flight;  // [rank][chunk] micro-batches at the fullest moment
  Placement placement;
  std::vector<int> forwards;  // per stage: actions of a step
  // Per stage: the micro-batch whose backward is the last one of a step, in segments by block. Its forward is so too.
  std::vector<int> last_backward;
};
ScheduleUse schedule_use(const ActionLists& lists, const ScheduleShape& shape);

// Seconds of a segment beside its operators.
inline double overhead_of(const Machine& machine) { return machine.constants.whole * machine.task_overhead; }

struct RunCount {
  int run = 0;  // index in Model::runs
  int count = 0;
};

struct StageCosts {
  // Seconds of one action, collectives included.
  std::vector<double> forward_s, backward_s;  // per stage
  // Per stage, part of backward_s: recomputation of the last block needs no gradient, so it may run before the next
  // stage's gradient arrives.
  std::vector<double> early_s;
  std::vector<double> weight_s;                               // per stage, part of backward_s: the weight gradients
  std::vector<double> kept_bytes;                             // per stage, of one micro-batch
  std::vector<BlockElements> elements;                        // per stage: parameters of a rank
  std::vector<double> forward_compute_s, backward_compute_s;  // per stage, without collectives
  // Seconds of one action's collectives on each lane.
  struct Lanes {
    double tensor = 0, context = 0, expert = 0, expert_tensor = 0;
    double largest() const { return std::max({tensor, context, expert, expert_tensor}); }
    void add(const Lanes& other, double times = 1) {
      tensor += times * other.tensor, context += times * other.context;
      expert += times * other.expert, expert_tensor += times * other.expert_tensor;
    }
  };
  std::vector<Lanes> forward_lanes, backward_lanes;  // per stage
  // Per pipeline rank: of one micro-batch through all its stages.
  std::vector<double> compute_s, tensor_s, context_s;
  // Seconds per pipeline rank that is the first of its like (Wiring::alike), and per block run: collectives within one
  // block (tensor: with the part of its tokens' messages that nothing hides), and those of its gradients and parameters.
  struct RunMessages {
    double tensor_forward = 0, tensor_backward = 0, context_forward = 0, context_backward = 0, again = 0;
    double all_reduce = 0, reduce_scatter = 0, gather = 0;
    Lanes forward_lanes, backward_lanes;
    double reduce(const Layout& layout) const { return layout.zero >= 1 ? reduce_scatter : all_reduce; }
  };
  std::vector<std::vector<RunMessages>> messages;
  // Per stage: of the host, for one micro-batch, without messages between ranks.
  std::vector<double> host_forward_s, host_backward_s;
  Work send;  // the message between two stages
};

struct StepEstimator::Parts {
  Parts(Step given, const PricedCluster& on);

  Step base;
  PricedCluster cluster;         // without degradation (models/machine/degradation.h)
  double fastest_gpu = 1;        // of the degraded cluster
  std::vector<int> first_block;  // of each run
  bool tied = false;
  double least_gradients = 1, least_kept = 1;  // the trainer's smallest factors on these bytes
  MemoryFacts facts;                           // of the trainer
  double kept_bytes(const BlockPrice& price) const { return price.kept_bytes - absent_bytes(price.optional, facts); }
  std::map<int, double> norm_sums;                     // by ranks
  std::unique_ptr<StepEstimator> without_degradation;  // for the cluster without degradation, where that differs

  using ShapeKey = std::tuple<int, bool, int, int, int, std::int64_t, Recompute, std::uint8_t, NarrowHabits, int>;
  static ShapeKey shape_key(const Step& step, int machine_group);
  std::map<ShapeKey, std::vector<BlockPrice>> prices;
  std::map<std::tuple<int, int, int, int, int, int>, Wiring> wirings;
  std::map<std::pair<int, int>, std::vector<std::vector<int>>> groups;  // of nodes, by members and pipeline rank
  using SplitKey = std::tuple<int, SplitKind, std::vector<int>>;        // stages, and how
  static SplitKey split_key(const Layout& layout) { return {stage_count(layout), layout.split, layout.split_list}; }
  std::map<SplitKey, std::vector<std::vector<RunCount>>> splits;
  decltype(splits)::iterator last_split = splits.end();  // an estimate asks for its own again and again
  std::map<std::tuple<const void*, int, int, int, bool>, ScheduleUse> uses;  // by schedule, or a CSV's lists
  std::map<std::tuple<int, int, int, bool>, std::vector<BlockElements>>
      run_elements;  // per tensor and expert degrees, table shared: of one block of each run
  std::tuple<ShapeKey, int, int, SplitKey, bool, bool> costs_key{};
  std::optional<StageCosts> costs;

  // The last step's fastest split: levels of ZeRO, which a search tries one after the other, share it.
  struct FastestSplit {
    std::tuple<ShapeKey, const Wiring*, const ScheduleUse*> key;
    SplitLoads loads;
    std::vector<int> layers;
  };
  std::optional<FastestSplit> fastest;

  const std::vector<BlockPrice>& prices_of(const Step& step, int machine_group);
  const Wiring& wiring(const Layout& layout);
  const Machine& machine_of(const Layout& layout, int pipeline_rank);
  const std::vector<std::vector<int>>& groups_of(const Layout& layout);  // groups_of_pipeline_ranks
  const std::vector<std::vector<RunCount>>& split_of(const Layout& layout);
  bool fills_all_stages(const Layout& layout);
  const ScheduleUse& use_of(const Step& step, int micro_batches);
  const std::vector<BlockElements>& elements_of_runs(const Step& step);
  bool shares_table(const Step& step);  // schedules/step/placement.h
  const StageCosts& costs_of(const Step& step);
  // Seconds of the sum of the gradient norm over all ranks.
  double norm_sum_seconds(int ranks);
  // balanced_split.cpp: the layers per stage that make the slowest rank as fast as possible, whatever it can hold.
  FastestSplit& fastest_split(const Step& step, const ScheduleUse& use);
  // The most layers that a pipeline rank can hold in this share of its memory.
  std::vector<int> most_layers(const Step& step, const ScheduleUse& use, double memory_share);
};

}  // namespace slipway::schedules
