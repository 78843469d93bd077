// Experts on ranks of their own: what is sent, computed, held and reduced, against sums that no layout may change.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "models/machine/priced_cluster.h"
#include "models/model/parameters.h"
#include "schedules/check/check.h"
#include "schedules/lower/lowering.h"
#include "schedules/lower/representatives.h"
#include "schedules/lower/static_bytes.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "schedules/time/replay.h"
#include "tests/support/round_gpu.h"

namespace slipway::test {
namespace {

constexpr std::int64_t hidden = 64, ffn = 48, shared = 96, experts = 8, per_token = 2, sequence = 32;

struct Cut {
  int tensor = 1, context = 1, data = 1, expert = 1, expert_tensor = 0;
};

Step step_of(const Cut& cut, int pipeline = 1, std::int64_t shared_ffn = 0) {
  Step in;
  in.model = llama("experts", {.layers = 4,
                               .hidden = hidden,
                               .ffn = ffn,
                               .heads = 8,
                               .kv_heads = 8,
                               .vocab = 256,
                               .sequence = sequence,
                               .experts = experts,
                               .experts_per_token = per_token,
                               .shared_ffn = shared_ffn});
  in.layout.tensor = cut.tensor, in.layout.context = cut.context, in.layout.data = cut.data;
  in.layout.pipeline = pipeline;
  in.layout.expert = cut.expert, in.layout.expert_tensor = cut.expert_tensor;
  in.layout.sequence_parallel = cut.tensor > 1;
  in.micro_batch = 2;
  in.global_batch = 2 * 4 * cut.data;
  return in;
}

std::string text_of(const Step& in) {
  const Layout& l = in.layout;
  return "t" + std::to_string(l.tensor) + " c" + std::to_string(l.context) + " d" + std::to_string(l.data) + " p" +
         std::to_string(l.pipeline) + " e" + std::to_string(l.expert) + " et" + std::to_string(l.expert_tensor);
}

// All of eight ranks a stage.
const std::vector<Cut> cuts{{1, 1, 8, 8, 1}, {1, 1, 8, 4, 1}, {1, 1, 8, 2, 2}, {2, 1, 4, 4, 0},
                            {2, 1, 4, 8, 1}, {4, 1, 2, 2, 4}, {4, 1, 2, 8, 1}, {2, 2, 2, 4, 1},
                            {1, 4, 2, 8, 1}, {8, 1, 1, 8, 1}, {1, 1, 8, 2, 4}, {4, 1, 2, 2, 1}};

double flops_of_all_ranks(const Step& in) {
  const TaskGraph graph = lower(in);
  double flops = 0;
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    if (graph.tasks[id].kind == TaskKind::compute) flops += flops_of(graph, id);
  return flops;
}

// Every FLOP of a router, an expert and a shared expert is done once for each token, whoever does it. (A router is
// computed by each tensor rank only where ranks are not dispatched to, so the whole layouts below have tensor 1.)
TEST(Experts, EveryLayoutDoesTheWorkOfOneRank) {
  for (const std::int64_t width : {std::int64_t{0}, shared}) {
    const double whole = flops_of_all_ranks(step_of({1, 1, 8}, 1, width));
    for (const Cut& cut : cuts) {
      Step in = step_of(cut, 1, width);
      in.global_batch = 2 * 4 * 8;
      in.recompute = Recompute::none;
      if (cut.context > 1) continue;  // causal attention is counted by halves of a square there
      EXPECT_NEAR(flops_of_all_ranks(in), whole, 1e-9 * whole) << text_of(in);
    }
  }
}

// Each rank sends M'·k rows of h numbers and gets them back, forwards and backwards.
TEST(Experts, RowsTravelToTheirExpertsAndBackInBothPasses) {
  for (const Cut& cut : cuts) {
    const Step in = step_of(cut);
    const TaskGraph graph = lower(in);
    const double tokens = 2.0 * sequence / cut.context / cut.tensor;
    const double bytes = tokens * per_token * hidden * bytes_of(in.dtype);
    const int groups = 8 / cut.expert;
    int found = 0;
    for (const Task& task : graph.tasks) {
      const Work& work = graph.work(task);
      if (work.collective != Collective::all_to_all) continue;
      ++found;
      EXPECT_DOUBLE_EQ(work.bytes, bytes) << text_of(in) << work.suffix;
      EXPECT_EQ(graph.communicator(task).ranks.size(), static_cast<std::size_t>(cut.expert)) << text_of(in);
    }
    constexpr int layers = 4, ways = 2, passes = 2;
    EXPECT_EQ(found, groups * graph.micro_batches * layers * ways * passes) << text_of(in);
  }
}

// The sizes of all messages of rows, by kind.
std::map<Collective, std::vector<double>> messages_of_rows(const Step& in) {
  std::map<Collective, std::vector<double>> sizes;
  const TaskGraph graph = lower(in);
  for (const Task& task : graph.tasks) {
    const Work& work = graph.work(task);
    if (work.kind == WorkKind::wire_collective) sizes[work.collective].push_back(work.bytes);
  }
  return sizes;
}

// Ranks of a group gather the tokens of all e ranks, M'·e rows of h numbers, and scatter as many sums back. Backwards the
// one is the other's gradient (Megatron-LM megatron/core/transformer/moe/token_dispatcher.py,
// MoEAllGatherTokenDispatcher). How many experts a token takes changes nothing.
TEST(Experts, GatherTheTokensOfAllRanksOfTheGroupWithAllgather) {
  for (const int expert : {2, 8}) {
    Step in = step_of({1, 1, 8, expert, 1});
    in.layout.dispatcher = Dispatcher::allgather;
    const auto sizes = messages_of_rows(in);
    const double bytes = 2.0 * sequence * expert * hidden * bytes_of(in.dtype);
    constexpr int layers = 4, passes = 2;
    const int each = 8 / expert * layers * passes * lower(in).micro_batches;
    EXPECT_EQ(sizes.count(Collective::all_to_all), 0U);
    EXPECT_EQ(sizes.at(Collective::all_gather), std::vector<double>(static_cast<std::size_t>(each), bytes));
    EXPECT_EQ(sizes.at(Collective::reduce_scatter), std::vector<double>(static_cast<std::size_t>(each), bytes));
  }
}

// An expert takes c of the rows of balanced routing (GShard, Lepikhin et al. 2021, section 2.2), so no more travel.
TEST(Experts, OfWhatIsDispatchedTheCapacityIsTheMost) {
  Step in = step_of({1, 1, 8, 8, 1});
  const double balanced = 2.0 * sequence * per_token * hidden * bytes_of(in.dtype);
  const auto largest = [&] {
    const auto sizes = messages_of_rows(in).at(Collective::all_to_all);
    return *std::max_element(sizes.begin(), sizes.end());
  };
  in.routing.capacity = 0.5;
  EXPECT_DOUBLE_EQ(largest(), balanced / 2);
  in.routing.capacity = 2;
  EXPECT_DOUBLE_EQ(largest(), balanced) << "there is room for all";
  in.routing.skew = 2, in.routing.capacity = 0;
  EXPECT_GT(largest(), 1.25 * balanced);
  in.routing.capacity = 1.25;
  EXPECT_DOUBLE_EQ(largest(), 1.25 * balanced);
}

// The groups of experts tile each pipeline rank, and those that hold the same experts reduce their gradients.
TEST(Experts, GroupsTileThePipelineRank) {
  for (const Cut& cut : cuts) {
    const Step in = step_of(cut, 2);
    const TaskGraph graph = lower(in);
    const int et = cut.expert_tensor > 0 ? cut.expert_tensor : cut.tensor;
    std::map<std::string, std::multiset<int>> members;
    for (const Communicator& group : graph.communicators) {
      members[group.name].insert(group.ranks.begin(), group.ranks.end());
      if (group.axis != Axis::expert) continue;
      for (std::size_t i = 1; i < group.ranks.size(); ++i) EXPECT_EQ(group.ranks[i] - group.ranks[i - 1], et);
    }
    const auto once = [&](const char* name, int degree) {
      EXPECT_EQ(members[name].size(), degree > 1 ? 16U : 0U) << text_of(in) << name;
      for (int rank = 0; rank < 16 && degree > 1; ++rank) EXPECT_EQ(members[name].count(rank), 1U) << name << rank;
    };
    once("ep", cut.expert), once("etp", et), once("edp", 8 / (cut.expert * et));
  }
}

// Weights of all ranks together: each expert as often as there are ranks that hold it, everything else as often as
// there are replicas.
TEST(Experts, RanksTogetherHoldEveryExpertEquallyOften) {
  const double of_experts = 4.0 * experts * 3 * hidden * ffn;
  const double all = static_cast<double>(parameter_count(step_of({}).model));
  for (const Cut& cut : cuts) {
    const Step in = step_of(cut);
    const int et = cut.expert_tensor > 0 ? cut.expert_tensor : cut.tensor;
    double norms_and_router = 0;  // every tensor rank has them
    for (int block = 0; block < 6; ++block)
      for (const Parameter& parameter : parameters_of(in.model, block))
        if (parameter.shard_dim < 0) norms_and_router += static_cast<double>(elements_of(parameter));
    const double replicas = cut.context * cut.data;
    const double expected =
        of_experts * 8 / (cut.expert * et) + replicas * (all - of_experts + (cut.tensor - 1) * norms_and_router);
    double held = 0;
    for (const StaticBytes& bytes : static_bytes_of(in)) held += 8 * bytes.weights / bytes_of(in.dtype);
    EXPECT_DOUBLE_EQ(held, expected) << text_of(in);
  }
}

TEST(Experts, GraphsOfEveryLayoutAndScheduleAreSound) {
  for (const Cut& cut : cuts)
    for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "gpipe", "chimera"})
      for (const int zero : {0, 1, 2, 3})
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
          Step in = step_of(cut, 2, zero % 2 * shared);
          in.schedule = schedule, in.layout.zero = zero, in.recompute = recompute;
          in.layout.chunks = in.schedule == "interleaved-1f1b" || in.schedule == "zb-v" ? 2 : 1;
          in.clip_norm = zero % 2, in.worker_norms = zero == 1 && recompute == Recompute::none;
          if (in.schedule == "chimera" && zero == 0) in.clip_norm = 1;
          if (!legal(in)) continue;
          TaskGraph graph = lower(in);
          set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1e-3)));
          const auto violations = check_graph(graph);
          ASSERT_TRUE(violations.empty())
              << text_of(in) << " " << schedule << " zero " << zero << " " << describe(graph, violations.front());
        }
}

// The gradient of an expert is reduced over the ranks that hold it too, that of the router over all replicas.
TEST(Experts, HaveTheirOwnReductionOfGradients) {
  Step in = step_of({.tensor = 1, .context = 1, .data = 8, .expert = 4});
  in.layout.expert_tensor = 1;
  const TaskGraph graph = lower(in);
  std::map<std::string, std::pair<std::size_t, double>> reductions;  // members and numbers, of layer 0
  for (const Task& task : graph.tasks)
    if (const Work& work = graph.work(task); work.kind == WorkKind::grad_reduce && work.block == 1)
      reductions[work.suffix] = {graph.communicator(task).ranks.size(), work.bytes / bytes_of(work.dtype)};
  ASSERT_EQ(reductions.size(), 2U);
  EXPECT_EQ(reductions[".L0.experts.ar_grad"], (std::pair<std::size_t, double>(2, experts / 4 * 3 * hidden * ffn)));
  const double rest = 4 * hidden * hidden + experts * hidden + 2 * hidden;
  EXPECT_EQ(reductions[".L0.ar_grad"], (std::pair<std::size_t, double>(8, rest)));
}

// Under ZeRO 3 experts are gathered and reduced where they have other holders, for each micro-batch; everything else
// over all replicas.
TEST(Experts, AreGatheredFromTheRanksThatHoldThemToo) {
  for (const int expert : {4, 8}) {
    Step in = step_of({.tensor = 1, .context = 1, .data = 8, .expert = expert});
    in.layout.expert_tensor = 1, in.layout.zero = 3;
    const TaskGraph graph = lower(in);
    std::map<std::string, std::set<std::pair<std::size_t, double>>> messages;  // members and numbers, of layer 0
    for (const Task& task : graph.tasks)
      if (const Work& work = graph.work(task);
          (work.kind == WorkKind::grad_reduce || work.kind == WorkKind::parameter_gather) && work.block == 1)
        messages[work.suffix].insert({graph.communicator(task).ranks.size(), work.bytes / bytes_of(work.dtype)});
    using Once = std::set<std::pair<std::size_t, double>>;
    const double rest = 4 * hidden * hidden + experts * hidden + 2 * hidden;
    EXPECT_EQ(messages[".L0.ag_param"], (Once{{8, rest}}));
    EXPECT_EQ(messages[".L0.rs_grad"], (Once{{8, rest}}));
    EXPECT_EQ(messages.contains(".L0.experts.rs_grad"), expert == 4) << "with 8 each rank has an expert of its own";
    if (expert == 8) continue;
    EXPECT_EQ(messages[".L0.experts.ag_param"], (Once{{2, experts / 4 * 3 * hidden * ffn}}));
    EXPECT_EQ(messages[".L0.experts.rs_grad"], (Once{{2, experts / 4 * 3 * hidden * ffn}}));
  }
}

// Choices are summed over the tensor ranks of sequence parallelism, context ranks and those data ranks whose sequences
// are balanced together.
TEST(Experts, LoadsAreSummedOverAllRanksWhoseSequencesAreBalancedTogether) {
  for (const int ranks : {1, 2, 4}) {
    Step in = step_of({.tensor = 2, .context = 2, .data = 4, .expert = 4, .expert_tensor = 1});
    in.routing.balancing_loss = 0.01, in.routing.balancing_sequences = ranks * in.micro_batch;
    const TaskGraph graph = lower(in);
    std::map<std::string, std::set<std::vector<std::int32_t>>> groups;
    for (const Task& task : graph.tasks)
      if (const Work& work = graph.work(task); work.suffix.starts_with(".L0.ar_load"))
        groups[work.suffix].insert(graph.communicator(task).ranks);
    EXPECT_EQ(groups[".L0.ar_load_tp"].size(), 8U);
    EXPECT_EQ(groups[".L0.ar_load_cp"].size(), 8U);
    std::set<std::vector<std::int32_t>> expected;  // rank (d·2 + c)·2 + t
    for (int first = 0; first < 4 && ranks > 1; first += ranks)
      for (int place = 0; place < 4; ++place) {
        std::vector<std::int32_t> members;
        for (int d = first; d < first + ranks; ++d) members.push_back(4 * d + place);
        expected.insert(members);
      }
    EXPECT_EQ(groups[".L0.ar_load_dp"], expected) << ranks;
  }
}

// Shared experts need no rows of others: with a dispatch as long as their work, both run at once.
TEST(Experts, SharedOnesRunWhileRowsTravel) {
  const Step in = step_of({.tensor = 1, .context = 1, .data = 8, .expert = 8, .expert_tensor = 1}, 1, shared);
  TaskGraph graph = lower(in);
  Durations durations(std::vector<double>(graph.tasks.size(), 0));
  const auto is = [&](TaskId id, const char* name) {
    return graph.work(id).suffix.find(name) != std::string::npos && graph.work(id).pass == Pass::forward;
  };
  for (TaskId id = 0; id < graph.tasks.size(); ++id)
    durations[id] = is(id, ".L0.shared") || is(id, ".L0.dispatch") ? 1 : 0;
  set_global_order(graph, durations);
  EXPECT_DOUBLE_EQ(replay(graph, durations).makespan_s, graph.micro_batches * 1.0);
}

TEST(Experts, MistakesAreRefusedUnderTheirKey) {
  const auto refused = [](Step in) {
    std::vector<std::string> keys;
    for (const Refusal& refusal : refusals(in)) keys.push_back(refusal.key);
    return keys;
  };
  using Keys = std::vector<std::string>;
  Step in = step_of(cuts[3]);
  EXPECT_EQ(refused(in), Keys{});
  in.layout.expert = 3;
  EXPECT_EQ(refused(in), Keys{"layout.expert"}) << "3 does not divide 8 experts";
  in = step_of(cuts[3]), in.layout.expert = 8;
  EXPECT_EQ(refused(in), Keys{"layout.expert"}) << "8 x 2 ranks do not divide 8";
  in = step_of(cuts[3]), in.layout.expert_tensor = 5, in.layout.expert = 1;
  EXPECT_EQ(refused(in), Keys{"layout.expert_tensor"}) << "5 does not divide the width";
  in = step_of(cuts[3]), in.layout.sequence_parallel = false;
  EXPECT_EQ(refused(in), Keys{"layout.sequence_parallel"});
  in = step_of(cuts[0]), in.routing.balancing_sequences = 2;
  EXPECT_EQ(refused(in), Keys{"run.balancing_sequences"}) << "nothing balances";
  in.routing.balancing_loss = 0.01;
  EXPECT_EQ(refused(in), Keys{});
  for (const std::int64_t together : {1, 4, 8, 16}) {
    in.routing.balancing_sequences = together;
    EXPECT_EQ(refused(in), Keys{}) << together << " of micro-batches of 2 on 8 data ranks";
  }
  for (const std::int64_t together : {3, 6, 32}) {
    in.routing.balancing_sequences = together;
    EXPECT_EQ(refused(in), Keys{"run.balancing_sequences"}) << together;
  }
  in = step_of(cuts[0]);
  Model dense = *in.model;
  for (BlockRun& run : dense.runs) run.block.experts = run.block.experts_per_token = 0;
  in.model = dense;
  EXPECT_EQ(refused(in), Keys{"layout.expert"}) << "no experts";
}

}  // namespace
}  // namespace slipway::test
