// The data files in the program: built-in models against the parameter counts of their papers and checkpoints, and
// machine profiles, each number with its source.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/model/model.h"

namespace slipway::test {
namespace {

std::string folder(const char* name) { return std::string(SLIPWAY_SOURCE_DIR) + "/models/" + name; }

// The files are flat, "key: value" a line.
std::map<std::string, std::string> keys_of(const std::string& name) {
  std::ifstream file(folder("model/library") + "/" + name + ".yaml");
  if (!file) throw std::runtime_error("no built-in model " + name);
  std::map<std::string, std::string> keys;
  for (std::string line; std::getline(file, line);)
    if (const std::size_t colon = line.find(": "); colon != std::string::npos)
      keys[line.substr(0, colon)] = line.substr(colon + 2);
  return keys;
}

Model built_in(const std::string& name) {
  const std::map<std::string, std::string> keys = keys_of(name);
  const auto number = [&](const char* key) { return std::int64_t{std::stoll(keys.at(key))}; };
  const bool tied = keys.at("tied") == "true";
  if (keys.at("family") == "llama") {
    LlamaShape shape{number("layers"),   number("hidden"), number("ffn"),      number("heads"),
                     number("kv_heads"), number("vocab"),  number("sequence"), tied};
    shape.qkv_bias = keys.contains("qkv_bias") && keys.at("qkv_bias") == "true";
    shape.qk_norm = keys.contains("qk_norm") && keys.at("qk_norm") == "true";
    if (keys.contains("experts"))
      shape.experts = number("experts"), shape.experts_per_token = number("experts_per_token");
    if (keys.contains("head_dim")) shape.head_dim = number("head_dim");
    return llama(name, shape);
  }
  if (keys.at("family") == "gpt")
    return gpt(name, {number("layers"), number("hidden"), number("ffn"), number("heads"), number("vocab"),
                      number("max_positions"), number("sequence"), tied});
  return bert(name, {number("layers"), number("hidden"), number("ffn"), number("heads"), number("vocab"),
                     number("max_positions"), number("token_types"), number("sequence"), tied});
}

TEST(BuiltInModels, HaveExactlyTheParametersOfThePublishedCheckpoints) {
  const std::map<std::string, std::int64_t> published{
      {"llama-2-7b", 6738415616},     {"llama-2-13b", 13015864320},      {"llama-2-70b", 68976648192},
      {"llama-3.1-8b", 8030261248},   {"llama-3.1-70b", 70553706496},    {"llama-3.1-405b", 405853388800},
      {"llama-3.2-1b", 1235814400},   {"tinyllama-1.1b", 1100048384},    {"openllama-3b", 3426473600},
      {"qwen2.5-0.5b", 494032768},    {"qwen2.5-7b", 7615616512},        {"qwen2.5-32b", 32763876352},
      {"qwen2.5-72b", 72706203648},   {"qwen3-0.6b", 596049920},         {"qwen3-1.7b", 1720574976},
      {"qwen3-4b", 4022468096},       {"qwen3-8b", 8190735360},          {"qwen3-14b", 14768307200},
      {"qwen3-32b", 32762123264},     {"mixtral-8x7b", 46702792704},     {"mixtral-8x22b", 140620634112},
      {"qwen3-30b-a3b", 30532122624}, {"qwen3-235b-a22b", 235093634560}, {"gpt2", 124439808},
      {"gpt2-xl", 1557611200},        {"bert-base", 109514298},          {"bert-large", 335174458},
  };
  for (const auto& [name, count] : published) EXPECT_EQ(parameter_count(built_in(name)), count) << name;
}

// Billions, from their papers and names: Jiang et al. 2024, Qwen3 Technical Report 2025.
TEST(BuiltInModels, WithExpertsUseAsManyParametersForATokenAsPublished) {
  const std::map<std::string, double> published{
      {"mixtral-8x7b", 12.9}, {"mixtral-8x22b", 39}, {"qwen3-30b-a3b", 3.3}, {"qwen3-235b-a22b", 22}};
  for (const auto& [name, billions] : published)
    EXPECT_NEAR(static_cast<double>(active_parameter_count(built_in(name))) / 1e9, billions, 0.02 * billions) << name;
  EXPECT_EQ(active_parameter_count(built_in("llama-3.2-1b")), parameter_count(built_in("llama-3.2-1b")));
}

TEST(BuiltInModels, WithoutACheckpointHaveTheRoundedCountOfTheirName) {
  EXPECT_NEAR(static_cast<double>(parameter_count(built_in("gpt3-175b"))), 175e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(parameter_count(built_in("microllama-300m"))), 300e6, 6e6);
  // The vocabulary of 128,000 adds 2·96,000·hidden to LLaMA's 13.0, 32.5 and 65.2 billion.
  EXPECT_NEAR(static_cast<double>(parameter_count(built_in("llama-13b-v128k"))), 13.0e9 + 2 * 96e3 * 5120, 0.1e9);
  EXPECT_NEAR(static_cast<double>(parameter_count(built_in("llama-30b-v128k"))), 32.5e9 + 2 * 96e3 * 6656, 0.1e9);
  EXPECT_NEAR(static_cast<double>(parameter_count(built_in("llama-65b-v128k"))), 65.2e9 + 2 * 96e3 * 8192, 0.1e9);
}

std::vector<std::string> files_of(const char* name) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder(name))) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(BuiltInModels, StateTheirSource) {
  ASSERT_GE(files_of("model/library").size(), 18u);
  for (const std::string& path : files_of("model/library"))
    EXPECT_GT(keys_of(std::filesystem::path(path).stem())["source"].size(), 10u) << path;
}

// Every line of a profile that holds a number holds {value: ..., source: "..."}.
TEST(MachineProfiles, GiveEachNumberWithItsSource) {
  ASSERT_GE(files_of("machine/profiles").size(), 8u);
  for (const std::string& path : files_of("machine/profiles")) {
    std::ifstream file(path);
    int numbers = 0;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("kernels:")) {  // one source for the section, in this line or the next
        std::string next;
        std::getline(file, next);
        EXPECT_NE((line + next).find("source: \""), std::string::npos) << path << ": " << line;
        continue;
      }
      if (line.starts_with("aliases: ") || line.find("share: ") != std::string::npos ||
          line.find("measured: ") != std::string::npos)
        continue;
      const std::size_t comment = line.find('#');
      const std::string text = line.substr(0, comment == line.find_first_not_of(' ') ? comment : std::string::npos);
      const std::size_t colon = text.find(':');
      if (colon == std::string::npos || text.find_first_not_of(' ', colon + 1) == std::string::npos ||
          text.find("# ") != std::string::npos || text.find("name:") != std::string::npos)
        continue;
      EXPECT_NE(text.find("{value: "), std::string::npos) << path << ": " << line;
      EXPECT_NE(text.find(", source: \""), std::string::npos) << path << ": " << line;
      ++numbers;
    }
    EXPECT_GE(numbers, 17) << path;
  }
}

// The driver counts whole MiB, of a capacity that data sheets give in binary gigabytes: 80 GB are 81,559 or 81,920 MiB.
TEST(MachineProfiles, HaveTheBytesThatTheDriverCounts) {
  const std::map<std::string, int> mib = {
      {"p100-16gb", 16384}, {"v100-32gb", 32768}, {"a100-40gb", 40960}, {"a100-80gb", 81920}, {"h100-80gb", 81559},
      {"h100-94gb", 95830}, {"h200", 143771},     {"b200", 183359},     {"b300", 275040},     {"gb200", 189471},
      {"gb300", 284208},    {"l40s", 46068},      {"h800", 81559},      {"h20", 97871},       {"mi300x", 196592},
      {"mi325x", 262128},   {"mi355x", 294896}};
  for (const std::string& path : files_of("machine/profiles")) {
    std::ifstream file(path);
    const std::string key = "memory_bytes: {value: ", name = std::filesystem::path(path).stem().string();
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with(key)) continue;
      ASSERT_TRUE(mib.contains(name)) << name << ": add what nvidia-smi shows of it";
      EXPECT_EQ(std::stod(line.substr(key.size())), 1048576.0 * mib.at(name)) << path;
    }
  }
}

}  // namespace
}  // namespace slipway::test
