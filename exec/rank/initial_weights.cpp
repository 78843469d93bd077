#include "exec/rank/initial_weights.h"

#include <ATen/ATen.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "exec/run/checksum.h"
#include "exec/transport/device.h"

namespace slipway::exec {
namespace {

constexpr const char* remedy = "; start again with --weights";

std::string path_of(const WeightFiles& weights, int file) { return weights.folder + "/" + weights.files[file].name; }

// Throws with the path where that many bytes are not there.
void read_bytes(const std::string& path, std::uint64_t offset, void* into, std::uint64_t bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(static_cast<char*>(into), static_cast<std::streamsize>(bytes));
  if (!file)
    throw std::runtime_error(path + " cannot be read: " + (errno != 0 ? std::strerror(errno) : "it ends too early") +
                             remedy);
}

at::Tensor read_part(const WeightFiles& weights, const WeightPart& part) {
  at::Tensor stored = at::empty({part.rows, part.columns}, torch_dtype(part.dtype));
  read_bytes(path_of(weights, part.file), part.offset, stored.mutable_data_ptr(), stored.nbytes());
  return stored.to(part.dtype == Dtype::float64 ? at::kDouble : at::kFloat);
}

}  // namespace

void check_weight_files(const WeightFiles& weights) {
  for (int i = 0; i < static_cast<int>(weights.files.size()); ++i) {
    const WeightFile& file = weights.files[i];
    const std::string path = path_of(weights, i);
    std::string header(file.header_bytes, '\0');
    read_bytes(path, 0, header.data(), header.size());
    std::ifstream end(path, std::ios::binary | std::ios::ate);
    if (static_cast<std::uint64_t>(end.tellg()) != file.bytes || checksum_of(header) != file.header_checksum)
      throw std::runtime_error(path + " is not the file whose header was read before the run" + remedy);
  }
}

ParameterState initial_state(const WeightFiles& weights, const Parameter& parameter) {
  std::vector<at::Tensor> rows;
  for (const WeightPart& part : weights.parts)
    if (part.parameter == parameter.name) rows.push_back(read_part(weights, part));
  if (rows.empty()) throw std::runtime_error(weights.folder + " has no weights for " + parameter.name + remedy);
  ParameterState state;
  state.master = at::cat(rows);
  if (state.master.size(0) != parameter.shape[0] || state.master.size(1) != parameter.shape[1])
    throw std::runtime_error(weights.folder + ": " + parameter.name + " has another shape" + remedy);
  if (!at::isfinite(state.master).all().item<bool>())
    throw std::runtime_error(weights.folder + ": weights of " + parameter.name +
                             " are not finite; start from other weights");
  state.mean = state.square = at::zeros({1, 1}, state.master.options()).expand_as(state.master);
  return state;
}

}  // namespace slipway::exec
