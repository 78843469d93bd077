#include "exec/transport/device.h"

namespace slipway::exec {

at::ScalarType torch_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::float64:
      return at::kDouble;
    case Dtype::float32:
    case Dtype::tf32:
      return at::kFloat;
    case Dtype::bfloat16:
      return at::kBFloat16;
    case Dtype::float16:
      return at::kHalf;
  }
  return at::kFloat;
}

}  // namespace slipway::exec
