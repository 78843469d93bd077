#include "exec/rank/parameter_state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <functional>
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

[[noreturn]] void refuse(const CheckpointReader& checkpoint, const Parameter& parameter, const std::string& why) {
  throw std::runtime_error(checkpoint.folder() + ": " + parameter.name + " " + why);
}

void check_shape(const CheckpointReader& checkpoint, const Parameter& parameter, const StoredEntry& entry) {
  if (entry.rows == parameter.shape[0] && entry.columns == parameter.shape[1]) return;
  refuse(checkpoint, parameter,
         "is " + std::to_string(entry.rows) + " x " + std::to_string(entry.columns) + " there, but " +
             std::to_string(parameter.shape[0]) + " x " + std::to_string(parameter.shape[1]) +
             " in this model; resume with the model that was trained");
}

std::int64_t width_of(const Piece& piece) { return piece.end - piece.begin; }

std::int64_t shard_width(const std::vector<Piece>& pieces) {
  std::int64_t width = 0;
  for (const Piece& piece : pieces) width += width_of(piece);
  return width;
}

int dimension_of(const Parameter& parameter) { return std::max(parameter.shard_dim, 0); }

ParameterState empty_state(const std::vector<std::int64_t>& shape, Dtype dtype) {
  ParameterState state;
  for (const auto member : members) state.*member = at::empty(shape, torch_dtype(dtype));
  return state;
}

void read_into(ParameterState& flat, const CheckpointReader& checkpoint, const StoredEntry& entry) {
  const std::string bytes = checkpoint.read(entry);
  const auto each = static_cast<std::size_t>(entry.bytes_each());
  std::size_t at = 0;
  for (const auto member : members) {
    auto* place = static_cast<char*>((flat.*member).mutable_data_ptr()) +
                  static_cast<std::size_t>(entry.from * slipway::exec::bytes_of(entry.dtype));
    std::memcpy(place, bytes.data() + at, each);
    at += each;
  }
}

// One tensor-parallel shard, flat: its slices in order, each element once.
ParameterState read_shard(const CheckpointReader& checkpoint, const Parameter& parameter,
                          std::vector<StoredEntry> slices) {
  std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
  const StoredEntry& first = slices.front();
  const std::int64_t elements = shard_width(first.pieces) * width_of(first.across);
  ParameterState flat = empty_state({elements}, first.dtype);
  flat.updates = first.updates;
  std::int64_t next = 0;
  for (const StoredEntry& slice : slices) {
    if (slice.from != next || slice.to > elements || slice.dtype != first.dtype)
      refuse(checkpoint, parameter, "is not there completely; resume from another checkpoint");
    read_into(flat, checkpoint, slice);
    next = slice.to;
  }
  if (next != elements) refuse(checkpoint, parameter, "is not there completely; resume from another checkpoint");
  return flat;
}

bool same_piece(const Piece& x, const Piece& y) { return x.begin == y.begin && x.end == y.end; }

bool same_shard(const StoredEntry& a, const StoredEntry& b) {
  return std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(), same_piece) &&
         same_piece(a.across, b.across);
}

}  // namespace

ParameterState whole_parameter(const CheckpointReader& checkpoint, const Parameter& parameter) {
  std::vector<StoredEntry> entries = checkpoint.entries_of(parameter.name);
  if (entries.empty() && !parameter.same_as.empty())
    entries = checkpoint.entries_of(parameter.same_as);  // one rank held both
  if (entries.empty())
    refuse(checkpoint, parameter, "is not there: the checkpoint is of another model; resume with that one");
  for (const StoredEntry& entry : entries) check_shape(checkpoint, parameter, entry);
  ParameterState whole = empty_state({parameter.shape[0], parameter.shape[1]}, entries.front().dtype);
  std::int64_t covered = 0;
  const int dimension = dimension_of(parameter);
  while (!entries.empty()) {
    const auto others = std::stable_partition(
        entries.begin(), entries.end(), [first = entries.front()](const auto& e) { return same_shard(e, first); });
    const std::vector<StoredEntry> slices(entries.begin(), others);
    entries.erase(entries.begin(), others);
    const ParameterState shard = read_shard(checkpoint, parameter, slices);
    whole.updates = shard.updates;
    std::vector<std::int64_t> shape{parameter.shape[0], parameter.shape[1]};
    shape[dimension] = shard_width(slices.front().pieces);
    const Piece across = slices.front().across;
    shape[1 - dimension] = width_of(across);
    std::int64_t at = 0;
    for (const Piece& piece : slices.front().pieces) {
      for (const auto member : members)
        (whole.*member)
            .slice(dimension, piece.begin, piece.end)
            .slice(1 - dimension, across.begin, across.end)
            .copy_((shard.*member).view(shape).narrow(dimension, at, width_of(piece)));
      at += width_of(piece);
    }
    covered += at * width_of(across);
  }
  if (covered != elements_of(parameter))
    refuse(checkpoint, parameter, "is not there completely; resume from another checkpoint");
  return whole;
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
