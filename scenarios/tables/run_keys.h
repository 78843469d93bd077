// A published run in the keys of a scenario: how tables of today's trainers are read.
//
//   row of a table ──reader──► RunKeys (layout.expert = 64, run.fp8 = mxfp8, ...) ──set_scenario──► PublishedRow
//                                 └──► what no key can say: refused, by name
//
// The keys are those of the language (scenarios/language/keys.h). A row may name one that this version does not have,
// and is then refused with the effect's name; it needs no change when the key arrives (as in scenarios/import/row.h).
// Guarded by tests/scenarios/current_tables_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

class Cells;

class RunKeys {
 public:
  // `effect`: what the run has, in the field's words, for the refusal of a key or a value that is not there.
  void set(const std::string& key, const std::string& value, std::string_view effect = {});
  void set(const std::string& key, std::int64_t value, std::string_view effect = {});
  // What no key says: the row cannot be priced.
  void refuse(const std::string& effect);
  // What the table does not say and the reader takes for it.
  void assume(const std::string& what);

  const std::map<std::string, std::string>& values() const { return values_; }
  // These and those that were refused.
  const std::map<std::string, std::string>& wanted() const { return wanted_; }
  const std::vector<std::string>& refused() const { return refused_; }
  const std::string& assumed() const { return assumed_; }

 private:
  std::map<std::string, std::string> values_, wanted_;
  std::vector<std::string> refused_;  // each once
  std::string assumed_;
};

// Loads the keys. Sets `scenario` and what follows from it: step, machine, GPUs; or `unpriceable`.
void set_scenario(PublishedRow& row, const RunKeys& keys);
// The same of a scenario's text.
void set_scenario(PublishedRow& row, const std::string& yaml);

// A model by a name of today's trainers: "DeepSeekV3", "Qwen/Qwen3-30B-A3B". Sets model.name, or refuses by what it
// has that is not modelled. Returns its plain name, for groups: "deepseek-v3".
std::string set_model(RunKeys& keys, const std::string& written);
// Of the model that was set; 0: unknown.
std::int64_t kv_heads_of(const RunKeys& keys);
// Degrees of a layout, and its batch in sequences. `full_shards`: weights and gradients are divided among replicas too
// (FSDP); else the optimizer alone (Megatron's distributed optimizer).
struct RunLayout {
  int tensor = 1, context = 1, pipeline = 1, chunks = 1;
  bool full_shards = false;
  std::int64_t micro_batch = 1, global_batch = 1, sequence = 0;
};
void set_layout(RunKeys& keys, const RunLayout& layout);
// Experts: degrees (0: not given), and the dispatcher in any trainer's words ("DeepEP over UCCL/EFA").
void set_experts(RunKeys& keys, int expert, int expert_tensor, const std::string& dispatcher);
// Dispatch and combine of one micro-batch run beside the pass of another (--overlap-moe-expert-parallel-comm), where the row
// says so. After set_layout, which names the schedule otherwise.
void set_merged(RunKeys& keys);
constexpr std::string_view lora = "LoRA",
                           packed = "several samples packed into a sequence, which do not attend to each other";
// Marks a row whose source leaves out what decides its time; true then.
bool lacks(PublishedRow& row, const Cells& cells, const std::vector<std::string_view>& columns);
// A degree of a table: "n/a", "NA", "None", 0 and nothing are 1.
int degree(const Cells& cells, std::string_view column);
// The pipeline of DeepSeek-V3 in NVIDIA's recipes, whose 61 layers no number of stages divides. Other models: nothing.
void set_pipeline(RunKeys& keys, const std::string& model, int pipeline, int chunks);
// Machine, GPUs and the nodes that they fill.
void set_cluster(RunKeys& keys, const std::string& machine, int gpus, int gpus_per_node = 8);
// Modules that are computed again in the backward pass, in Megatron's words and any order; empty: none.
void set_recompute(RunKeys& keys, const std::string& modules);
// The same as NVIDIA's recipes of Megatron-Bridge have it for this model, where a row does not say its recipe.
void set_usual_recompute(RunKeys& keys, const std::string& model, const std::string& machine,
                         const std::string& precision);
// Adam's moments with 16 bits where those recipes have them.
void set_usual_moments(RunKeys& keys, const std::string& model);
// LoRA: rank, and Linears with an adapter; empty: all. `assumed`: what of them the table lacks, and its source.
void set_lora(RunKeys& keys, std::int64_t rank, const std::string& modules, const std::string& assumed);
// CUDA graphs by Megatron's --cuda-graph-impl and --cuda-graph-scope.
void set_graphs(RunKeys& keys, const std::string& implementation, const std::string& scope);
// "FP8-MX", "mxfp8", "FP8_CS", "BF16", "NVFP4": run.fp8.
void set_precision(RunKeys& keys, const std::string& written);

}  // namespace slipway::scenarios
