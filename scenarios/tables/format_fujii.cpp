// Fujii et al. 2024 (arXiv 2411.06465): Llama-3.1-8B on TSUBAME4.0 (H100-94GB, four per node) and a cluster of
// A100-40GB. Trained with Megatron-Core: FlashAttention 2, fused RMSNorm, sequence parallel, distributed optimizer,
// fp32 gradients. `dash` did not run: out of memory, or more ranks than GPUs. TFLOP/s per GPU count
//
//   12·B·s·L·h²·[1 + k/a + s/h + 1.5·f/h + V/(2Lh)]   per iteration
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"

namespace slipway::scenarios {
namespace {

double paper_flops(const Model& model, double sequences) {
  const Block& layer = model.runs[1].block;
  const double L = static_cast<double>(model.runs[1].count), h = static_cast<double>(layer.hidden);
  const double s = static_cast<double>(model.sequence), V = static_cast<double>(model.runs[0].block.vocab);
  const double kv_share = static_cast<double>(layer.kv_heads) / static_cast<double>(layer.heads);
  return 12 * sequences * s * L * h * h *
         (1 + kv_share + s / h + 1.5 * static_cast<double>(layer.ffn) / h + V / (2 * L * h));
}

}  // namespace

void read_fujii(const Cells& cells, PublishedRow& row) {
  row.status = cells.status("ok", "dash");
  row.trainer = "megatron-core";
  set_machine(row, cells, {"h100-94gb", "a100-40gb"});
  row.gpus = cells.count("gpus");
  const int usual = row.machine == "h100-94gb" ? 4 : 8;
  row.gpus_per_node = cells.empty("gpus_per_node") ? usual : cells.count("gpus_per_node");
  row.step.model = library_llama(cells.text("model"), cells.integer("seq_len"));
  row.step.micro_batch = cells.integer("micro_batch");
  row.step.layout.tensor = cells.count("tensor");
  row.step.layout.sequence_parallel = true;
  row.step.layout.context = cells.count("context");
  row.step.layout.pipeline = cells.count("pipeline");
  row.step.layout.zero = 1;
  const std::int64_t batch = cells.integer("global_batch");
  const Layout& cut = row.step.layout;
  row.group = fmt::format("t{} c{} p{} on {}", cut.tensor, cut.context, row.step.layout.pipeline, row.machine);
  row.table = row.choice = fmt::format("{} on {} {}", row.step.model->name, row.gpus, row.machine);
  if (row.status == RowStatus::ok)
    row.step_s =
        paper_flops(row.step.model, static_cast<double>(batch)) / (row.gpus * cells.number("tflops_per_gpu") * 1e12);
  set_batch(row, batch);
}

}  // namespace slipway::scenarios
