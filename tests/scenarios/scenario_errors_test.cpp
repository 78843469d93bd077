// Every mistake is one error with file, line, key, what is allowed and what to do; all are reported at once.
#include "scenarios/language/scenario.h"

#include <gmock/gmock.h>

#include <set>

#include "scenarios/predict/load_scenario.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Case {
  const char* title;
  const char* line;  // the replaced line of the sound scenario
  const char* replacement;
  int at;  // the error's line
  const char* key;
  const char* wrong;    // part of what is wrong
  const char* allowed;  // part of what is allowed
  const char* remedy;   // part of what to do
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.title; }

const Case cases[] = {
    {"UnknownKey", "  tensor: 2", "  tensr: 2", 15, "layout.tensr", "unknown key",
     "tensor, sequence_parallel, pipeline", "did you mean 'tensor'?"},
    {"UnknownKeyOfAnotherSection", "  steps: 3", "  pipeline: 3", 22, "run.pipeline", "unknown key", "steps, seed",
     "did you mean 'layout.pipeline'?"},
    {"UnknownSection", "run:", "runs:", 21, "runs", "unknown key", "model, cluster, layout, schedule, run",
     "did you mean 'run'?"},
    {"MisspelledRequiredKey", "  global_batch: 16", "  global_bacth: 16", 20, "schedule.global_bacth", "unknown key",
     "global_batch", "did you mean 'global_batch'?"},
    {"WrongType", "  tensor: 2", "  tensor: two", 15, "layout.tensor", "'two' is not a whole number",
     "from 1 to 1000000", "tensor: 1"},
    {"FractionalInteger", "  tensor: 2", "  tensor: 2.5", 15, "layout.tensor", "'2.5' is not a whole number", "from 1",
     "tensor: 1"},
    {"QuotedInteger", "  tensor: 2", "  tensor: '2'", 15, "layout.tensor", "'2' is not a whole number", "from 1",
     "tensor: 1"},
    {"NoValue", "  tensor: 2", "  tensor:", 15, "layout.tensor", "has no value", "from 1", "tensor: 1"},
    {"ListForInteger", "  tensor: 2", "  tensor: [2]", 15, "layout.tensor", "a list is not a whole number", "from 1",
     "tensor: 1"},
    {"OutOfRange", "  tensor: 2", "  tensor: 0", 15, "layout.tensor", "0 is out of range", "from 1 to 1000000",
     "tensor: 1"},
    {"BeyondInt64", "  tensor: 2", "  tensor: 99999999999999999999", 15, "layout.tensor", "out of range",
     "from 1 to 1000000", "tensor: 1"},
    {"Zero4", "  tensor: 2", "  tensor: 2\n  zero: 4", 16, "layout.zero", "4 is out of range", "from 0 to 3",
     "zero: 0"},
    {"NegativeRate", "  steps: 3", "  lr: -1", 22, "run.lr", "-1 is out of range", "of at least 0", "lr: 0"},
    {"UnknownChoice", "  name: 1f1b", "  name: 1f2b", 18, "schedule.name", "'1f2b' is not known",
     "1f1b, 1f1b-merged, chimera", "did you mean '1f1b'?"},
    {"UnknownUnit", "  nodes: 2", "  nodes: 2\n  fabrics: [{scope: node, bandwidth: 5 furlongs, latency: 0}]", 13,
     "cluster.fabrics.0.bandwidth", "fitting unit", "'450 GB/s'", "bandwidth: 1"},
    {"SectionIsNoMap", "layout:\n  tensor: 2\n  pipeline: 2", "layout: 5", 14, "layout", "'5' is not a map",
     "a map of keys", "indented"},
    {"TooManyStages", "  pipeline: 2", "  pipeline: 4\n  chunks: 3", 16, "layout.pipeline",
     "12 stages are more than the model's 8", "up to 10", "lower layout.pipeline"},
    {"RanksAreNotTheProduct", "  pipeline: 2", "  pipeline: 2\n  data: 4", 17, "layout.data",
     "16 ranks do not equal the cluster's 8 GPUs", "of 8", "set layout.data to 2"},
    {"BatchNotDivisible", "  global_batch: 16", "  global_batch: 18", 20, "schedule.global_batch",
     "18 is not divisible by micro_batch 2 x data 2 = 4", "multiples of 4", "16 or 20"},
    {"HeadsNotDivisible", "  heads: 8\n  kv_heads: 4", "  heads: 5\n  head_dim: 8", 15, "layout.tensor",
     "layout.tensor = 2 does not divide model.heads = 5", "1, 5", "change model.heads"},
    {"KvHeadsNotShared", "  heads: 8\n  kv_heads: 4", "  heads: 6\n  head_dim: 8\n  kv_heads: 3", 16, "layout.tensor",
     "layout.tensor = 2 neither divides model.kv_heads = 3 nor is a multiple of it", "1, 3, 6",
     "change model.kv_heads"},
    {"VocabNotDivisible", "  vocab: 256", "  vocab: 257", 15, "layout.tensor", "does not divide model.vocab = 257",
     "1, 257", "set model.vocab to 258, or layout.vocab_multiple to 128"},
    {"FfnNotDivisible", "  ffn: 192", "  ffn: 191", 15, "layout.tensor", "does not divide model.ffn = 191", "1, 191",
     "change model.ffn"},
    {"SequenceParallelAlone", "  tensor: 2", "  sequence_parallel: true", 15, "layout.sequence_parallel",
     "layout.tensor is 1", "tensor of 2 or more", "turn sequence_parallel off"},
    {"SplitOfWrongLength", "  pipeline: 2", "  pipeline: 2\n  split: [3, 3, 2]", 17, "layout.split",
     "3 numbers for 2 stages", "2 numbers that add up to 8", "each of pipeline x chunks"},
    {"SplitOfWrongSum", "  pipeline: 2", "  pipeline: 2\n  split: [3, 4]", 17, "layout.split", "adds up to 7 of 8",
     "2 numbers that add up to 8", "adds up"},
    {"ExpertWithoutExperts", "  pipeline: 2", "  pipeline: 2\n  expert: 2", 17, "layout.expert", "no experts to divide",
     "allowed: 1", "set layout.expert to 1"},
    {"BalancingLossWithoutExperts", "  steps: 3", "  balancing_loss: 0.1", 22, "run.balancing_loss",
     "the model has no experts", "allowed: 0", "choose a model with experts"},
    {"RouterBiasWithoutExperts", "  steps: 3", "  router_bias_speed: 0.1", 22, "run.router_bias_speed",
     "the model has no experts", "allowed: 0", "choose a model with experts"},
    {"MissingRequiredKey", "  global_batch: 16", "", 17, "schedule.global_batch", "required key is missing",
     "a whole number", "add 'global_batch:' to schedule"},
    {"DuplicateKey", "  tensor: 2", "  tensor: 2\n  tensor: 2", 16, "layout.tensor", "given twice, first on line 15",
     "once", "remove one"},
    {"TwoLearningRates", "  steps: 3", "  lr: 0.1\n  optimizer: {lr: 0.2}", 23, "run.optimizer.lr",
     "run.lr = 0.1 says otherwise", "one learning rate", "remove one"},
    {"DataFileIsUnreadable", "  steps: 3", "  data: nowhere.txt", 22, "run.data", "cannot read", "path of a text file",
     "relative to the scenario"},
    {"DtypeWithoutPeak", "  steps: 3", "  dtype: float64", 22, "run.dtype", "no peak FLOP/s for float64",
     "float32, bfloat16", "peak_flops.float64"},
    {"NarrowProductsWithoutPeak", "  steps: 3", "  fp8: mxfp8", 22, "run.fp8",
     "has no peak_flops.fp8, which mxfp8 needs", "", "leave run.fp8 out"},
    {"UnknownMachine", "  machine: ./box.yaml", "  machine: h100-80bg", 11, "cluster.machine", "no machine 'h100-80bg'",
     "path of a profile.yaml", ""},
    {"UnreadableMachine", "  machine: ./box.yaml", "  machine: ./bax.yaml", 11, "cluster.machine", "cannot read", "",
     "path of a readable file"},
    {"MachineAndGroups", "  nodes: 2", "  nodes: 2\n  groups: [{machine: ./box.yaml, gpus_per_node: 4}]", 10, "cluster",
     "both given", "one of them", "keep machine"},
    {"NeitherMachineNorGroups", "  machine: ./box.yaml", "", 10, "cluster", "neither machine nor groups", "one of them",
     "add 'machine:'"},
    {"GpusPerNodeMissing", "  gpus_per_node: 4", "", 10, "cluster.gpus_per_node", "missing", "1 to 1024",
     "add 'gpus_per_node:'"},
    {"FabricOfNobody", "  nodes: 2",
     "  nodes: 2\n  fabrics: [{scope: cluster, members: [1], bandwidth: 1, latency: 0}]", 13,
     "cluster.fabrics.0.members", "no group 1", "from 0 to 0", "from 0"},
    {"NoCommonFabric", "  nodes: 2", "  nodes: 2\n  fabrics: [{scope: node, bandwidth: 1 GB/s, latency: 0}]", 13,
     "cluster.fabrics", "have no common fabric", "connected", "add a fabric"},
    {"ModelOfNothing", "  family: llama", "", 1, "model", "none of name, config and family", "exactly one",
     "model: llama-3.1-8b"},
    {"ModelOfTwo", "  family: llama", "  family: llama\n  config: ./config.json", 1, "model", "more than one",
     "exactly one", "keep one"},
    {"ShapeMissing", "  hidden: 64", "", 1, "model.hidden", "missing for a model of family llama", "a whole number",
     "add 'hidden:'"},
    {"ShapeOfAnotherFamily", "  heads: 8", "  heads: 8\n  token_types: 2", 7, "model.token_types",
     "have no token_types", "leave it out", "remove it"},
    {"HeadsDoNotDivideHidden", "  heads: 8", "  heads: 24", 6, "model.heads", "does not divide hidden = 64",
     "a divisor of hidden", "change model.heads"},
    {"KvHeadsDoNotDivideHeads", "  kv_heads: 4", "  kv_heads: 3", 7, "model.kv_heads", "does not divide heads = 8",
     "a divisor of heads", "change model.kv_heads"},
};

class OneMistake : public testing::TestWithParam<Case> {};

TEST_P(OneMistake, IsOneErrorWithLineKeyAllowedAndRemedy) {
  const Case& test = GetParam();
  ScenarioFolder folder;
  folder.write("box.yaml", test_machine());
  std::string text = sound_scenario();
  const std::size_t at = text.find(test.line);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(test.line).size(), test.replacement);
  const LoadResult result = folder.load(text);
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  const ScenarioError& error = result.errors[0];
  EXPECT_EQ(error.file, (folder.path() / "s.yaml").string());
  EXPECT_EQ(error.line, test.at);
  EXPECT_EQ(error.key, test.key);
  EXPECT_THAT(error.message, AllOf(HasSubstr(test.wrong), HasSubstr(test.allowed)));
  EXPECT_THAT(error.remedy, HasSubstr(test.remedy));
  EXPECT_FALSE(error.remedy.empty());
  EXPECT_EQ(describe(result.errors), error.file + ":" + std::to_string(error.line) + ": " + error.key + ": " +
                                         error.message + "; " + error.remedy + "\n");
}
INSTANTIATE_TEST_SUITE_P(Scenario, OneMistake, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.title); });

// Mistakes that need several keys or a file besides the scenario.
class Mistakes : public testing::Test {
 protected:
  Mistakes() { folder.write("box.yaml", test_machine()); }
  // Loads with overrides and expects errors at exactly these keys.
  std::vector<ScenarioError> errors(const std::vector<std::string>& overrides, const std::multiset<std::string>& keys) {
    const LoadResult result = folder.load(sound_scenario(), overrides);
    std::multiset<std::string> found;
    for (const ScenarioError& error : result.errors) found.insert(error.key);
    EXPECT_EQ(found, keys) << describe(result.errors);
    return result.errors.empty() ? std::vector<ScenarioError>(1) : result.errors;
  }
  ScenarioFolder folder;
};

TEST_F(Mistakes, SequenceParallelNeedsASequenceThatTensorDivides) {
  const auto found = errors({"layout.sequence_parallel=true", "model.sequence=127"}, {"layout.sequence_parallel"});
  EXPECT_THAT(found[0].message,
              AllOf(HasSubstr("tensor = 2 does not divide the 127 tokens"), HasSubstr("allowed: tensor 1, 127")));
}

TEST_F(Mistakes, FeaturesOfLlamaBlocksAreRefusedInOtherFamilies) {
  const auto found =
      errors({"model=gpt2", "model.qk_norm=true", "model.qkv_bias=true"}, {"model.qk_norm", "model.qkv_bias"});
  EXPECT_THAT(found[1].message, HasSubstr("models of family gpt have no qk_norm"));
}

TEST_F(Mistakes, ContextMustDivideTheSequence) {
  const auto found = errors({"layout.context=2", "model.sequence=127"}, {"layout.context"});
  EXPECT_THAT(found[0].message, HasSubstr("layout.context = 2 does not divide model.sequence = 127"));
}

TEST_F(Mistakes, DataThatCannotBeDerivedIsAnError) {
  const auto found = errors({"cluster.nodes=3", "layout.tensor=4"}, {"layout.data"});
  EXPECT_THAT(found[0].message,
              HasSubstr("tensor 4 x context 1 x pipeline 2 = 8 ranks do not divide the cluster's 12 GPUs"));
  EXPECT_THAT(found[0].remedy, HasSubstr("change layout.tensor"));
}

TEST_F(Mistakes, HugeDegreesDoNotOverflow) {
  errors({"layout.tensor=1000000", "layout.context=1000000", "layout.pipeline=1000000", "layout.data=1000000"},
         {"layout.data", "layout.tensor", "layout.tensor", "layout.tensor", "layout.context", "layout.pipeline",
          "schedule.global_batch"});
}

TEST_F(Mistakes, AScheduleThatRefusesTheShapeSaysWhy) {
  const auto found = errors({"layout.chunks=2"}, {"schedule.name"});
  EXPECT_EQ(found[0].line, 18);
  EXPECT_THAT(found[0].message, HasSubstr("1f1b runs one stage per rank, not 2"));
  EXPECT_THAT(found[0].remedy, HasSubstr("set layout.chunks to 1"));
}

TEST_F(Mistakes, SlicesMustDivideTheSequence) { errors({"schedule.slices=3"}, {"schedule.slices"}); }

TEST_F(Mistakes, LearnedPositionsBoundTheSequence) {
  const auto found = errors({"model={family: gpt, layers: 8, hidden: 64, heads: 8, vocab: 256, sequence: "
                             "128, max_positions: 64}"},
                            {"model.sequence"});
  EXPECT_THAT(found[0].message, HasSubstr("longer than the position table with 64 rows"));
}

TEST_F(Mistakes, ProductsBeyond64BitsAreNoCounts) {
  const auto found =
      errors({"model.sequence=100000000", "schedule.micro_batch=1000000000", "schedule.global_batch=8000000000"},
             {"schedule.micro_batch"});
  EXPECT_THAT(found[0].message, HasSubstr("micro_batch 1000000000 x model.sequence 100000000 x 256"));
  EXPECT_THAT(found[0].message, HasSubstr("products up to 9e16"));
}

TEST_F(Mistakes, AnOverrideIsNamedByItsText) {
  const auto found = errors({"layout.tensor=two"}, {"layout.tensor"});
  EXPECT_EQ(found[0].file, "--set layout.tensor=two");
  EXPECT_EQ(found[0].line, 0);
  EXPECT_THAT(describe(found),
              testing::StartsWith("--set layout.tensor=two: layout.tensor: 'two' is not a whole number"));
}

TEST_F(Mistakes, OverridesThatAreNoneAreErrors) {
  EXPECT_THAT(errors({"layout.tensor"}, {"layout.tensor"})[0].message, HasSubstr("not key=value"));
  EXPECT_THAT(errors({"=4"}, {""})[0].message, HasSubstr("not key=value"));
  EXPECT_THAT(errors({"layout..tensor=4"}, {"layout..tensor"})[0].message, HasSubstr("not key=value"));
  EXPECT_THAT(errors({"layout.tensor.x=4"}, {"layout.tensor.x"})[0].message, HasSubstr("plain value"));
  EXPECT_THAT(errors({"layout.tensro=4"}, {"layout.tensro"})[0].remedy, HasSubstr("did you mean 'tensor'?"));
  EXPECT_THAT(errors({"layout.split=[3, "}, {"layout.split"})[0].message, HasSubstr("not valid YAML"));
  const std::string groups =
      "cluster={groups: [{machine: " + (folder.path() / "box.yaml").string() + ", nodes: 2, gpus_per_node: 4}]}";
  EXPECT_THAT(errors({groups, "cluster.groups.1.nodes=2"}, {"cluster.groups.1.nodes"})[0].message,
              HasSubstr("'1' is no item of cluster.groups"));
}

TEST_F(Mistakes, AllOfAFileAreReportedAtOnce) {
  const auto found = errors(
      {"layout.tensr=2", "schedule.global_batch=17", "run.lr=fast", "model.vocab=257", "layout.zero=9",
       "cluster.price_per_gpu_hour=cheap", "run.data=nowhere.txt"},
      {"layout.tensr", "schedule.global_batch", "run.lr", "layout.zero", "cluster.price_per_gpu_hour", "run.data"});
  EXPECT_EQ(found.size(), 6U);
}

TEST_F(Mistakes, ErrorsInsideAMachineProfileNameThatFileAndLine) {
  folder.write("box.yaml", "name: box\nmemory_bytes: 16 GB\npeak_flops: {bfloat16: fast}\nmemory_bandwidht: 1 GB/s\n");
  const auto found = errors({}, {"peak_flops.bfloat16", "memory_bandwidht"});
  EXPECT_EQ(found[0].file, (folder.path() / "box.yaml").string());
  EXPECT_EQ(found[0].line, 3);
  EXPECT_EQ(found[1].line, 4);
  EXPECT_THAT(found[1].remedy, HasSubstr("did you mean 'memory_bandwidth'?"));
}

TEST_F(Mistakes, RanksWithoutANetworkAreNamed) {
  folder.write("box.yaml",
               "name: box\nmemory_bytes: 16 GB\npeak_flops: {bfloat16: 1e12}\nmemory_bandwidth: 1 GB/s\n"
               "node_link: {bandwidth: 1 GB/s, latency: 1 us}\n");
  const auto found = errors({}, {"cluster.fabrics"});
  EXPECT_THAT(found[0].message, HasSubstr("ranks 0 and 4 of a pipeline group have no common fabric"));
  EXPECT_THAT(found[0].remedy, HasSubstr("network_link"));
}

TEST(UnreadableScenario, IsOneErrorThatNamesThePath) {
  for (const char* path : {"/nowhere/s.yaml", "/tmp"}) {
    const LoadResult result = load_scenario(path, {"layout.tensor=2"});
    ASSERT_EQ(result.errors.size(), 1U);
    EXPECT_EQ(result.errors[0].file, path);
    EXPECT_THAT(result.errors[0].message, HasSubstr("cannot read"));
  }
}

TEST_F(Mistakes, YamlSyntaxIsOneErrorWithItsLine) {
  const LoadResult result = folder.load("model: gpt2\nlayout: {tensor: 1\nrun: 3\n");
  ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
  EXPECT_GE(result.errors[0].line, 2);
}

TEST_F(Mistakes, ScalarsAndListsAreNoScenario) {
  for (const char* text : {"just words\n", "[1, 2]\n"}) {
    const LoadResult result = folder.load(text);
    ASSERT_EQ(result.errors.size(), 1U) << describe(result.errors);
    EXPECT_THAT(result.errors[0].message, HasSubstr("is not a map"));
  }
}

TEST_F(Mistakes, WriteNothing) {
  errors({"layout.tensor=two"}, {"layout.tensor"});
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    files.insert(entry.path().filename().string());
  EXPECT_EQ(files, (std::set<std::string>{"box.yaml", "s.yaml"}));
}

}  // namespace
}  // namespace slipway::test
