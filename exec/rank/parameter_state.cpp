#include "exec/rank/parameter_state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "exec/operators/parameters.h"
#include "exec/run/divergence.h"

namespace slipway::exec {
namespace {

constexpr auto members = {&ParameterState::master, &ParameterState::mean, &ParameterState::square};

Dtype dtype_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kDouble) return Dtype::float64;
  if (tensor.scalar_type() == at::kFloat) return Dtype::float32;
  throw std::runtime_error("masters and moments are float32 or float64");
}

std::string_view bytes_of_tensor(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

int dimension_of(const Parameter& parameter) { return std::max(parameter.shard_dim, 0); }

}  // namespace

ParameterState state_of(const CheckpointReader& checkpoint, const Parameter& parameter) {
  WholeParameter whole = whole_parameter(checkpoint, parameter);
  ParameterState state;
  state.updates = whole.updates;
  std::size_t part = 0;
  for (const auto member : members)
    state.*member =
        at::from_blob(whole.parts[part++].data(), {parameter.shape[0], parameter.shape[1]}, torch_dtype(whole.dtype))
            .clone();
  return state;
}

ParameterState shard_of(const ParameterState& whole, const Parameter& parameter, const Shard& part) {
  ParameterState shard;
  shard.updates = whole.updates;
  const int dimension = dimension_of(parameter);
  for (const auto member : members) {
    std::vector<at::Tensor> cut;
    for (const Piece& piece : part.pieces) cut.push_back((whole.*member).slice(dimension, piece.begin, piece.end));
    shard.*member = at::cat(cut, dimension).slice(1 - dimension, part.across.begin, part.across.end).flatten();
  }
  return shard;
}

void add_entry(ShardWriter& out, const Parameter& parameter, const Shard& shard, std::int64_t from, std::int64_t to,
               const ParameterState& state) {
  CheckpointEntry entry;
  entry.parameter = parameter.name;
  entry.dtype = dtype_of(state.master);
  entry.rows = parameter.shape[0];
  entry.columns = parameter.shape[1];
  entry.shard_dim = parameter.shard_dim;
  entry.pieces = shard.pieces;
  entry.across = shard.across;
  entry.from = from;
  entry.to = to;
  entry.updates = state.updates;
  std::vector<at::Tensor> host;
  for (const auto member : members) host.push_back((state.*member).to(at::kCPU).contiguous());
  for (const at::Tensor& values : host)
    if (!at::isfinite(values).all().item<bool>())
      throw diverged("the weights or moments of " + parameter.name + " are not finite, and not saved");
  out.add(entry, bytes_of_tensor(host[0]), bytes_of_tensor(host[1]), bytes_of_tensor(host[2]));
}

void refuse_other_parameters(const CheckpointReader& checkpoint, const Model& model) {
  std::set<std::string> known;
  for (int block = 0; block < static_cast<int>(blocks_of(model).size()); ++block)
    for (const Parameter& parameter : parameters_of(model, block)) known.insert(parameter.name);
  for (const std::string& name : checkpoint.parameters())
    if (!known.contains(name))
      throw std::runtime_error(checkpoint.folder() + " holds " + name +
                               ", which this model lacks; resume with the model that was trained");
}

}  // namespace slipway::exec
