#include "schedules/step/layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "models/model/operators.h"

namespace slipway::schedules {
namespace {

std::string plural(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Forward FLOPs of each block for one sequence: the weights of `balanced`.
std::vector<double> block_weights(const Model& model, int blocks) {
  WorkShape shape;
  shape.sequence = model.sequence;
  std::vector<double> weights;
  for (int block = 0; block < blocks; ++block) {
    double flops = 0;
    for (const Operator& op : operators_of(model, block, block + 1, shape)) flops += op.forward_flops;
    weights.push_back(flops);
  }
  return weights;
}

// Best contiguous partitions by dynamic programming: best(s, i) = least cost of blocks [0, i) on s non-empty stages.
// `join` combines the cost of the earlier stages with the load of the next. Ties go to the longer early stages.
// Returns the ends of the stages, empty if no finite cost exists.
template <class Join>
std::vector<int> partition(const std::vector<double>& weights, int stages, Join join) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const int blocks = static_cast<int>(weights.size());
  std::vector<double> prefix(weights.size() + 1, 0.0);
  std::partial_sum(weights.begin(), weights.end(), prefix.begin() + 1);
  const auto width = weights.size() + 1;
  const auto cell = [width](int s, int i) { return static_cast<std::size_t>(s) * width + static_cast<std::size_t>(i); };
  std::vector<double> best(cell(stages + 1, 0), infinite);
  std::vector<int> cut(best.size(), 0);
  best[cell(0, 0)] = 0;
  for (int s = 1; s <= stages; ++s) {
    for (int i = s; i <= blocks; ++i) {
      for (int from = s - 1; from < i; ++from) {
        const double load = prefix[i] - prefix[from];
        const double cost = join(best[cell(s - 1, from)], load);
        if (cost < infinite && cost <= best[cell(s, i)]) {
          best[cell(s, i)] = cost;
          cut[cell(s, i)] = from;
        }
      }
    }
  }
  if (best[cell(stages, blocks)] == infinite) return {};
  std::vector<int> ends(stages);
  for (int s = stages, i = blocks; s > 0; i = cut[cell(s, i)], --s) ends[s - 1] = i;
  return ends;
}

// Least largest load first. Among those partitions the least sum of squares, so that stages which do not set the pace
// are even too.
std::vector<int> balanced_ends(const std::vector<double>& weights, int stages) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const std::vector<int> ends =
      partition(weights, stages, [](double cost, double load) { return std::max(cost, load); });
  double largest = 0;
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const auto begin = weights.begin() + (s == 0 ? 0 : ends[s - 1]);
    largest = std::max(largest, std::accumulate(begin, weights.begin() + ends[s], 0.0));
  }
  const double limit = largest * (1 + 1e-12);  // prefix differences round
  return partition(weights, stages, [limit, infinite](double cost, double load) {
    return load <= limit ? cost + load * load : infinite;
  });
}

// With one or two layers too few, the last stage and then the first one do without: they have the head and the embedding.
std::vector<int> even_layers(int layers, int stages) {
  const int first = layers + 2 == stages ? 1 : 0;  // to get the remainder
  std::vector<int> per_stage(stages, layers / stages);
  for (int s = 0; s < layers % stages; ++s) ++per_stage[first + s];
  return per_stage;
}

void check_list(const std::vector<int>& list, int layers, int stages) {
  if (static_cast<int>(list.size()) != stages) {
    throw std::invalid_argument("layout.split lists " + plural(static_cast<int>(list.size()), "stage") +
                                ", but pipeline × chunks makes " + std::to_string(stages) +
                                "; list one number of layers per stage");
  }
  for (const int count : list) {
    if (count < 0) {
      throw std::invalid_argument("layout.split holds the negative number " + std::to_string(count) +
                                  "; list the number of layers of each stage");
    }
  }
  const int sum = std::accumulate(list.begin(), list.end(), 0);
  if (sum != layers) {
    throw std::invalid_argument("layout.split adds up to " + plural(sum, "layer") + ", but the model has " +
                                std::to_string(layers) + "; change the list so that it adds up");
  }
}

// Tensor and replica degree of the members that have tasks.
Representatives lowered_degrees(const Layout& layout, const Representatives& representatives) {
  return {representatives.tensor > 0 ? representatives.tensor : layout.tensor,
          representatives.replicas > 0 ? representatives.replicas : layout.data * layout.context};
}

}  // namespace

std::vector<BlockRange> block_ranges(const std::vector<int>& layers_per_stage) {
  std::vector<BlockRange> ranges;
  int at = 0;
  for (std::size_t s = 0; s < layers_per_stage.size(); ++s) {
    const int first = at;
    at += layers_per_stage[s] + (s == 0 ? 1 : 0) + (s + 1 == layers_per_stage.size() ? 1 : 0);
    ranges.push_back({first, at});
  }
  return ranges;
}

int rank_count(const Layout& layout) { return layout.tensor * layout.context * layout.data * layout.pipeline; }

int stage_count(const Layout& layout) { return layout.pipeline * layout.chunks; }

int rank_of(const Layout& layout, const Coordinates& at) {
  return ((at.pipeline * layout.data + at.data) * layout.context + at.context) * layout.tensor + at.tensor;
}

Coordinates coordinates_of(const Layout& layout, int rank) {
  Coordinates at;
  at.tensor = rank % layout.tensor;
  rank /= layout.tensor;
  at.context = rank % layout.context;
  rank /= layout.context;
  at.data = rank % layout.data;
  at.pipeline = rank / layout.data;
  return at;
}

std::int32_t representative_of(const Layout& layout, const Representatives& representatives, std::int32_t rank) {
  const auto [tensor, replicas] = lowered_degrees(layout, representatives);
  const int t = layout.tensor, member = rank % (layout.data * layout.context * t);
  return rank - member + member / t % replicas * t + member % t % tensor;
}

int lowered_count(const Layout& layout, const Representatives& representatives) {
  const auto [tensor, replicas] = lowered_degrees(layout, representatives);
  return layout.pipeline * tensor * replicas;
}

int lowered_index(const Layout& layout, const Representatives& representatives, std::int32_t rank) {
  const auto [tensor, replicas] = lowered_degrees(layout, representatives);
  const int t = layout.tensor, members = layout.data * layout.context * t, member = rank % members;
  return (rank / members * replicas + member / t % replicas) * tensor + member % t % tensor;
}

Sharding sharding_of(const Layout& layout) {
  return {.tensor = layout.tensor,
          .sequence_parallel = layout.sequence_parallel,
          .context = layout.context,
          .exchange = layout.context_exchange,
          .expert = layout.expert,
          .expert_tensor = layout.expert_tensor,
          .dispatcher = layout.dispatcher};
}

int shards_of(const Layout& layout) { return layout.data * layout.context / layout.replicate; }

int member_count(const Layout& layout) { return layout.data * layout.context * layout.tensor; }

int expert_data_of(const Layout& layout) {
  return member_count(layout) / (layout.expert * expert_tensor_of(sharding_of(layout)));
}

std::vector<BlockRange> split_blocks(const Model& model, const Layout& layout) {
  const int blocks = static_cast<int>(blocks_of(model).size());
  const int stages = stage_count(layout);
  if (stages > blocks && layout.split != SplitKind::list) {
    throw std::invalid_argument(plural(stages, "stage") + " (pipeline " + std::to_string(layout.pipeline) +
                                " × chunks " + std::to_string(layout.chunks) + ") for " + plural(blocks, "block") +
                                " (embedding, layers, head); lower layout.pipeline or layout.chunks, or give stages "
                                "without a layer in layout.split");
  }
  const int layers = blocks - 2;
  switch (layout.split) {
    case SplitKind::even:
      return block_ranges(even_layers(layers, stages));
    case SplitKind::list:
      check_list(layout.split_list, layers, stages);
      return block_ranges(layout.split_list);
    case SplitKind::balanced:
      if (!layout.split_list.empty()) return block_ranges(layout.split_list);
      break;
  }
  std::vector<BlockRange> ranges;
  int first = 0;
  for (const int end : balanced_ends(block_weights(model, blocks), stages)) {
    ranges.push_back({first, end});
    first = end;
  }
  return ranges;
}

}  // namespace slipway::schedules
