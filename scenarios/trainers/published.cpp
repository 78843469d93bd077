// Published throughputs of arguments that import reads. A new one is one row.
#include <fmt/format.h>

#include "scenarios/trainers/published.h"

namespace slipway::scenarios {

namespace {

struct PublishedRow {
  std::string_view experiment;  // --wandb-exp-name of the recipe
  double tflops_per_gpu;
};

// NVIDIA/Megatron-LM@d48bd6be (branch dev) examples/moe_recipes/README.md.
constexpr std::string_view source = "NVIDIA/Megatron-LM@d48bd6be examples/moe_recipes/README.md";
const PublishedRow rows[] = {{"DeepSeek-V3-B200-MXFP8-TP1PP8EP32-GBS2048", 776.7},
                             {"DeepSeek-V3-GB200-MXFP8-TP1PP4EP64-GBS8192", 1127.6},
                             {"Qwen3-30B-GB200-BF16-TP1PP1EP16-GBS512", 528},
                             {"Qwen3-30B-GB200-MXFP8-PagedStash-TP1PP1EP16-GBS512", 646.8},
                             {"Qwen3-30B-GB200-MXFP8-PartialCG-TP1PP1EP16-GBS512", 514},
                             {"Qwen3-30B-TP1PP1EP8-GBS256", 234.1},
                             {"Qwen3-30B-FP8-PartialCG-TP1PP1EP8-GBS256", 232.4}};

}  // namespace

std::optional<PublishedRun> published_run(const Reading& reading) {
  const Argument* name = reading.find("wandb-exp-name");
  if (name == nullptr || name->values.empty()) return std::nullopt;
  for (const PublishedRow& row : rows)
    if (name->values[0] == row.experiment) return PublishedRun{row.tflops_per_gpu, std::string(source)};
  return std::nullopt;
}

}  // namespace slipway::scenarios
