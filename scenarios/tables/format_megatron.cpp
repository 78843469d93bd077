// Two tables of Megatron-LM.
// Narayanan et al. 2021 (arXiv 2104.04473, table 1): GPTs of 1.7B to 1T on A100-80GB with full recompute. The paper's
// table lacks micro-batch and chunks; its authors' script has them (examples/sc21/run_table_1.sh of NVIDIA/Megatron-LM).
// A row without them is refused: both change a step by 10 to 20 %. Their TFLOP/s count 96·B·s·L·h²·(1 + s/(6h) +
// V/(16Lh)), vocabulary 51,200, of which a quarter of the layers' part is recomputation. A row without recomputation
// counts 72·B·s·L·h²·(1 + s/(6h) + V/(12Lh)), without recomputed attention as well (Korthikanti et al. 2022, arXiv
// 2205.05198).
// The project's weak scaling of tensor and data parallelism (2021): DGX-2 (V100) and DGX A100, sequence 1024, in
// milliseconds.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"

namespace slipway::scenarios {
namespace {

constexpr std::int64_t vocabulary = 51200;

void read_gpt(const Cells& cells, std::int64_t sequence, PublishedRow& row) {
  const std::int64_t hidden = cells.integer("hidden"), layers = cells.integer("layers");
  row.trainer = "megatron-lm";
  row.gpus = cells.count("gpus");
  row.step.model = gpt(fmt::format("gpt-{}x{}", layers, hidden),
                       {layers, hidden, 4 * hidden, cells.integer("heads"), vocabulary, sequence, sequence});
  row.step.layout.tensor = cells.count("tp");
  row.step.layout.sequence_parallel = false;
  row.step.layout.context = 1;
  row.step.kernels = Kernels::fused_softmax;
  row.step.recompute = Recompute::full;
  row.step.dtype = row.step.gradient_dtype = Dtype::float16;
}

double counted_flops(const PublishedRow& row, double sequences) {
  const double L = static_cast<double>(row.step.model->runs[1].count),
               s = static_cast<double>(row.step.model->sequence);
  const double h = static_cast<double>(row.step.model->runs[1].block.hidden), V = static_cast<double>(vocabulary);
  const double per_layer = row.step.recompute == Recompute::full ? 96 : 72;
  return sequences * s * h * (per_layer * L * h * (1 + s / (6 * h)) + 6 * V);
}

[[noreturn]] void refuse_without(const char* column) {
  throw CellError(fmt::format(
      "column {} is missing or empty; a step depends on it, and no value is assumed; add the authors' value "
      "(of Narayanan et al. 2021, table 1: examples/sc21/run_table_1.sh in Megatron-LM)",
      column));
}

// Without a pipeline there is one chunk. `interleave` is another name of the column.
int chunks_in(const Cells& cells, int pipeline) {
  for (const char* column : {"chunks", "interleave"})
    if (!cells.empty(column)) return cells.count(column);
  if (pipeline > 1) refuse_without("chunks");
  return 1;
}

}  // namespace

void read_megatron_scaling(const Cells& cells, PublishedRow& row) {
  const std::int64_t sequence = cells.integer("seq");
  read_gpt(cells, sequence, row);
  set_machine(row, cells, {"a100-80gb"});
  row.step.layout.pipeline = cells.count("pp");
  row.step.recompute = recompute_word(cells, Recompute::full);
  if (!cells.empty("sequence_parallel")) row.step.layout.sequence_parallel = cells.flag("sequence_parallel");
  const std::int64_t batch = cells.integer("global_batch");
  row.group = row.choice = row.table = row.step.model->name;
  if (cells.empty("micro_batch")) refuse_without("micro_batch");
  row.step.micro_batch = cells.integer("micro_batch");
  row.step.layout.chunks = chunks_in(cells, row.step.layout.pipeline);
  set_batch(row, batch);
  row.step_s = counted_flops(row, static_cast<double>(batch)) / (row.gpus * cells.number("tflops_per_gpu") * 1e12);
}

void read_megatron_tensor(const Cells& cells, PublishedRow& row) {
  constexpr std::int64_t sequence = 1024;
  read_gpt(cells, sequence, row);
  set_machine(row, cells, {"a100-40gb"});
  if (row.machine == "v100-32gb") row.gpus_per_node = 16;
  row.step_s = cells.number("iter_ms") / 1e3;
  row.group = row.choice = row.table = fmt::format("{} on {} {}", row.step.model->name, row.gpus, row.machine);
  const std::int64_t batch = cells.integer("global_batch");
  row.step.micro_batch = batch / cells.integer("dp");
  assume(row, fmt::format("one micro-batch of {}", row.step.micro_batch));  // without accumulation
  set_batch(row, batch);
}

}  // namespace slipway::scenarios
