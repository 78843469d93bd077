#include <fmt/format.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/weights/hugging_face_names.h"
#include "scenarios/commands/weights/safetensors.h"
#include "scenarios/commands/weights/write_weight_folder.h"
#include "scenarios/files/usage_error.h"

namespace slipway::scenarios {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

// The upper half of a float32, rounded to the nearest, ties to even, as PyTorch does. Weights are finite.
std::uint16_t bfloat16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename From, typename To, typename Convert>
std::string converted(const std::string& values, Convert convert) {
  std::string result(values.size() / sizeof(From) * sizeof(To), '\0');
  for (std::size_t i = 0; i * sizeof(From) < values.size(); ++i) {
    From from{};
    std::memcpy(&from, values.data() + i * sizeof(From), sizeof(From));
    const To to = convert(from);
    std::memcpy(result.data() + i * sizeof(To), &to, sizeof(To));
  }
  return result;
}

// Master weights are float32 or float64 (exec/rank/parameter_state.cpp).
std::string in_dtype(std::string masters, Dtype from, Dtype to) {
  if (from == to) return masters;
  if (from == Dtype::float64) {
    masters = converted<double, float>(masters, [](double value) { return static_cast<float>(value); });
    if (to == Dtype::float32) return masters;
  }
  if (to == Dtype::float64)
    return converted<float, double>(masters, [](float value) { return static_cast<double>(value); });
  return converted<float, std::uint16_t>(masters, bfloat16_of);
}

// Parameters in order, and the tensors that each becomes; a tied head is the embedding's.
struct PlannedTensor {
  NamedShape shape;
  std::uint64_t bytes = 0;
};
struct PlannedParameter {
  Parameter parameter;
  std::vector<PlannedTensor> tensors;
};

std::vector<PlannedParameter> planned(const Model& model, Dtype dtype) {
  std::vector<PlannedParameter> all;
  for (int block = 0; block < static_cast<int>(blocks_of(model).size()); ++block)
    for (const Parameter& parameter : parameters_of(model, block)) {
      if (!parameter.same_as.empty()) continue;
      PlannedParameter planned{parameter, {}};
      for (const NamedRows& rows : hugging_face_tensors(parameter)) {
        std::vector<std::int64_t> shape{rows.rows};
        if (!parameter.is_vector) shape.push_back(parameter.shape[1]);
        planned.tensors.push_back(
            {{rows.name, shape}, static_cast<std::uint64_t>(rows.rows * parameter.shape[1] * bytes_of(dtype))});
      }
      all.push_back(std::move(planned));
    }
  return all;
}

// Writes tensors in the planned order, a file after another.
class WeightWriter {
 public:
  WeightWriter(std::string folder, const std::vector<PlannedParameter>& plan, Dtype dtype, std::uint64_t largest)
      : folder_(std::move(folder)), dtype_(dtype) {
    std::uint64_t room = 0;
    for (const PlannedParameter& each : plan)
      for (const PlannedTensor& tensor : each.tensors) {
        if (files_.empty() || tensor.bytes > room) {
          files_.emplace_back();
          room = largest;
        }
        room -= std::min(room, tensor.bytes);
        files_.back().push_back(tensor.shape);
        bytes_ += tensor.bytes;
      }
  }

  void write(std::string_view elements) {
    if (left_ == 0) begin_file();
    stream_.write(elements.data(), static_cast<std::streamsize>(elements.size()));
    if (--left_ > 0) return;
    close(stream_, path_);
  }

  // With several files, the list of what is in which.
  void write_index() const {
    if (files_.size() == 1) return;
    ordered_json index;
    index["metadata"]["total_size"] = bytes_;
    for (std::size_t i = 0; i < files_.size(); ++i)
      for (const NamedShape& tensor : files_[i]) index["weight_map"][tensor.name] = name_of_file(i);
    write_text("model.safetensors.index.json", index.dump(2) + "\n");
  }

  void write_text(const std::string& name, const std::string& text) const {
    std::ofstream file(folder_ + "/" + name, std::ios::binary);
    file << text;
    close(file, folder_ + "/" + name);
  }

 private:
  std::string name_of_file(std::size_t i) const {
    return files_.size() == 1 ? "model.safetensors"
                              : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files_.size());
  }

  void begin_file() {
    path_ = folder_ + "/" + name_of_file(file_);
    left_ = files_[file_].size();
    errno = 0;
    stream_ = std::ofstream(path_, std::ios::binary);
    stream_ << safetensors_header(files_[file_++], dtype_);
  }

  static void close(std::ofstream& stream, const std::string& path) {
    stream.close();
    if (!stream)
      throw std::runtime_error(path + " cannot be written: " + (errno != 0 ? std::strerror(errno) : "disk full?") +
                               "; make room");
  }

  std::string folder_;
  Dtype dtype_;
  std::vector<std::vector<NamedShape>> files_;
  std::uint64_t bytes_ = 0;
  std::size_t file_ = 0, left_ = 0;
  std::string path_;
  std::ofstream stream_;
};

ordered_json new_config(const Model& model) {
  const Block& layer = model.runs[1].block;
  const std::string type = layer.qk_norm ? "qwen3" : layer.qkv_bias ? "qwen2" : "llama";
  const std::string architecture = layer.qk_norm ? "Qwen3" : layer.qkv_bias ? "Qwen2" : "Llama";
  ordered_json config;
  config["architectures"] = {architecture + "ForCausalLM"};
  config["model_type"] = type;
  config["attention_dropout"] = 0.0;
  if (type != "qwen2") config["attention_bias"] = false;
  if (type == "llama") config["mlp_bias"] = false;
  config["hidden_act"] = "silu";
  config["hidden_size"] = layer.hidden;
  config["intermediate_size"] = layer.ffn;
  config["num_hidden_layers"] = layer_count(model);
  config["num_attention_heads"] = layer.heads;
  config["num_key_value_heads"] = layer.kv_heads;
  config["head_dim"] = layer.head_dim;
  config["vocab_size"] = model.runs[0].block.vocab;
  config["max_position_embeddings"] = model.sequence;
  config["rms_norm_eps"] = layer.norm_epsilon;
  config["rope_theta"] = layer.rope_theta;
  config["tie_word_embeddings"] = model.runs[2].block.tied;
  config["initializer_range"] = 0.02;
  config["use_cache"] = true;
  return config;
}

// transformers before 4.56 reads torch_dtype, later ones read both.
std::string config_text(const Model& model, Dtype dtype, const std::string& started_from) {
  ordered_json config = new_config(model);
  if (!started_from.empty()) {
    std::ifstream file(started_from + "/config.json");
    config = ordered_json::parse(file, nullptr, false);
    if (!config.is_object()) throw std::runtime_error(started_from + "/config.json is no JSON object any more");
  }
  config.erase("dtype");
  config["torch_dtype"] = name_of(dtype);
  return config.dump(2) + "\n";
}

std::string partial_of(const std::string& folder) { return folder + ".partial"; }

// Replaces what a killed start left. mkdir does not follow a link that another user put there meanwhile.
void make_new(const std::string& folder) {
  fs::remove_all(folder);
  if (const fs::path parent = fs::path(folder).parent_path(); !parent.empty()) fs::create_directories(parent);
  if (::mkdir(folder.c_str(), 0777) != 0)
    throw std::runtime_error("cannot make the folder " + folder + ": " + std::strerror(errno) +
                             "; name another folder for the weights");
}

}  // namespace

void check_weights_output(const std::string& option, const std::string& folder, const Model& model) {
  if (folder.empty()) throw UsageError(option + " is empty; name a folder");
  if (const std::string why = not_in_hugging_face(model); !why.empty())
    throw UsageError(option + ": Hugging Face weights cannot be written: " + why);
  std::error_code none;
  if (fs::exists(folder, none) && (!fs::is_directory(folder, none) || !fs::is_empty(folder, none)))
    throw UsageError(option + " " + folder + (fs::is_directory(folder, none) ? " holds files already" : " is a file") +
                     "; name a new folder");
  check_output_folder(option, folder);
}

void write_weights(const std::string& folder, const Model& model, Dtype dtype, const CheckpointReader& checkpoint,
                   const std::string& started_from, std::uint64_t largest_file) {
  const std::string partial = partial_of(folder);
  make_new(partial);
  const std::vector<PlannedParameter> plan = planned(model, dtype);
  WeightWriter writer(partial, plan, dtype, largest_file);
  try {
    for (const PlannedParameter& each : plan) {
      WholeParameter whole = whole_parameter(checkpoint, each.parameter);
      const std::string elements = in_dtype(std::move(whole.parts.front()), whole.dtype, dtype);
      std::size_t at = 0;
      for (const PlannedTensor& tensor : each.tensors) {
        writer.write(std::string_view(elements).substr(at, tensor.bytes));
        at += tensor.bytes;
      }
    }
    writer.write_index();
    writer.write_text("config.json", config_text(model, dtype, started_from));
    fs::remove(folder);  // an empty folder
    fs::rename(partial, folder);
  } catch (...) {
    std::error_code left;
    fs::remove_all(partial, left);
    throw;
  }
}

}  // namespace slipway::scenarios
