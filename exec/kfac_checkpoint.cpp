// K-FAC's inverses in a checkpoint: "layers.0.q.inverse_A", each from the rank that made it, so that any
// layout finds them.
#include <ATen/ATen.h>

#include <cstring>
#include <stdexcept>

#include "exec/kfac.h"

namespace slipway {

std::string Kfac::checkpoint_name(const Linear& linear, bool of_input) const {
  const std::string& weight = linear.weight->meta.name;
  return weight.substr(0, weight.size() - std::strlen(linear.shape.parameter)) + linear.shape.name +
         (of_input ? ".inverse_A" : ".inverse_B");
}

void Kfac::save(ShardWriter& out) const {
  for (const Linear& linear : linears_) {
    if (linear.owner != rank_ || !linear.inverse_a.defined()) continue;
    for (const bool of_input : {true, false}) {
      const at::Tensor host = (of_input ? linear.inverse_a : linear.inverse_b).to(at::kCPU).contiguous();
      out.add({checkpoint_name(linear, of_input), dtype_, host.size(0), host.size(1)},
              {static_cast<const char*>(host.const_data_ptr()), host.nbytes()});
    }
  }
}

at::Tensor Kfac::stored_inverse(const CheckpointReader& checkpoint, const Linear& linear,
                                bool of_input) const {
  const StoredMatrix* const stored = checkpoint.matrix(checkpoint_name(linear, of_input));
  if (stored == nullptr) return {};
  const std::int64_t side = of_input ? linear.shape.in : linear.shape.out;
  if (stored->rows != side || stored->columns != side)
    throw std::runtime_error(checkpoint.folder() + ": " + stored->name + " is " +
                             std::to_string(stored->rows) + " x " + std::to_string(stored->columns) +
                             " there, but " + std::to_string(side) + " x " + std::to_string(side) +
                             " in this model; resume with the model that was trained");
  at::Tensor host = at::empty({side, side}, torch_dtype(stored->dtype));
  const std::string bytes = checkpoint.read(*stored);
  std::memcpy(host.mutable_data_ptr(), bytes.data(), bytes.size());
  return host.to(linear.weight->weight.device(), torch_dtype(dtype_));
}

void Kfac::load(const CheckpointReader& checkpoint) {
  for (Linear& linear : linears_) {
    if (linear.owner != rank_) continue;
    linear.inverse_a = stored_inverse(checkpoint, linear, true);
    linear.inverse_b = stored_inverse(checkpoint, linear, false);
    if (linear.inverse_a.defined() == linear.inverse_b.defined()) continue;
    throw std::runtime_error(checkpoint.folder() + ": only one inverse of " +
                             checkpoint_name(linear, true) +
                             " and its partner is there; resume from another checkpoint");
  }
}

}  // namespace slipway
