// Two tables of Megatron-LM. Narayanan et al. 2021 (arXiv 2104.04473, table 1): GPTs of 1.7B to 1T on
// A100-80GB with full recompute, interleaved where pipeline > 1; micro-batch and chunks are not in the
// table and assumed. Their TFLOP/s count 96·B·s·L·h²·(1 + s/(6h) + V/(16Lh)), vocabulary 51,200. And the
// project's weak scaling of tensor and data parallelism (2021) on DGX-2 (V100) and DGX A100, sequence 1024,
// in milliseconds.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/machine_names.h"

namespace slipway {
namespace {

constexpr std::int64_t vocabulary = 51200;

void read_gpt(const Cells& cells, std::int64_t sequence, PublishedRow& row) {
  const std::int64_t hidden = cells.integer("hidden"), layers = cells.integer("layers");
  row.trainer = "megatron-lm";
  row.gpus = cells.count("gpus");
  row.model = gpt(fmt::format("gpt-{}x{}", layers, hidden),
                  {layers, hidden, 4 * hidden, cells.integer("heads"), vocabulary, sequence, sequence});
  row.shape.sequence = sequence;
  row.shape.sharding = {cells.count("tp"), false, 1};
  row.shape.kernels = Kernels::fused_softmax;
  row.recompute = Recompute::full;
  row.shape.dtype = row.gradient_dtype = Dtype::float16;
}

// Smallest divisor above 1; 1 where there is none.
int fewest_chunks(std::int64_t layers_of_stage) {
  for (int chunks = 2; chunks <= layers_of_stage; ++chunks)
    if (layers_of_stage % chunks == 0) return chunks;
  return 1;
}

}  // namespace

void read_megatron_scaling(const Cells& cells, PublishedRow& row) {
  const std::int64_t sequence = cells.integer("seq");
  read_gpt(cells, sequence, row);
  row.machine = machine_named("gpu", cells.text("gpu"), "a100-80gb");
  row.pipeline = cells.count("pp");
  row.shape.micro_batch = 1;
  const std::int64_t batch = cells.integer("global_batch");
  const Block& layer = row.model.runs[1].block;
  const double L = static_cast<double>(row.model.runs[1].count), h = static_cast<double>(layer.hidden);
  const double s = static_cast<double>(sequence), V = static_cast<double>(vocabulary);
  const double flops =
      96 * static_cast<double>(batch) * s * L * h * h * (1 + s / (6 * h) + V / (16 * L * h));
  row.step_s = flops / (row.gpus * cells.number("tflops_per_gpu") * 1e12);
  row.group = row.choice = row.table = row.model.name;
  // Not in the table, assumed: one sequence per micro-batch, the fewest chunks that divide a stage's
  // layers.
  if (row.pipeline > 1) row.chunks = fewest_chunks(row.model.runs[1].count / row.pipeline);
  set_batch(row, batch);
}

void read_megatron_tensor(const Cells& cells, PublishedRow& row) {
  constexpr std::int64_t sequence = 1024;
  read_gpt(cells, sequence, row);
  row.machine = machine_named("gpu", cells.text("gpu"), "a100-40gb");
  if (row.machine == "v100-32gb") row.gpus_per_node = 16;
  row.step_s = cells.number("iter_ms") / 1e3;
  row.group = row.choice = row.table = fmt::format("{} on {} {}", row.model.name, row.gpus, row.machine);
  const std::int64_t batch = cells.integer("global_batch");
  row.shape.micro_batch = batch / cells.integer("dp");  // one micro-batch a step, without accumulation
  set_batch(row, batch);
}

}  // namespace slipway
