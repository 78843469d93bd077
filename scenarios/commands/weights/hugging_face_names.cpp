#include "scenarios/commands/weights/hugging_face_names.h"

#include <map>
#include <string_view>

namespace slipway::scenarios {
namespace {

using Names = std::vector<std::string>;
const std::map<std::string, Names, std::less<>> of_model{{"embedding.weight", {"model.embed_tokens.weight"}},
                                                         {"head.norm.weight", {"model.norm.weight"}},
                                                         {"head.weight", {"lm_head.weight"}}};
const std::map<std::string, Names, std::less<>> of_layer{
    {"norm1.weight", {"input_layernorm.weight"}},
    {"norm2.weight", {"post_attention_layernorm.weight"}},
    {"attention.qkv.weight", {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"}},
    {"attention.qkv.bias", {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"}},
    {"attention.q_norm.weight", {"self_attn.q_norm.weight"}},
    {"attention.k_norm.weight", {"self_attn.k_norm.weight"}},
    {"attention.out.weight", {"self_attn.o_proj.weight"}},
    {"mlp.up.weight", {"mlp.gate_proj.weight", "mlp.up_proj.weight"}},
    {"mlp.down.weight", {"mlp.down_proj.weight"}}};

// "layers.3." of a layer's parameter, else nothing.
std::string_view layer_of(std::string_view name) {
  constexpr std::string_view word = "layers.";
  if (!name.starts_with(word)) return {};
  return name.substr(0, name.find('.', word.size()) + 1);
}

}  // namespace

std::vector<NamedRows> hugging_face_tensors(const Parameter& parameter) {
  const std::string_view own = parameter.same_as.empty() ? parameter.name : parameter.same_as;
  const std::string_view layer = layer_of(own);
  const auto& known = layer.empty() ? of_model : of_layer;
  const auto found = known.find(own.substr(layer.size()));
  if (found == known.end()) return {};
  const Names& names = found->second;
  std::vector<NamedRows> tensors;
  for (std::size_t i = 0; i < names.size(); ++i)
    tensors.push_back({(layer.empty() ? "" : "model." + std::string(layer)) + names[i],
                       names.size() > 1 ? parameter.parts.at(i) : parameter.shape[0]});
  return tensors;
}

std::string not_in_hugging_face(const Model& model) {
  const std::string allowed = "; allowed: dense models of family llama, as transformers' llama, qwen2 and qwen3";
  if (model.family != Family::llama) return "the model is not of family llama" + allowed;
  if (has_experts(model)) return "the model has experts" + allowed;
  if (model.runs.size() != 3) return "its layers are not all equal" + allowed;
  const Block& layer = model.runs[1].block;
  if (layer.norm != Norm::rms || layer.mlp != Mlp::swiglu || layer.positions != Positions::rotary)
    return "its layers have not RMSNorm, SwiGLU and rotary positions" + allowed;
  if (layer.qkv_bias && layer.qk_norm) return "it has both biases and norms of queries and keys" + allowed;
  for (int block = 0; block < static_cast<int>(blocks_of(model).size()); ++block)
    for (const Parameter& parameter : parameters_of(model, block))
      if (hugging_face_tensors(parameter).empty()) return "it has a parameter " + parameter.name + allowed;
  return "";
}

}  // namespace slipway::scenarios
