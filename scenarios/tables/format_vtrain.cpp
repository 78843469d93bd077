// vTrain (MICRO 2024): small GPTs on one node of eight A100-SXM-80GB (the paper, validation set-up), trained with Megatron-DeepSpeed: full recompute, 1F1B, plain
// attention. The table has no vocabulary; 51,200, tied, is assumed (GPT-2's, padded by Megatron-LM for eight tensor
// ranks).
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"

namespace slipway::scenarios {

void read_vtrain(const Cells& cells, PublishedRow& row) {
  constexpr std::int64_t assumed_vocabulary = 51200;
  assume(row, fmt::format("tied vocabulary of {}", assumed_vocabulary));
  row.trainer = "megatron-deepspeed";
  row.machine = "a100-80gb";
  if (cells.empty("gpu"))
    assume(row, "gpu is a100-80gb");
  else
    set_machine(row, cells, {"a100-80gb"});
  row.gpus = cells.count("gpus");
  const std::int64_t hidden = cells.integer("hidden"), layers = cells.integer("layers"), s = cells.integer("seq");
  row.step.model = gpt(fmt::format("gpt-{}x{}", layers, hidden),
                       {layers, hidden, 4 * hidden, cells.integer("heads"), assumed_vocabulary, s, s});
  row.step.micro_batch = cells.integer("micro_batch");
  row.step.layout.tensor = cells.count("tp");
  row.step.layout.sequence_parallel = false;
  row.step.layout.context = 1;
  row.step.kernels = Kernels::fused_softmax;  // Megatron-DeepSpeed's FusedScaleMaskSoftmax
  row.step.layout.pipeline = cells.count("pp");
  row.step.recompute = recompute_word(cells, Recompute::full);  // "full (use_checkpoint=true ...)"
  row.step.dtype = row.step.gradient_dtype = Dtype::float16;
  row.step_s = cells.number("iter_ms") / 1e3;
  const std::int64_t batch = cells.integer("global_batch");
  row.group = row.choice = row.step.model->name;
  row.table = fmt::format("{} on {} GPUs, batch {}", row.step.model->name, row.gpus, batch);
  set_batch(row, batch);
  if (row.step.layout.data != cells.count("dp")) throw CellError("column dp does not match gpus / (tp x pp)");
}

}  // namespace slipway::scenarios
