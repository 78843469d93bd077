// MosaicML's LLM Foundry throughput tables: MPT models under FSDP on A100 and H100. `micro_batch` is per
// GPU and `global_batch` in sequences. The shapes of the models are those of the project's MPT
// configurations; learned positions, biases and a tied vocabulary of 50,368 give the parameter counts that
// the table states.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/machine_names.h"

namespace slipway {
namespace {

struct MptShape {
  std::int64_t layers, hidden, heads;
};

const std::map<std::string, MptShape, std::less<>> mpt_shapes = {
    {"125m", {12, 768, 12}}, {"350m", {24, 1024, 16}}, {"760m", {24, 1536, 12}},
    {"1b", {24, 2048, 16}},  {"3b", {32, 2560, 20}},   {"7b", {32, 4096, 32}},
    {"13b", {40, 5120, 40}}, {"30b", {48, 7168, 56}},  {"70b", {80, 8192, 64}}};

}  // namespace

void read_llm_foundry(const Cells& cells, PublishedRow& row) {
  row.trainer = "llm-foundry";
  row.machine = machine_named("gpu", cells.text("gpu"));
  row.gpus = cells.count("gpus");
  const MptShape shape = cells.choice<MptShape>("model", mpt_shapes);
  const std::int64_t sequence = cells.integer("seq");
  row.model = gpt("mpt-" + cells.text("model"),
                  {shape.layers, shape.hidden, 4 * shape.hidden, shape.heads, 50368, sequence, sequence});
  row.shape.sequence = sequence;
  row.shape.micro_batch = cells.integer("micro_batch");
  row.shape.kernels = Kernels::flash2;
  row.recompute = cells.flag("act_ckpt") ? Recompute::full : Recompute::none;
  row.zero = cells.choice<int>("sharding", {{"FULL_SHARD", 3}, {"SHARD_GRAD_OP", 2}});
  row.gradient_dtype = cells.text("precision") == "bf16" ? Dtype::bfloat16 : Dtype::float32;
  row.group = row.choice = row.model.name + " on " + row.machine;
  row.table = fmt::format("{} at {} on {} {}", row.model.name, sequence, row.gpus, row.machine);
  const std::int64_t batch = cells.integer("global_batch");
  row.step_s = static_cast<double>(batch * sequence) / cells.number("tokens_per_s");
  set_batch(row, batch);
  row.fp8 = cells.text("precision") == "amp_fp8";
}

}  // namespace slipway
