// InternEvo's tests of InternLM-7B on A100 (InternLM/InternEvo doc/en/train_performance.md): tokens per second and GPU
// up to 1,024 GPUs. `zero1` GPUs share the optimizer's states (-1: all replicas), inside a node. A node has four ports
// of 100 Gb/s. The rows of its memory test have no times. Where samples are packed into one (`pack`), attention is
// still cut every `seq` tokens (cu_seqlens in internlm/data/tokenized/packed_dataset.py); else where samples end.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

// A port is 12.5 GB/s; large messages reach 0.9 of it, as the machine profiles assume of networks.
constexpr const char* four_ports =
    "[{scope: node}, {scope: cluster, name: roce, bandwidth: 11.25e9, gpus_per_port: 2}]";

// Copies of what ZeRO shards.
std::int64_t copies_of_shards(const Cells& cells, std::int64_t replicas) {
  if (cells.text("zero1") == "-1") return 1;
  const std::int64_t ranks = cells.integer("zero1");
  if (replicas % ranks != 0)
    throw CellError(fmt::format("column zero1: {} ranks do not divide {} replicas", ranks, replicas));
  return replicas / ranks;
}

}  // namespace

void read_internevo(const Cells& cells, PublishedRow& row) {
  row.gpus = cells.count("gpus");
  row.group = cells.text("model") + " on " + cells.text("gpu").substr(0, 4);
  row.choice = cells.text("model");
  row.table = fmt::format("{}, line {}", row.group, row.line);
  if (cells.empty("tokens_per_gpu_per_s")) {
    row.status = RowStatus::other;
    row.machine = "a800";
    row.unpriceable = "a test of memory on " + cells.text("gpu") + ", a GPU without a profile, and without a step time";
    return;
  }
  RunKeys keys;
  row.status = RowStatus::ok;
  row.machine = machine_named("gpu", cells.text("gpu"), {"a100-80gb"});
  set_model(keys, cells.text("model"));
  const std::int64_t sequence = cells.integer("seq"), tokens = cells.integer("global_tokens");
  row.step_s = static_cast<double>(tokens) / (row.gpus * cells.above_zero("tokens_per_gpu_per_s"));

  keys.set("cluster.trainer", "internevo");
  set_cluster(keys, row.machine, row.gpus);
  if (row.gpus > row.gpus_per_node) keys.set("cluster.fabrics", four_ports);
  const int tensor = cells.count("tp"), pipeline = cells.count("pp");
  set_layout(keys, {.tensor = tensor,
                    .pipeline = pipeline,
                    .full_shards = !cells.empty("fsdp") && cells.text("fsdp") == "yes",
                    .micro_batch = cells.integer("micro_bsz"),
                    .global_batch = tokens / sequence,
                    .sequence = sequence});
  keys.set("layout.sequence_parallel", "false");  // sequence_parallel=False, or tensor mode mtp: configs/7B_sft.py
  keys.set("layout.vocab_multiple", 0);
  keys.set("layout.replicate", copies_of_shards(cells, row.gpus / (std::int64_t{tensor} * pipeline)));
  set_precision(keys, "bf16");
  set_recompute(keys, cells.flag("activation_ckpt") ? "full" : "");
  if (!cells.flag("pack")) keys.assume("samples fill their sequences");
  set_scenario(row, keys);
}

}  // namespace slipway::scenarios
