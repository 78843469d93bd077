#include "schedules/lower/kfac_shares.h"

#include <algorithm>

namespace slipway::schedules {
namespace {

double elements_of(const KfacLinear& linear) {
  return static_cast<double>(linear.in) * static_cast<double>(linear.out);
}

std::vector<KfacPlace> places_of(const TaskGraph& graph, std::int32_t rank) {
  return kfac_places(blocks_of(graph.step.model), graph.placement, graph.stages,
                     coordinates_of(graph.step.layout, rank).pipeline);
}

}  // namespace

std::vector<KfacPlace> kfac_places(const std::vector<Block>& blocks, const Placement& placement,
                                   const std::vector<BlockRange>& stages, int pipeline) {
  std::vector<KfacPlace> places;
  for (int stage = 0; stage < placement.stages(); ++stage) {
    if (placement.rank[stage] != pipeline) continue;
    for (int block = stages[stage].first; block < stages[stage].last; ++block)
      for (const KfacLinear& linear : kfac_linears(blocks[block])) places.push_back({stage, block, linear});
  }
  std::stable_sort(places.begin(), places.end(), [](const KfacPlace& x, const KfacPlace& y) {
    return x.block != y.block ? x.block < y.block : x.stage < y.stage;
  });
  return places;
}

std::vector<int> kfac_owners(const std::vector<KfacPlace>& places, int replicas) {
  std::vector<KfacLinear> linears;
  for (const KfacPlace& place : places) linears.push_back(place.linear);
  return kfac_owners(linears, replicas);
}

std::vector<std::int32_t> kfac_replicas(const TaskGraph& graph, std::int32_t rank) {
  for (const Communicator& communicator : graph.communicators)
    if (communicator.axis == Axis::data && std::count(communicator.ranks.begin(), communicator.ranks.end(), rank) > 0)
      return communicator.ranks;
  return {rank};
}

std::vector<KfacPlace> kfac_share(const TaskGraph& graph, std::int32_t rank) {
  const std::vector<std::int32_t> replicas = kfac_replicas(graph, rank);
  const std::vector<KfacPlace> places = places_of(graph, rank);
  const std::vector<int> owners = kfac_owners(places, static_cast<int>(replicas.size()));
  std::vector<KfacPlace> share;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (replicas[owners[i]] == rank) share.push_back(places[i]);
  return share;
}

double kfac_inverse_bytes(const std::vector<KfacPlace>& share, Dtype weights) {
  double bytes = 0;
  for (const KfacPlace& place : share) bytes += kfac_factor_bytes(place.linear, weights);
  return bytes;
}

double most_kfac_inverse_bytes(const std::vector<KfacPlace>& places, int replicas, Dtype weights) {
  const std::vector<int> owners = kfac_owners(places, replicas);
  std::vector<double> bytes(replicas, 0);
  for (std::size_t i = 0; i < places.size(); ++i) bytes[owners[i]] += kfac_factor_bytes(places[i].linear, weights);
  return *std::max_element(bytes.begin(), bytes.end());
}

// Output gradients are scaled to a single token's.
double kfac_curvature_bytes(const WorkShape& shape, const KfacLinear& linear, bool of_input) {
  if (of_input && kfac_dtype(shape.dtype) == shape.dtype) return 0;
  const auto tokens = static_cast<double>(shape.micro_batch * shape.sequence / shape.sharding.context);
  return tokens * static_cast<double>(of_input ? linear.in : linear.out) * bytes_of(kfac_dtype(shape.dtype));
}

double kfac_inversion_bytes(const Machine& machine, std::int64_t side, Dtype weights) {
  const bool is_cpu = machine.cores > 0;
  return is_cpu ? 0 : static_cast<double>(side) * static_cast<double>(side) * bytes_of(kfac_dtype(weights));
}

double kfac_precondition_bytes(const TaskGraph& graph, std::int32_t rank, int stage) {
  double longest = 0;
  for (const KfacPlace& place : kfac_share(graph, rank))
    if (place.stage == stage) longest = std::max(longest, elements_of(place.linear));
  const Dtype dtype = kfac_dtype(graph.step.dtype);
  return longest * bytes_of(dtype) * (graph.step.gradient_dtype == dtype ? 1 : 2);
}

double kfac_gather_bytes(const TaskGraph& graph, std::int32_t rank, int part) {
  const auto replicas = static_cast<int>(kfac_replicas(graph, rank).size());
  const std::vector<KfacPlace> places = places_of(graph, rank);
  const std::vector<int> owners = kfac_owners(places, replicas);
  const BlockRange& range = graph.stages[part];
  std::vector<double> elements(replicas, 0);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i].block >= range.first && places[i].block < range.last)
      elements[owners[i]] += elements_of(places[i].linear);
  return *std::max_element(elements.begin(), elements.end()) * replicas * bytes_of(graph.step.gradient_dtype);
}

}  // namespace slipway::schedules
