// Names of the llama family's parameters in transformers, and the places of its tensors in ours:
//
//   attention.qkv.weight   q_proj, k_proj, v_proj    one below the other
//   mlp.up.weight          gate_proj, up_proj
//   head.weight, tied      embed_tokens
//
// Heads are turned by rotary positions in the same pairs (i, i + d/2) as in transformers, so no rows are permuted.
// Guarded by tests/exec/initial_weights_test.cpp, with models that transformers has saved.
#pragma once

#include <string>
#include <vector>

#include "models/model/model.h"
#include "models/model/parameters.h"

namespace slipway::scenarios {

struct NamedRows {
  std::string name;       // "model.layers.0.self_attn.q_proj.weight"
  std::int64_t rows = 0;  // of the parameter
};

// The tensors of which the parameter consists, in order; none where transformers' llama, qwen2 and qwen3 have no such
// parameter.
std::vector<NamedRows> hugging_face_tensors(const Parameter& parameter);

// The reason why the model cannot be a checkpoint of transformers' llama, qwen2 or qwen3; empty: it can.
std::string not_in_hugging_face(const Model& model);

}  // namespace slipway::scenarios
