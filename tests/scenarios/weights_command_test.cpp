// `slipway execute` with --weights and --save-weights: what transformers saved comes out of any layout as it went in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "exec/run/checkpoint_file.h"
#include "exec/run/checkpoint_folder.h"
#include "scenarios/commands/weights/read_weight_folder.h"
#include "scenarios/commands/weights/write_weight_folder.h"
#include "scenarios/files/usage_error.h"
#include "tests/support/executing_test.h"
#include "tests/support/hugging_face_weights.h"
#include "tests/support/losses_csv.h"

namespace slipway::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

class Weights : public ExecutingTest {
 protected:
  // A scenario of the saved model; with a learning rate of 0, training changes nothing.
  std::string scenario_of(const std::string& saved) const {
    const std::string file = path(saved + ".yaml");
    std::string machine = text_of(SLIPWAY_SOURCE_DIR "/scenarios/examples/machines/cpu-test.yaml");
    machine.replace(machine.find("{float64: "), 1, "{bfloat16: 40 GFLOP/s, ");
    std::ofstream(path("machine.yaml")) << machine;
    std::ofstream(file) << "model: {config: " << folder_of(saved) << "/config.json, sequence: 12}\n"
                        << "cluster: {machine: machine.yaml, gpus_per_node: 4}\n"
                        << "schedule: {name: 1f1b, micro_batch: 2, global_batch: 8, kernels: flash2}\n"
                        << "run: {steps: 2, seed: 1, lr: 0, dtype: float32, data: " SLIPWAY_SOURCE_DIR
                        << "/scenarios/data/us-founding-documents.txt}\n";
    return file;
  }
  static std::string folder_of(const std::string& saved) {
    return SLIPWAY_SOURCE_DIR "/tests/data/hugging_face_weights/" + saved;
  }

  // Into the folder `out`, and with weights saved in `out`.weights.
  Answer executed(const std::string& saved, const std::string& out, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"execute", scenario_of(saved), "--out",
                                   path(out), "--save-weights",   path(out + ".weights")};
    words.insert(words.end(), more.begin(), more.end());
    return slipway_with(words);
  }
  std::string copied(const std::string& saved, const std::string& to) const {
    fs::copy(folder_of(saved), path(to), fs::copy_options::recursive);
    return path(to);
  }
};

struct Layouts {
  const char *name, *saved, *dtype;
  std::vector<const char*> set;
};
const Layouts all_layouts[] = {
    {"OneRank", "llama", "float32", {"cluster.gpus_per_node=1"}},
    {"PipelineOfTwo", "llama", "float32", {"layout.pipeline=2", "cluster.gpus_per_node=2"}},
    {"CopiesOfHeads", "llama", "float32", {"layout.tensor=4"}},
    {"GatheredWeights", "llama", "float32", {"layout.data=2", "layout.tensor=2", "layout.zero=3"}},
    {"ContextAndSlices", "llama", "float32", {"layout.context=2", "layout.data=2", "layout.zero=1"}},
    {"TiedOnOneRank", "llama-tied", "bfloat16", {"layout.tensor=2", "cluster.gpus_per_node=2"}},
    {"TiedOnTwoStages", "llama-tied", "bfloat16", {"layout.pipeline=2", "layout.data=2", "layout.zero=2"}},
    {"OneKeyValueHead", "qwen3", "float64", {"layout.pipeline=2", "layout.tensor=2"}},
};

TEST_F(Weights, ComeOutOfAnyLayoutAsTheyWentIn) {
  std::map<std::string, double> losses;
  for (const Layouts& each : all_layouts) {
    SCOPED_TRACE(each.name);
    std::vector<std::string> words{"--weights", folder_of(each.saved), "--set", std::string("run.dtype=") + each.dtype};
    for (const char* set : each.set) words.insert(words.end(), {"--set", set});
    const Answer answer = executed(each.saved, each.name, words);
    ASSERT_EQ(answer.status, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("weights: " + folder_of(each.saved) + "\n"));
    EXPECT_THAT(answer.out, HasSubstr(", weights: " + path(std::string(each.name) + ".weights") + "\n"));
    EXPECT_TRUE(tensors_in(path(std::string(each.name) + ".weights")) == tensors_in(folder_of(each.saved)));
    const double loss = numbers_of(losses_of(path(each.name))).front();
    const auto [known, is_new] = losses.emplace(each.saved, loss);
    EXPECT_NEAR(loss, known->second, (each.dtype == std::string("bfloat16") ? 2e-2 : 2e-6) * loss);
  }
}

TEST_F(Weights, AreListedForRanksOfOtherLaunchers) {
  const std::string bundle = path("run.slip");
  const Answer answer = slipway_with({"lower", scenario_of("llama"), "-o", bundle, "--weights", folder_of("llama")});
  ASSERT_EQ(answer.status, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr(bundle + ".weights: where each weight is in " + folder_of("llama")));
  EXPECT_EQ(to_text(read_weight_files(bundle + ".weights")),
            to_text(weights_in("--weights", folder_of("llama"), saved_models().front().model())));
}

TEST_F(Weights, AreNamedInTheJson) {
  const Answer answer = executed("llama", "run", {"--json", "--set", "cluster.gpus_per_node=1"});
  ASSERT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(json::parse(answer.out)["weights"], path("run.weights"));
}

// Other constants than those of a new config stay: it is the one that was read.
TEST_F(Weights, AreSavedWithTheConfigThatWasRead) {
  ASSERT_EQ(executed("llama", "run", {"--weights", folder_of("llama"), "--set", "cluster.gpus_per_node=1"}).status, 0);
  json there = json::parse(text_of(folder_of("llama") + "/config.json")),
       here = json::parse(text_of(path("run.weights/config.json")));
  there.erase("dtype");
  there["torch_dtype"] = "float32";
  EXPECT_EQ(here, there);
}

TEST_F(Weights, OfANewModelAreReadBackAndTrainOnTheSame) {
  for (const std::string saved : {"llama", "qwen2", "qwen3"}) {
    SCOPED_TRACE(saved);
    const Answer first = executed(saved, saved, {"--set", "run.lr=0.01", "--set", "cluster.gpus_per_node=1"});
    ASSERT_EQ(first.status, 0) << first.err;
    const Answer second = executed(
        saved, saved + "-2",
        {"--weights", path(saved + ".weights"), "--set", "layout.pipeline=2", "--set", "cluster.gpus_per_node=2"});
    ASSERT_EQ(second.status, 0) << second.err;
    EXPECT_TRUE(tensors_in(path(saved + ".weights")) == tensors_in(path(saved + "-2.weights")));
  }
}

TEST_F(Weights, OfAResumedTrainingAreThoseOfAnUninterruptedOne) {
  const std::vector<std::string> words{"--weights", folder_of("llama"), "--set", "run.lr=0.01",
                                       "--set",     "layout.data=4",    "--set", "run.checkpoint_steps=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), words.begin(), words.end());
    return more;
  };
  ASSERT_EQ(executed("llama", "whole", with({"--set", "run.steps=4"})).status, 0);
  std::vector<std::string> first{"execute", scenario_of("llama"), "--out", path("parts")};
  first.insert(first.end(), words.begin(), words.end());
  ASSERT_EQ(slipway_with(first).status, 0);
  const Answer resumed = executed("llama", "parts", with({"--set", "run.steps=4", "--resume", "latest"}));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("the training goes on with its own"));
  EXPECT_TRUE(tensors_in(path("parts.weights")) == tensors_in(path("whole.weights")));
  EXPECT_FALSE(tensors_in(path("parts.weights")) == tensors_in(folder_of("llama")));
  // The training is complete: only the weights are written.
  fs::remove_all(path("parts.weights"));
  const Answer again = executed("llama", "parts", with({"--set", "run.steps=4", "--resume", "latest"}));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("its 4 steps are done; weights: " + path("parts.weights")));
  EXPECT_TRUE(tensors_in(path("parts.weights")) == tensors_in(path("whole.weights")));
}

TEST_F(Weights, LargerThanAFileGoToSeveralWithAnIndex) {
  ASSERT_EQ(executed("llama", "run", {"--weights", folder_of("llama"), "--set", "cluster.gpus_per_node=1"}).status, 0);
  const SavedModel saved = saved_models().front();
  write_weights(path("parts"), saved.model(), Dtype::float32, CheckpointReader(checkpoint_path(path("run"), 2)), "",
                20000);
  EXPECT_FALSE(fs::exists(path("parts/model.safetensors")));
  EXPECT_TRUE(fs::exists(path("parts/model-00001-of-00003.safetensors")));
  EXPECT_TRUE(tensors_in(path("parts")) == tensors_in(folder_of("llama")));
  EXPECT_EQ(weights_in("--weights", path("parts"), saved.model()).files.size(), 3u);
  EXPECT_EQ(json::parse(text_of(path("parts/model.safetensors.index.json")))["metadata"]["total_size"], 48448);
  EXPECT_FALSE(fs::exists(path("parts.partial")));
}

// A start that was killed may leave its half folder, and somebody else a link under that name.
TEST_F(Weights, AreNotWrittenIntoWhatStandsUnderTheirTemporaryName) {
  ASSERT_EQ(executed("llama", "run", {"--weights", folder_of("llama"), "--set", "cluster.gpus_per_node=1"}).status, 0);
  const SavedModel saved = saved_models().front();
  fs::create_directories(path("of-somebody-else"));
  fs::create_directory_symlink(path("of-somebody-else"), path("parts.partial"));
  write_weights(path("parts"), saved.model(), Dtype::float32, CheckpointReader(checkpoint_path(path("run"), 2)), "");
  EXPECT_TRUE(fs::is_empty(path("of-somebody-else")));
  EXPECT_TRUE(tensors_in(path("parts")) == tensors_in(folder_of("llama")));
  EXPECT_FALSE(fs::exists(fs::symlink_status(path("parts.partial"))));
}

TEST_F(Weights, ThatDoNotFitAreRefusedBeforeAnythingStarts) {
  const auto refused = [&](const std::string& folder, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"--weights", folder};
    words.insert(words.end(), more.begin(), more.end());
    const Answer answer = executed("llama", "run", words);
    EXPECT_EQ(answer.status, 2) << answer.out;
    EXPECT_FALSE(fs::exists(path("run")));
    EXPECT_FALSE(fs::exists(path("run.weights")));
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    EXPECT_THAT(answer.err, HasSubstr("--weights: "));
    EXPECT_THAT(answer.err, HasSubstr(folder));
    EXPECT_THAT(answer.err, HasSubstr("; "));  // a remedy
    return answer.err;
  };
  const auto edited = [&](const std::string& name, const std::string& key, const json& value) {
    const std::string folder = copied("llama", name);
    json config = json::parse(text_of(folder + "/config.json"));
    config[key] = value;
    std::ofstream(folder + "/config.json") << config;
    return folder;
  };
  EXPECT_THAT(refused(path("nowhere")), HasSubstr("config.json cannot be read"));
  EXPECT_THAT(refused(folder_of("llama"), {"--set", "model.rope_theta=10000"}),
              HasSubstr("is of another model: model.rope_theta is 10000 and there 500000; set model.config to it"));
  EXPECT_THAT(refused(folder_of("llama"), {"--set", "model.layers=3"}), HasSubstr("model.layers is 3 and there 2"));
  EXPECT_THAT(refused(folder_of("qwen3")), HasSubstr("model.qk_norm is false and there true"));
  EXPECT_THAT(refused(edited("gpt", "model_type", "gpt_neox")), HasSubstr("config.json"));
  std::string folder = copied("llama", "no-tensors");
  fs::remove(folder + "/model.safetensors.index.json");
  EXPECT_THAT(refused(folder), HasSubstr("neither model.safetensors nor model.safetensors.index.json"));
  folder = copied("llama", "no-shard");
  fs::remove(folder + "/model-00002-of-00003.safetensors");
  EXPECT_THAT(refused(folder), HasSubstr("model-00002-of-00003.safetensors: it cannot be read"));
  folder = copied("llama", "cut");
  fs::resize_file(folder + "/model-00002-of-00003.safetensors", 9000);
  EXPECT_THAT(refused(folder), HasSubstr("cut short"));
  folder = copied("llama", "outside");
  std::ofstream(folder + "/model.safetensors.index.json")
      << R"({"weight_map": {"lm_head.weight": "../x.safetensors"}})";
  EXPECT_THAT(refused(folder), HasSubstr("gives lm_head.weight no file of the folder"));
}

// One tensor of the saved model is another.
TEST_F(Weights, WithATensorThatIsNotTheModelsAreRefused) {
  const SavedModel saved = saved_models().front();
  const auto refused = [&](const std::string& name, const auto& change) {
    const std::string folder = path(name);
    fs::create_directories(folder);
    fs::copy(saved.folder() + "/config.json", folder + "/config.json");
    std::vector<NamedShape> shapes;
    for (const auto& [tensor, stored] : tensors_in(saved.folder())) shapes.push_back({tensor, stored.shape});
    change(shapes);
    std::uint64_t elements = 0;
    for (const NamedShape& shape : shapes) {
      std::int64_t product = 1;
      for (const std::int64_t size : shape.shape) product *= size;
      elements += static_cast<std::uint64_t>(product);
    }
    std::ofstream(folder + "/model.safetensors", std::ios::binary)
        << safetensors_header(shapes, Dtype::float32) << std::string(4 * elements, '\0');
    try {
      weights_in("--weights", folder, saved.model());
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused("same", [](auto&) {}), "");
  EXPECT_THAT(refused("less", [](auto& shapes) { shapes.erase(shapes.begin()); }), HasSubstr("lacks lm_head.weight"));
  EXPECT_THAT(refused("more",
                      [](auto& shapes) {
                        shapes.push_back({"model.layers.2.mlp.down_proj.weight", {16, 24}});
                      }),
              HasSubstr("model.layers.2.mlp.down_proj.weight is no tensor of this model"));
  EXPECT_THAT(refused("turned", [](auto& shapes) { std::swap(shapes.front().shape[0], shapes.front().shape[1]); }),
              HasSubstr("lm_head.weight is [16, 256] there and [256, 16] in this model"));
  EXPECT_EQ(refused("frequencies",
                    [](auto& shapes) {
                      shapes.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {2}});
                    }),
            "");
}

TEST_F(Weights, AreNotSavedOverFilesNorOfOtherModels) {
  fs::create_directories(path("run.weights"));
  std::ofstream(path("run.weights/mine.txt")) << "mine";
  const Answer full = executed("llama", "run", {});
  EXPECT_EQ(full.status, 2);
  EXPECT_THAT(full.err, HasSubstr("run.weights holds files already; name a new folder"));
  EXPECT_FALSE(fs::exists(path("run")));
  const Answer other =
      slipway_with({"execute", SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml", "--set",
                    "model={name: gpt2, layers: 2}", "--out", path("gpt"), "--save-weights", path("gpt.weights")});
  EXPECT_EQ(other.status, 2);
  EXPECT_FALSE(fs::exists(path("gpt")));
}

}  // namespace
}  // namespace slipway::test
