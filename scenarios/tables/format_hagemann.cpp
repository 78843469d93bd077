// Hagemann et al. 2023 (arXiv 2311.05610): Llama on A100-80GB, eight per node, trained with AA-Scaling (Megatron
// style): 4,194,304 tokens per step, AdamW in bf16 with ZeRO-1 and bf16 gradients, 1F1B.
// `recompute` every_layer is full recompute; selective covers attention only. A run without its kernel has neither time
// nor memory.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"

namespace slipway::scenarios {

void read_hagemann(const Cells& cells, PublishedRow& row) {
  constexpr std::int64_t tokens = 4194304;
  row.status = cells.status("ok", "oom");
  row.trainer = "aa-scaling";
  row.machine = "a100-80gb";
  row.gpus = cells.count("gpus");
  const std::int64_t sequence = cells.integer("seq_len");
  row.step.model = library_llama_of_128k(cells.text("model"), sequence);
  row.step.micro_batch = cells.integer("micro_batch");
  row.step.layout.tensor = cells.count("tensor");
  row.step.layout.sequence_parallel = cells.flag("sequence_parallel");
  row.step.layout.context = 1;
  std::string kernel = joined_words(cells.text("kernel"));
  if (const auto dashed = kernel.find("rms_norm"); dashed != std::string::npos) kernel.erase(dashed + 3, 1);
  if (kernel == "flash2(rmsnorm)") kernel = "flash2+rmsnorm";
  row.step.kernels = cells.choice<Kernels>("kernel", kernel,
                                           {{"torch", Kernels::torch},
                                            {"fused_softmax", Kernels::fused_softmax},
                                            {"flash1", Kernels::flash1},
                                            {"flash2", Kernels::flash2},
                                            {"flash2+rmsnorm", Kernels::flash2_rmsnorm}});
  row.step.layout.pipeline = cells.count("pipeline");
  row.step.layout.zero = 1;
  row.step.recompute = recompute_word(cells, Recompute::none);
  row.step.gradient_dtype = Dtype::bfloat16;
  if (row.status == RowStatus::ok) row.step_s = cells.number("step_time_s");
  row.group = fmt::format("{} at {}", row.step.model->name, sequence);
  row.table = row.choice = fmt::format("{} on {} GPUs", row.group, row.gpus);
  set_batch(row, tokens / sequence);
}

}  // namespace slipway::scenarios
