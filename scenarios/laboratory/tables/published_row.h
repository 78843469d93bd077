// One published run: its scenario, what was measured, and its place among other runs.
//
//   line of a table ──table.h──► PublishedRow ──price()──► RowPrice ──scores──► error, verdict, regret
//
// `table`, `group` and `choice` decide which rows the fit that predicts this row must not contain (validation.h).
// Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/memory/printed_memory.h"
#include "models/model/names.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

enum class RowStatus : std::uint8_t { ok, out_of_memory, infeasible, other };
inline constexpr std::array status_names{Named{RowStatus::ok, "ok"}, Named{RowStatus::out_of_memory, "oom"},
                                         Named{RowStatus::infeasible, "infeasible"}, Named{RowStatus::other, "other"}};
constexpr const char* name_of(RowStatus status) { return name_in(status_names, status); }

// The reason why a row takes no part in a time score. The first of several reasons counts. No rule reads a prediction.
enum class Exclusion : std::uint8_t {
  none,
  status,           // it did not end
  after_pp_fix,     // a version of the trainer before its pipeline was repaired
  all_reduce_test,  // the node's network was faulty, by the run's own test
  no_layout,        // its source gives no layout
  memory_only,      // its time says nothing of the model
  contradiction,    // its figures contradict each other, or need more than the GPU's peak
  superseded,       // a newer version is in the table, or its authors took it back
  unknown_recipe    // the table lacks what decides the time: recomputation, graphs, dispatcher
};
inline constexpr std::array exclusion_names{Named{Exclusion::none, "none"},
                                            Named{Exclusion::status, "status"},
                                            Named{Exclusion::after_pp_fix, "after_pp_fix"},
                                            Named{Exclusion::all_reduce_test, "all_reduce_test"},
                                            Named{Exclusion::no_layout, "no_layout"},
                                            Named{Exclusion::memory_only, "memory_only"},
                                            Named{Exclusion::contradiction, "contradiction"},
                                            Named{Exclusion::superseded, "superseded"},
                                            Named{Exclusion::unknown_recipe, "unknown_recipe"}};
constexpr const char* name_of(Exclusion rule) { return name_in(exclusion_names, rule); }

struct PublishedRow {
  int line = 0;  // in the file that was read
  // The run.
  std::string text;                          // the scenario as the table has it
  std::string model;                         // the name of a model that it gives by shapes; empty: its own
  std::shared_ptr<const Scenario> scenario;  // null: `unpriceable` says why
  std::map<std::string, std::string> keys;   // of the text, by path, also those that the language does not have
  std::string trainer, machine;              // by their names in the text, also where it is refused
  Step step;                                 // the scenario's
  std::vector<std::string> not_modelled;     // what the run has that no key says; part of `unpriceable`
  std::string unpriceable;                   // why no model can price it; empty: priceable
  std::string assumed;                       // what its source does not say and the scenario has; empty: nothing
  // The results.
  RowStatus status = RowStatus::other;
  double step_s = 0;                               // 0: not measured
  double allocated_bytes = 0, reserved_bytes = 0;  // after the step; peak of the allocator. 0: not measured
  double tflops_per_gpu = 0;                       // as published, by its authors' count of FLOPs; 0: not given
  double all_reduce_bytes_per_s = 0;               // measured by the run inside the node; 0: not measured
  // Where the trainer printed the two: how it allocates. They are then bytes of tensors on the last rank, after a step and
  // at most, and nothing of the allocator.
  std::optional<PrintedSettings> printed;
  std::string printed_text;
  std::set<Exclusion> excluded;  // by its table; status and all_reduce_test follow from the results
  // Its place.
  std::string table;   // rows among which a user would choose: same model, batch and GPUs
  std::string group;   // left out together: whole model, sequence length, ...
  std::string choice;  // left out together when a layout of `table` is recommended
  std::string study;   // rows that differ in one lever each; empty: none
  std::string source;  // of the row; empty: the table's
};

// Equal for runs of one layout: model, sequence, degrees and micro-batch, without kernels and recomputation. Rows of
// one layout are left out of a k-fold fit together.
std::string layout_key(const PublishedRow& row);
// The run in one line, for lists.
std::string in_words(const PublishedRow& row);
Exclusion exclusion_of(const PublishedRow& row);
// 0 without a scenario.
int gpus_of(const PublishedRow& row);
// Tokens of one step, and the MFU that the measured (or any) seconds mean: tokens·(6N + 12·L·h·s)/(gpus·peak·s). They
// require a row with a scenario.
double tokens_per_step(const PublishedRow& row);
double mfu_of(const PublishedRow& row, double seconds, double peak_flops);

}  // namespace slipway::scenarios
