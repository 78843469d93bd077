#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "exec/run/checksum.h"
#include "scenarios/commands/weights/hugging_face_names.h"
#include "scenarios/commands/weights/read_weight_folder.h"
#include "scenarios/commands/weights/safetensors.h"
#include "scenarios/files/files.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/load_model.h"
#include "scenarios/language/settings.h"

namespace slipway::scenarios {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The model that the folder's config.json describes, with sequences of this length.
Model model_in(const std::string& config, std::int64_t sequence) {
  Defects defects;
  const std::string text = "model: {config: " + json(config).dump() + ", sequence: " + std::to_string(sequence) + "}";
  std::optional<Value> document = parse_document(text, config, defects);
  std::optional<Model> model;
  if (document && defects.empty()) {
    std::vector<Key> keys;  // a scenario needs more
    for (const Key& key : scenario_keys())
      if (key.path == "model" || key.path.starts_with("model.")) keys.push_back(key);
    Settings settings(std::move(*document), keys, defects);
    model = load_model(settings, "");
  }
  if (model && defects.empty()) return *model;
  if (defects.empty()) throw std::runtime_error(config + " describes no model");
  throw std::runtime_error(
      fmt::format("{}: {}: {}; {}", config, defects.front().key, defects.front().message, defects.front().remedy));
}

// The differences of the models, in keys of the scenario: "model.rope_theta is 10000 and there 500000".
std::string differences(const Model& here, const Model& there) {
  std::string text;
  const auto compare = [&](const char* key, const auto& mine, const auto& theirs) {
    if (mine == theirs) return;
    text += fmt::format("{}model.{} is {} and there {}", text.empty() ? "" : ", ", key, mine, theirs);
  };
  const Block &a = here.runs[1].block, &b = there.runs[1].block;
  compare("layers", layer_count(here), layer_count(there));
  compare("hidden", a.hidden, b.hidden);
  compare("ffn", a.ffn, b.ffn);
  compare("heads", a.heads, b.heads);
  compare("kv_heads", a.kv_heads, b.kv_heads);
  compare("head_dim", a.head_dim, b.head_dim);
  compare("vocab", here.runs[0].block.vocab, there.runs[0].block.vocab);
  compare("tied", here.runs[2].block.tied, there.runs[2].block.tied);
  compare("rope_theta", a.rope_theta, b.rope_theta);
  compare("norm_epsilon", a.norm_epsilon, b.norm_epsilon);
  compare("qkv_bias", a.qkv_bias, b.qkv_bias);
  compare("qk_norm", a.qk_norm, b.qk_norm);
  if (text.empty() && (a != b || here.runs[2].block.norm_epsilon != there.runs[2].block.norm_epsilon))
    text = "the layers differ in other features";
  return text;
}

void check_config(const std::string& folder, const Model& model) {
  const std::string config = folder + "/config.json";
  if (const std::string why = unreadable(config); !why.empty())
    throw std::runtime_error(config + " cannot be read: " + why + "; name a folder that transformers has saved");
  const Model there = model_in(config, model.sequence);
  if (const std::string why = not_in_hugging_face(there); !why.empty()) throw std::runtime_error(config + ": " + why);
  if (!there.only_predicted.empty())
    throw std::runtime_error(config + ": the executor does not compute what '" + there.only_predicted.front() +
                             "' changes; use weights without it");
  if (const std::string other = differences(model, there); !other.empty())
    throw std::runtime_error(config + " is of another model: " + other + "; set model.config to it");
}

std::string text_of(const std::string& path) {
  if (const std::string why = unreadable(path); !why.empty())
    throw std::runtime_error(path + " cannot be read: " + why);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Names of the folder's files. An index comes from elsewhere: it may not lead out of the folder.
std::vector<std::string> files_in(const std::string& folder) {
  if (fs::exists(folder + "/model.safetensors")) return {"model.safetensors"};
  const std::string index = folder + "/model.safetensors.index.json";
  if (!fs::exists(index))
    throw std::runtime_error(folder +
                             " has neither model.safetensors nor model.safetensors.index.json; save the "
                             "model there with save_pretrained of transformers");
  const json all = json::parse(text_of(index), nullptr, false);
  const auto map = all.is_object() ? all.find("weight_map") : all.end();
  if (all.is_discarded() || !all.is_object() || map == all.end() || !map->is_object())
    throw std::runtime_error(index + " has no weight_map; fetch the file again");
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || name == ".." || name.find('\n') != std::string::npos)
      throw std::runtime_error(index + " gives " + tensor + " no file of the folder; fetch the file again");
    names.insert(name);
  }
  if (names.empty()) throw std::runtime_error(index + " names no files; fetch the file again");
  return {names.begin(), names.end()};
}

struct FoundTensor {
  int file = 0;
  StoredShape stored;
};

class FolderReader {
 public:
  FolderReader(const std::string& folder, const Model& model) : model_(model) {
    weights_.folder = fs::absolute(folder).lexically_normal().string();
    while (weights_.folder.size() > 1 && weights_.folder.ends_with('/')) weights_.folder.pop_back();
    check_config(weights_.folder, model);
    for (const std::string& name : files_in(weights_.folder)) read_header(name);
  }

  WeightFiles read() {
    for (int block = 0; block < static_cast<int>(blocks_of(model_).size()); ++block)
      for (const Parameter& parameter : parameters_of(model_, block)) find(parameter);
    refuse_others();
    return std::move(weights_);
  }

 private:
  void read_header(const std::string& name) {
    const SafetensorsHeader header = read_safetensors_header(weights_.folder + "/" + name);
    const int file = static_cast<int>(weights_.files.size());
    weights_.files.push_back({name, header.file_bytes, header.bytes.size(), checksum_of(header.bytes)});
    for (const auto& [tensor, stored] : header.tensors)
      if (!tensors_.emplace(tensor, FoundTensor{file, stored}).second)
        throw std::runtime_error(weights_.folder + " has " + tensor + " in two files; remove one of them");
  }

  void find(const Parameter& parameter) {
    for (const NamedRows& rows : hugging_face_tensors(parameter)) {
      const auto found = tensors_.find(rows.name);
      if (found == tensors_.end())
        throw std::runtime_error(weights_.folder + " lacks " + rows.name + "; save the whole model there");
      const FoundTensor& tensor = found->second;
      std::vector<std::int64_t> shape{rows.rows};
      if (!parameter.is_vector) shape.push_back(parameter.shape[1]);
      if (tensor.stored.shape != shape)
        throw std::runtime_error(
            fmt::format("{}: {} is [{}] there and [{}] in this model; set model.config to the "
                        "config.json of these weights",
                        path_of(tensor), rows.name, fmt::join(tensor.stored.shape, ", "), fmt::join(shape, ", ")));
      const std::optional<Dtype> dtype = dtype_of_safetensors(tensor.stored.dtype);
      if (!dtype)
        throw std::runtime_error(path_of(tensor) + ": " + rows.name + " is of dtype " + tensor.stored.dtype +
                                 "; allowed: F64, F32, BF16, F16; save the model in one of them");
      weights_.parts.push_back(
          {parameter.name, *dtype, rows.rows, parameter.shape[1], tensor.file, tensor.stored.begin});
      used_.insert(rows.name);
    }
  }

  // Old checkpoints have the frequencies of rotary positions; a tied head may be there a second time.
  void refuse_others() const {
    for (const auto& [name, tensor] : tensors_) {
      const bool is_known =
          name.ends_with("rotary_emb.inv_freq") || (name == "lm_head.weight" && model_.runs[2].block.tied);
      if (!is_known && !used_.contains(name))
        throw std::runtime_error(path_of(tensor) + ": " + name +
                                 " is no tensor of this model; set model.config to the "
                                 "config.json of these weights");
    }
  }

  std::string path_of(const FoundTensor& tensor) const {
    return weights_.folder + "/" + weights_.files[tensor.file].name;
  }

  const Model& model_;
  WeightFiles weights_;
  std::map<std::string, FoundTensor> tensors_;
  std::set<std::string> used_;
};

}  // namespace

WeightFiles weights_in(const std::string& option, const std::string& folder, const Model& model) {
  try {
    if (const std::string why = not_in_hugging_face(model); !why.empty())
      throw std::runtime_error("Hugging Face weights cannot be read: " + why);
    return FolderReader(folder, model).read();
  } catch (const std::runtime_error& error) {
    throw UsageError(option + ": " + error.what());
  }
}

}  // namespace slipway::scenarios
