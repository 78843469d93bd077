// The bench signature: step times and makespans of a set of small steps, to 12 digits, in tests/data. A change for
// speed or clarity must not change it. Where results are meant to change:
//
//   SLIPWAY_WRITE_SIGNATURE=1 build/tests/bench_signature_test      then read the diff; give the reason in the commit
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

const std::string root = SLIPWAY_SOURCE_DIR;
const std::string signature_file = root + "/tests/data/bench_signature.txt";

struct Case {
  const char* name;
  std::vector<std::string> overrides;
};

// A small Llama on 64 GPUs.
const std::vector<std::string> small{"model.layers=8", "model.hidden=512", "model.ffn=1024", "model.heads=8",
                                     "model.kv_heads=8", "model.sequence=512",
                                     // a fit does not move them
                                     "cluster.constants=" + root + "/tests/data/book_constants.yaml"};
const std::vector<Case> cases{
    {"1f1b", {}},
    {"gpipe", {"schedule.name=gpipe"}},
    {"interleaved", {"schedule.name=interleaved-1f1b"}},
    {"zb-h1", {"schedule.name=zb-h1"}},
    {"zb-h2", {"schedule.name=zb-h2"}},
    {"zb-v", {"schedule.name=zb-v"}},
    {"dualpipe-v", {"schedule.name=dualpipe-v"}},
    {"chimera", {"schedule.name=chimera"}},
    {"terapipe", {"schedule.name=terapipe"}},
    {"data only",
     {"layout.tensor=1", "layout.sequence_parallel=false", "layout.pipeline=1", "layout.data=64",
      "schedule.global_batch=128"}},
    {"zero 0", {"layout.zero=0"}},
    {"zero 2", {"layout.zero=2"}},
    {"zero 3", {"layout.zero=3"}},
    {"context", {"layout.tensor=2", "layout.context=4"}},
    {"no sequence parallel", {"layout.sequence_parallel=false"}},
    {"tied", {"model.tied=true"}},
    {"recompute full", {"schedule.recompute=full"}},
    {"clipping", {"run.clip_norm=1"}},
    {"a trainer's", {"cluster.trainer=nanotron"}},
    {"a100", {"cluster.machine=a100-80gb"}},
    {"200 micro-batches", {"schedule.global_batch=400"}},
};

std::string line_of(const Case& each) {
  std::vector<std::string> overrides = small;
  overrides.insert(overrides.end(), each.overrides.begin(), each.overrides.end());
  LoadResult loaded = load_scenario(root + "/scenarios/studies/scale/llama-8b-64xh100.yaml", overrides);
  EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  const Prediction prediction = prediction_of(simulated_step(loaded.scenario, StepOptions{}));
  char line[200];
  std::snprintf(line, sizeof line, "%-22s step %.12g s, alone %.12g s, compute %.9f, exposed %.9f\n", each.name,
                prediction.step.step_time_s, prediction.step.makespan_s, prediction.step.compute_share,
                prediction.step.exposed_comm_share);
  return line;
}

// FNV-1a, 64 bits.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  char line[40];
  std::snprintf(line, sizeof line, "signature %016llx\n", static_cast<unsigned long long>(hash));
  return line;
}

TEST(BenchSignature, OfGoldenStepsIsThatOfTheRepository) {
  std::string text;
  for (const Case& each : cases) text += line_of(each);
  text += hash_of(text);
  if (std::getenv("SLIPWAY_WRITE_SIGNATURE") != nullptr) std::ofstream(signature_file) << text;
  std::ifstream file(signature_file);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << "figures of simulated steps changed. If they are meant to: "
                                   "SLIPWAY_WRITE_SIGNATURE=1 build/tests/bench_signature_test";
}

class SameBytes : public CommandTest {};

TEST_F(SameBytes, TheSameScenarioGivesTheSameTraceReportAndJson) {
  const std::string scenario = root + "/scenarios/examples/tiny-llama-cpu.yaml";
  for (const std::string file : {"a.json", "b.json"})
    EXPECT_EQ(slipway_with({"simulate", scenario, "--trace", path(file)}).status, status_done);
  const std::string trace = text_of(path("a.json"));
  EXPECT_GT(trace.size(), 10000u);
  EXPECT_TRUE(trace == text_of(path("b.json")));
}

}  // namespace
}  // namespace slipway::test
