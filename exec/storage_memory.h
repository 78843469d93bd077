// A flat tensor whose memory comes and goes while its views stay: what ZeRO 2 and 3 save is the memory of gradients
// and weights that nobody needs now. To read or write a view while the memory is gone is an error that only the
// order of tasks rules out.
// Guarded by tests/gathered_weights_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

namespace slipway {

// `flat` owns its storage. allocate: uninitialised, where there is none.
void free_memory(const at::Tensor& flat);
void allocate_memory(const at::Tensor& flat);
bool has_memory(const at::Tensor& flat);
// Hands the memory to a new tensor of the same shape; `flat` has none afterwards.
at::Tensor take_memory(const at::Tensor& flat);

}  // namespace slipway
