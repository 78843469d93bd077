// MosaicML's LLM Foundry throughput tables: MPT models under FSDP on A100 and H100. `micro_batch` is per GPU,
// `global_batch` in sequences. Model shapes are those of the project's MPT configurations: 1.3b, 2.7b, 6.7b and 65b for
// the table's 1b, 3b, 7b and 70b. Learned positions, biases and a tied vocabulary of 50,368 give the table's parameter
// counts.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"

namespace slipway::scenarios {
namespace {

struct MptShape {
  const char* name;
  std::int64_t layers, hidden, heads;
};

constexpr MptShape mpt_1b{"1b", 24, 2048, 16}, mpt_3b{"3b", 32, 2560, 20}, mpt_7b{"7b", 32, 4096, 32},
    mpt_70b{"70b", 80, 8192, 64};
const std::map<std::string, MptShape, std::less<>> mpt_shapes = {{"125m", {"125m", 12, 768, 12}},
                                                                 {"350m", {"350m", 24, 1024, 16}},
                                                                 {"760m", {"760m", 24, 1536, 12}},
                                                                 {"1b", mpt_1b},
                                                                 {"1.3b", mpt_1b},
                                                                 {"3b", mpt_3b},
                                                                 {"2.7b", mpt_3b},
                                                                 {"7b", mpt_7b},
                                                                 {"6.7b", mpt_7b},
                                                                 {"13b", {"13b", 40, 5120, 40}},
                                                                 {"30b", {"30b", 48, 7168, 56}},
                                                                 {"70b", mpt_70b},
                                                                 {"65b", mpt_70b}};

// The sharding of FSDP. Hybrid: shards inside a node, replicas between nodes.
struct FsdpSharding {
  int zero = 0;
  bool inside_node = false;
};
const std::map<std::string, FsdpSharding, std::less<>> shardings = {{"FULL_SHARD", {3, false}},
                                                                    {"SHARD_GRAD_OP", {2, false}},
                                                                    {"NO_SHARD", {0, false}},
                                                                    {"HYBRID_SHARD", {3, true}},
                                                                    {"_HYBRID_SHARD_ZERO2", {2, true}}};

struct Precision {
  Dtype dtype = Dtype::bfloat16, gradients = Dtype::float32;
  bool fp8 = false;
};
const std::map<std::string, Precision, std::less<>> precisions = {
    {"bf16", {Dtype::bfloat16, Dtype::bfloat16, false}},  {"amp_bf16", {Dtype::bfloat16, Dtype::float32, false}},
    {"fp16", {Dtype::float16, Dtype::float16, false}},    {"amp_fp16", {Dtype::float16, Dtype::float32, false}},
    {"amp_fp8", {Dtype::bfloat16, Dtype::float32, true}}, {"fp32", {Dtype::float32, Dtype::float32, false}}};

}  // namespace

void read_llm_foundry(const Cells& cells, PublishedRow& row) {
  row.trainer = "llm-foundry";
  set_machine(row, cells, {"h100-80gb", "a100-80gb"});
  row.gpus = cells.count("gpus");
  const MptShape shape = cells.choice("model", plain_word(cells.text("model")), mpt_shapes);
  const std::int64_t sequence = cells.integer("seq");
  row.step.model = gpt(std::string("mpt-") + shape.name,
                       {shape.layers, shape.hidden, 4 * shape.hidden, shape.heads, 50368, sequence, sequence});
  row.step.micro_batch = cells.integer("micro_batch");
  row.step.kernels = Kernels::flash2;
  row.step.recompute = cells.flag("act_ckpt") ? Recompute::full : Recompute::none;
  if (!cells.empty("act_offload") && cells.flag("act_offload"))
    throw CellError("column act_offload: activations kept in the host's memory are outside what the formula prices");
  const FsdpSharding sharding = cells.choice("sharding", shardings);
  row.step.layout.zero = sharding.zero;
  if (sharding.inside_node && row.gpus > row.gpus_per_node) row.shard_group = row.gpus_per_node;
  const Precision precision = cells.choice("precision", precisions);
  row.step.dtype = precision.dtype, row.step.gradient_dtype = precision.gradients, row.fp8 = precision.fp8;
  row.group = row.choice = row.step.model->name + " on " + row.machine;
  row.table = fmt::format("{} at {} on {} {}", row.step.model->name, sequence, row.gpus, row.machine);
  const std::int64_t batch = cells.integer("global_batch");
  row.step_s = static_cast<double>(batch * sequence) / cells.number("tokens_per_s");
  set_batch(row, batch);
}

}  // namespace slipway::scenarios
