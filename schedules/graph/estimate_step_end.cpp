// What follows a stage's last backward, and the data group's lane: the third line of estimate.h's picture.
#include <algorithm>

#include "schedules/graph/estimate_parts.h"

namespace slipway {
namespace {

using Parts = StepEstimator::Parts;
std::size_t at(int i) { return static_cast<std::size_t>(i); }
int data_degree(const Layout& layout) { return layout.data * layout.context; }

// Reduction of the gradients, or gather of the parameters, of one block with `elements` in a tensor shard.
double reduce_seconds(const Parts& parts, const Layout& layout, const LinkPath& path, double elements) {
  return collective_seconds(path, layout.zero >= 1 ? Collective::reduce_scatter : Collective::all_reduce,
                            data_degree(layout), elements * bytes_of(parts.base.gradient_dtype));
}
double gather_seconds(const Parts& parts, const Layout& layout, const LinkPath& path, double elements) {
  return collective_seconds(path, Collective::all_gather, data_degree(layout),
                            elements * bytes_of(parts.base.shape.dtype));
}

double tied_seconds(Parts& parts, const LayoutChoice& choice) {
  const Layout& layout = choice.layout;
  if (!parts.tied || layout.pipeline == 1) return 0;
  const Block& head = parts.base.model.runs.back().block;
  const double elements =
      static_cast<double>(head.vocab) / layout.tensor * static_cast<double>(head.hidden);
  const LinkPath& path = parts.wiring(layout).embedding;
  return collective_seconds(path, Collective::all_reduce, 2, elements * bytes_of(parts.base.gradient_dtype));
}

// Of one block in a whole backward of stage q, or in a weight gradient.
double block_seconds(const BlockPrice& price, Pass pass, const Wiring& wires, int q, double overhead) {
  if (pass == Pass::weight_grad) return price.weight_s + (price.cuts + 1) * overhead;
  return price.backward_s + price.cuts * overhead + seconds_over(wires.tensor[at(q)], price.tensor_backward) +
         seconds_over(wires.context[at(q)], price.context_backward);
}

// Largest of  Σ(j≤i) red(j) − Σ(j<i) B(j)  over the blocks i of stage q. Within a run of equal blocks it is
// linear in i, so the ends of the runs are enough. In segments of a weight gradient only blocks with such gradients are.
double exposed_reduction(Parts& parts, const LayoutChoice& choice, int q, Pass last_pass) {
  const Layout& layout = choice.layout;
  const bool whole = last_pass == Pass::backward;
  const double tied = whole && q == 0 ? tied_seconds(parts, choice) : 0;
  if (data_degree(layout) == 1) return tied;
  const Wiring& wires = parts.wiring(layout);
  const std::vector<BlockPrice>& prices = parts.prices_of(choice, wires.machine_group[at(q)]);
  const std::vector<double>& elements = parts.elements_of_runs(choice);
  const double overhead = parts.cluster.groups[at(wires.machine_group[at(q)])].machine.task_overhead;
  double lane = 0, before = 0, most = 0;  // `before`: the pass of the blocks before, as StageCosts counts it
  for (const auto [run, count] : parts.split_of(layout)[at(q)]) {
    const BlockPrice& price = prices[at(run)];
    if (!whole && price.weight_s <= 0) continue;
    const double reduce = reduce_seconds(parts, layout, wires.data[at(q)], elements[at(run)]);
    const double block = block_seconds(price, last_pass, wires, q, overhead);
    if (lane == 0) {
      most = tied + reduce;
      before = whole ? overhead : 0;
    }
    most = std::max({most, lane + reduce - before, lane + count * reduce - before - (count - 1) * block});
    lane += count * reduce;
    before += count * block;
  }
  return most;
}

// Parameters that the first segment of the next step's first forward of stage q waits for.
double first_gather(Parts& parts, const LayoutChoice& choice, int q) {
  const Layout& layout = choice.layout;
  if (layout.zero < 1 || data_degree(layout) == 1) return 0;
  const LinkPath& path = parts.wiring(layout).data[at(q)];
  const std::vector<double>& elements = parts.elements_of_runs(choice);
  const auto& runs = parts.split_of(layout)[at(q)];
  const bool cut = layout.tensor > 1 || layout.context > 1 || layout.zero >= 2 ||
                   choice.recompute == Recompute::full || parts.micro_batches(choice) == 1;
  double seconds = 0;
  for (const auto [run, count] : runs) {
    const double one = gather_seconds(parts, layout, path, elements[at(run)]);
    if (cut) return one;
    seconds += count * one;
  }
  return seconds;
}

}  // namespace

StepEndSeconds split_end(Parts& parts, const LayoutChoice& choice, const StageCosts& costs, const ScheduleUse& use, int q,
                  bool reduces) {
  const Layout& layout = choice.layout;
  const Machine& machine = parts.cluster.groups[at(parts.wiring(layout).machine_group[at(q)])].machine;
  const double shards = layout.zero >= 1 ? data_degree(layout) : 1;
  StepEndSeconds end;
  for (int stage = 0; stage < use.placement.stages(); ++stage)
    if (use.placement.rank[at(stage)] == q)
      end.optimizer += machine.task_overhead + optimizer_seconds(machine, costs.elements[at(stage)] / shards, parts.base.shape.dtype);
  if (reduces) end.data = exposed_reduction(parts, choice, q, Pass::weight_grad);
  return end;
}

StepEndSeconds step_end(Parts& parts, const LayoutChoice& choice, const StageCosts& costs, int q) {
  const Layout& layout = choice.layout;
  const Machine& machine = parts.cluster.groups[at(parts.wiring(layout).machine_group[at(q)])].machine;
  const double shards = layout.zero >= 1 ? data_degree(layout) : 1;
  double first = 0, later = 0, held = 0;  // the optimizer of stage q, and of the rank's other stages
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    const double elements = costs.elements[at(chunk * layout.pipeline + q)] / shards;
    (chunk == 0 ? first : later) +=
        machine.task_overhead + optimizer_seconds(machine, elements, parts.base.shape.dtype);
    held += elements;
  }
  StepEndSeconds end{exposed_reduction(parts, choice, q, Pass::backward), first};
  const double gather = first_gather(parts, choice, q);
  end.optimizer += later;
  end.data += std::max(0.0, gather - later);
  if (joins_all_ranks(parts.base)) {
    const int ranks = rank_count(layout);
    end.optimizer +=
        machine.task_overhead + norm_seconds(machine, held * bytes_of(parts.base.gradient_dtype));
    if (ranks > 1) {
      const LinkPath& world = parts.world_links(ranks);
      end.optimizer += collective_seconds(world, Collective::all_reduce, ranks, 8);
    }
  }
  return end;
}

double data_lane_seconds(Parts& parts, const LayoutChoice& choice, int q) {
  const Layout& layout = choice.layout;
  if (layout.zero < 2 || data_degree(layout) == 1) return 0;
  const LinkPath& path = parts.wiring(layout).data[at(q)];
  const std::vector<double>& elements = parts.elements_of_runs(choice);
  const auto& stages = parts.split_of(layout);
  double lane = 0, largest = 0;
  for (int chunk = 0; chunk < layout.chunks; ++chunk) {
    for (const auto [run, count] : stages[at(chunk * layout.pipeline + q)]) {
      const double gather = layout.zero >= 3 ? gather_seconds(parts, layout, path, elements[at(run)]) : 0;
      lane += count * (reduce_seconds(parts, layout, path, elements[at(run)]) + 2 * gather);
      largest = std::max(largest, gather);
    }
  }
  // Two gathers may have been fetched before the step's first task; the next step's first one is inside.
  return lane * parts.micro_batches(choice) - 2 * largest;
}

}  // namespace slipway
