#include "exec/operators/parameters.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "exec/files/seeded_bits.h"

namespace slipway::exec {
namespace {

constexpr double two_to_minus_53 = 1.0 / 9007199254740992.0;

// Box–Muller: one normal number from two uniform ones, the first in (0, 1].
double normal_number(std::uint64_t key, std::uint64_t index) {
  const double u = static_cast<double>((mix(key, 2 * index) >> 11) + 1) * two_to_minus_53;
  const double v = static_cast<double>(mix(key, 2 * index + 1) >> 11) * two_to_minus_53;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

// The dimension that pieces divide.
int dimension_of(const Parameter& parameter) { return std::max(parameter.shard_dim, 0); }

// Global indices of the shard along `dim`, in local order.
std::vector<std::int64_t> indices_along(const Parameter& parameter, const Shard& shard, int dim) {
  std::vector<std::int64_t> indices;
  const auto add = [&](const Piece& piece) {
    for (std::int64_t i = piece.begin; i < piece.end; ++i) indices.push_back(i);
  };
  if (dimension_of(parameter) == dim)
    for (const Piece& piece : shard.pieces) add(piece);
  else
    add(shard.across);
  return indices;
}

std::vector<std::int64_t> local_shape(const Parameter& parameter, const Shard& shard) {
  std::array<std::int64_t, 2> shape{};
  std::int64_t& along = shape[dimension_of(parameter)];
  for (const Piece& piece : shard.pieces) along += piece.end - piece.begin;
  shape[1 - dimension_of(parameter)] = shard.across.end - shard.across.begin;
  if (parameter.is_vector) return {shape[0]};
  return {shape[0], shape[1]};
}

// Draws each row once, with as many threads as one operator may use. Every number has its own index, so it does not
// depend on the thread. A billion of them take one core most of a minute.
template <typename Draw>
void over_rows(std::size_t rows, std::size_t columns, Draw draw) {
  constexpr std::size_t worth_a_thread = 1 << 20;  // numbers
  const std::size_t threads = std::min(static_cast<std::size_t>(at::get_num_threads()),
                                       std::max<std::size_t>(1, rows * columns / worth_a_thread));
  const auto part = [&](std::size_t t) {
    for (std::size_t i = rows * t / threads; i < rows * (t + 1) / threads; ++i) draw(i);
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(part, t);
  part(0);
  for (std::thread& thread : others) thread.join();
}

// Sets shapes and offsets. Tensors are allocated afterwards, when the block's size is known.
void place(BlockParameters& block, std::vector<Parameter> list, const ParameterPlacement& placement) {
  for (Parameter& meta : list) {
    const bool apart = placement.experts_apart && meta.experts > 0;
    if (apart != placement.experts) continue;
    ShardedParameter parameter;
    if (placement.table != nullptr && !meta.same_as.empty()) {
      parameter = parameter_named(*placement.table, meta.same_as);
      parameter.meta = std::move(meta);
      block.elsewhere.push_back(std::move(parameter));
      continue;
    }
    Shard shard = apart ? expert_shard(meta, *placement.experts_apart)
                        : dense_shard(meta, placement.tensor_rank, placement.tensor_degree);
    const std::vector<std::int64_t> shape = local_shape(meta, shard);
    parameter.elements = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    parameter.pieces = std::move(shard.pieces);
    parameter.across = shard.across;
    parameter.offset = block.elements;
    block.elements += parameter.elements;
    if (is_summed_over_tensor(meta, placement.tensor_degree, placement.sequence_parallel)) {
      block.tensor_sum += parameter.elements;
      if (block.tensor_sum != block.elements)
        throw std::runtime_error("parameter " + meta.name +
                                 " is summed over the tensor group but listed after one that is not");
    }
    parameter.meta = std::move(meta);
    block.parameters.push_back(std::move(parameter));
  }
}

}  // namespace

Piece whole_across(const Parameter& parameter) { return {0, parameter.shape[1 - dimension_of(parameter)]}; }

Shard dense_shard(const Parameter& parameter, int tensor_rank, int tensor_degree) {
  return {pieces_of(parameter, tensor_rank, tensor_degree), whole_across(parameter)};
}

Shard expert_shard(const Parameter& parameter, const schedules::ExpertPlace& at) {
  Shard shard = dense_shard(parameter, at.cut, at.cut_degree);
  const Piece rows{parameter.shape[0] * at.expert / at.degree, parameter.shape[0] * (at.expert + 1) / at.degree};
  if (parameter.shard_dim == 1) {
    shard.across = rows;
    return shard;
  }
  std::erase_if(shard.pieces, [&](Piece& piece) {
    piece = {std::max(piece.begin, rows.begin), std::min(piece.end, rows.end)};
    return piece.begin >= piece.end;
  });
  return shard;
}

at::Tensor draw_shard(const Parameter& parameter, const Shard& part, std::uint64_t seed) {
  at::Tensor shard = at::empty(local_shape(parameter, part), at::kDouble);
  if (parameter.constant) return shard.fill_(parameter.constant_value);
  const std::uint64_t key = mix(seed, parameter.same_as.empty() ? parameter.name : parameter.same_as);
  const std::vector<std::int64_t> rows = indices_along(parameter, part, 0);
  const std::vector<std::int64_t> columns = indices_along(parameter, part, 1);
  double* const values = shard.mutable_data_ptr<double>();
  over_rows(rows.size(), columns.size(), [&](std::size_t i) {
    double* value = values + i * columns.size();
    for (const std::int64_t column : columns)
      *value++ =
          parameter.init_std * normal_number(key, static_cast<std::uint64_t>(rows[i] * parameter.shape[1] + column));
  });
  return shard;
}

BlockParameters make_parameters(const Model& model, int block_index, std::uint64_t seed,
                                const ParameterPlacement& placement) {
  BlockParameters block;
  block.block = block_index;
  place(block, parameters_of(model, block_index), placement);
  const std::int64_t padded = (block.elements + placement.slices - 1) / placement.slices * placement.slices;
  const auto on_device = at::TensorOptions().device(placement.device);
  block.weights = at::zeros({padded}, on_device.dtype(placement.weight_dtype));
  block.gradients = at::zeros({padded}, on_device.dtype(placement.gradient_dtype));
  for (ShardedParameter& parameter : block.parameters) {
    const at::Tensor values = draw_shard(parameter.meta, Shard{parameter.pieces, parameter.across}, seed);
    const auto view = [&](const at::Tensor& flat) {
      return flat.narrow(0, parameter.offset, parameter.elements).view(values.sizes());
    };
    parameter.weight = view(block.weights);
    parameter.gradient = view(block.gradients);
    parameter.weight.copy_(values);
  }
  return block;
}

FlatRange range_within(const ShardedParameter& parameter, std::int64_t begin, std::int64_t end) {
  return {std::max(begin, parameter.offset), std::min(end, parameter.offset + parameter.elements)};
}

const ShardedParameter* find_parameter(const BlockParameters& block, std::string_view suffix) {
  for (const auto* list : {&block.parameters, &block.elsewhere})
    for (const ShardedParameter& parameter : *list)
      if (std::string_view(parameter.meta.name).ends_with(suffix)) return &parameter;
  return nullptr;
}

const ShardedParameter& parameter_named(const BlockParameters& block, std::string_view suffix) {
  if (const ShardedParameter* parameter = find_parameter(block, suffix)) return *parameter;
  throw std::runtime_error("block " + std::to_string(block.block) + " has no parameter ..." + std::string(suffix));
}

}  // namespace slipway::exec
