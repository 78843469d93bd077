// Tiny models that transformers has saved, with its logits: tests/hugging_face/tiny_models.py made them.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/model/model.h"
#include "scenarios/commands/weights/safetensors.h"

namespace slipway::test {

struct SavedModel {
  std::string name;
  LlamaShape shape;
  std::string folder() const { return SLIPWAY_SOURCE_DIR "/tests/data/hugging_face_weights/" + name; }
  Model model() const { return llama(name, shape); }
};

// The shapes of the script, written a second time.
inline std::vector<SavedModel> saved_models() {
  const LlamaShape base{.layers = 2, .hidden = 16, .ffn = 24, .heads = 4, .kv_heads = 2, .vocab = 256, .sequence = 12};
  LlamaShape llama = base, wide = base, qwen2 = base, qwen3 = base;
  llama.rope_theta = 500000, llama.norm_epsilon = 1e-3;
  wide.norm_epsilon = qwen2.norm_epsilon = qwen3.norm_epsilon = 1e-6;  // default of transformers
  wide.tied = qwen2.tied = qwen3.tied = true;
  wide.head_dim = 6;
  qwen2.qkv_bias = true;
  qwen3.qk_norm = true, qwen3.head_dim = 8, qwen3.kv_heads = 1;
  return {{"llama", llama}, {"llama-tied", wide}, {"qwen2", qwen2}, {"qwen3", qwen3}};
}

// The elements of a tensor as they are in the file.
inline std::string elements_in(const std::string& path, const StoredShape& tensor) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(tensor.end - tensor.begin, '\0');
  file.seekg(static_cast<std::streamoff>(tensor.begin));
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) throw std::runtime_error(path);
  return bytes;
}

struct WholeTensor {
  std::string dtype, elements;
  std::vector<std::int64_t> shape;
  bool operator==(const WholeTensor&) const = default;
};

// All tensors of the folder's model files.
inline std::map<std::string, WholeTensor> tensors_in(const std::string& folder) {
  std::map<std::string, WholeTensor> tensors;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".safetensors") || path.ends_with("expected.safetensors")) continue;
    for (const auto& [name, tensor] : read_safetensors_header(path).tensors)
      tensors[name] = {tensor.dtype, elements_in(path, tensor), tensor.shape};
  }
  return tensors;
}

}  // namespace slipway::test
