// One published run: model, machine, layout and measured results.
//
//   line of a table ──reader──► PublishedRow ──price()──► RowPrice ──scores──► error, verdict, regret
//
// All readers make rows of this one shape, so pricing and scoring do not depend on the table. `table`, `group` and
// `choice` decide which rows the fit that predicts this row must not contain (validation.h).
// Guarded by tests/scenarios/tables_test.cpp: step seconds of known rows by each paper's own FLOP formula.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/memory/printed_memory.h"
#include "models/model/names.h"
#include "schedules/step/step.h"

namespace slipway::scenarios {

struct Scenario;

enum class RowStatus : std::uint8_t { ok, out_of_memory, infeasible, other };
inline constexpr std::array status_names{Named{RowStatus::ok, "ok"}, Named{RowStatus::out_of_memory, "oom"},
                                         Named{RowStatus::infeasible, "infeasible"}, Named{RowStatus::other, "other"}};
constexpr const char* name_of(RowStatus status) { return name_in(status_names, status); }

// The reason why a row takes no part in a time score. No rule looks at a prediction.
enum class Exclusion : std::uint8_t {
  none,
  status,
  after_pp_fix,
  all_reduce_test,
  no_layout,
  memory_only,
  superseded,
  unknown_recipe,
  contradiction
};
inline constexpr std::array exclusion_names{Named{Exclusion::none, "none"},
                                            Named{Exclusion::status, "status"},
                                            Named{Exclusion::after_pp_fix, "after_pp_fix"},
                                            Named{Exclusion::all_reduce_test, "all_reduce_test"},
                                            Named{Exclusion::no_layout, "no_layout"},
                                            Named{Exclusion::memory_only, "memory_only"},
                                            Named{Exclusion::superseded, "superseded"},
                                            Named{Exclusion::unknown_recipe, "unknown_recipe"},
                                            Named{Exclusion::contradiction, "contradiction"}};
constexpr const char* name_of(Exclusion rule) { return name_in(exclusion_names, rule); }

struct PublishedRow {
  int line = 0;         // in the file that was read
  std::string trainer;  // "aa-scaling", "megatron-core", ...: a file of models/trainers
  std::string machine;  // machine profile: "a100-80gb"
  int gpus = 0, gpus_per_node = 8;
  int gpus_per_port = 1;  // of a node that share a port to the other nodes
  // As the table has it. Schedule, split and exchange of keys follow from the trainer (priced_run.h).
  Step step;
  bool fp8 = false;  // layer products in fp8, the rest in dtype
  // The whole run in the keys of the language, where a table says more than the fields here (run_keys.h). Then it alone
  // is priced. Null: it follows from the fields and the trainer.
  std::shared_ptr<const Scenario> scenario;
  int shard_group = 0;  // GPUs that share one set of shards (ZeRO 1 to 3); other groups hold the same. 0: all replicas
  // The results.
  RowStatus status = RowStatus::other;
  double step_s = 0;                               // 0: not measured
  double allocated_bytes = 0, reserved_bytes = 0;  // after the step; peak of the allocator. 0: not measured
  double tflops_per_gpu = 0;                       // as published, by its authors' count of FLOPs; 0: not given
  // Where the trainer printed the two: how it allocates. They are then bytes of tensors on the last rank, after a step and
  // at most, and nothing of the allocator.
  std::optional<PrintedSettings> printed;
  // About the run.
  bool fixed_pipeline = true;         // false: a version of the trainer before its pipeline was repaired
  double all_reduce_bytes_per_s = 0;  // measured by the run inside the node; 0: not measured
  // The keys by which it was read, also those that the language does not have (run_keys.h). Rows of one `study` differ in
  // nothing else, so that two of them show what a lever does; empty: no such study.
  std::map<std::string, std::string> keys;
  std::string study;
  // A run that its authors measured again later: `version` orders those of one `version_of`. Empty: no other version.
  std::string version_of, version;
  bool no_layout = false;                 // its source gives no layout
  bool memory_only = false;               // its time says nothing of the model
  bool superseded = false;                // a newer version is in the table, or its authors took it back
  bool unknown_recipe = false;            // the table lacks what decides the time: recomputation, graphs, dispatcher
  bool contradiction = false;             // its figures contradict each other, or need more than the GPU's peak
  std::vector<std::string> not_modelled;  // what the run has that no key says; part of `unpriceable`
  std::string unpriceable;                // why no model can price it; empty: priceable
  std::string assumed;                    // values that the reader assumed because the table lacks them; empty: none
  // Keys.
  std::string table;   // rows among which a user would choose: same model, batch and GPUs
  std::string group;   // left out together: whole model, sequence length, ...
  std::string choice;  // left out together when a layout of `table` is recommended
};

// Equal for runs of one layout: model, sequence, degrees and micro-batch, without kernels and recomputation. Rows of
// one layout are left out of a k-fold fit together.
std::string layout_key(const PublishedRow& row);
void assume(PublishedRow& row, const std::string& what);
// The run in one line, for lists.
std::string in_words(const PublishedRow& row);
Exclusion exclusion_of(const PublishedRow& row);
// Tokens of one step, and the MFU that the measured (or any) seconds mean: tokens·(6N +
// 12·L·h·s)/(gpus·peak·s).
double tokens_per_step(const PublishedRow& row);
double mfu_of(const PublishedRow& row, double seconds, double peak_flops);

}  // namespace slipway::scenarios
