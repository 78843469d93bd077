// One run that somebody measured: what was run, on what, how it was laid out, and what came out of it.
//
//   line of a table ──reader──► PublishedRow ──price()──► RowPrice ──scores──► error, verdict, regret
//
// Every reader makes rows of this one shape, so that pricing and scoring do not know whose table it was.
// `table`, `group` and `choice` say what may not be in the fit that predicts this row (validation.h).
// Guarded by tests/scenarios/tables_test.cpp: step seconds of known rows by each paper's own FLOP formula.
#pragma once

#include <string>

#include "models/model/model.h"
#include "models/model/names.h"
#include "models/model/sharding.h"

namespace slipway::scenarios {

enum class RowStatus : std::uint8_t { ok, out_of_memory, infeasible, other };
inline constexpr std::array status_names{Named{RowStatus::ok, "ok"}, Named{RowStatus::out_of_memory, "oom"},
                                         Named{RowStatus::infeasible, "infeasible"}, Named{RowStatus::other, "other"}};
constexpr const char* name_of(RowStatus status) { return name_in(status_names, status); }

// Why a row takes no part in a time score: rules that do not look at any prediction.
enum class Exclusion : std::uint8_t { none, status, after_pp_fix, all_reduce_test };
inline constexpr std::array exclusion_names{Named{Exclusion::none, "none"}, Named{Exclusion::status, "status"},
                                            Named{Exclusion::after_pp_fix, "after_pp_fix"},
                                            Named{Exclusion::all_reduce_test, "all_reduce_test"}};
constexpr const char* name_of(Exclusion rule) { return name_in(exclusion_names, rule); }

struct PublishedRow {
  int line = 0;         // in the file that was read
  std::string trainer;  // "aa-scaling", "megatron-core", ...: name of a stack profile
  std::string machine;  // machine profile: "a100-80gb"
  int gpus = 0, gpus_per_node = 8;
  Model model;  // sequence included
  // Layout.
  WorkShape shape;  // micro-batch, sequence, tensor, sequence parallel, context, kernels
  int pipeline = 1, data = 1, chunks = 1, zero = 0;
  std::int64_t micro_batches = 1;  // per pipeline and step
  Recompute recompute = Recompute::none;
  Dtype gradient_dtype = Dtype::float32;
  bool fp8 = false;     // products of the layers in fp8, the rest as the dtype says
  int shard_group = 0;  // GPUs that share one set of shards (ZeRO 1 to 3); others hold the same. 0: all replicas
  // What came out.
  RowStatus status = RowStatus::other;
  double step_s = 0;                               // 0: not measured
  double allocated_bytes = 0, reserved_bytes = 0;  // after the step; peak of the allocator. 0: not measured
  // About the run.
  bool fixed_pipeline = true;         // false: a version of the trainer before its pipeline was repaired
  double all_reduce_bytes_per_s = 0;  // the run's own test inside the node; 0: not made
  std::string unpriceable;            // why no model can price it; empty: it can be tried
  std::string assumed;                // what its reader took for what the table does not tell; empty: nothing
  // Keys.
  std::string table;   // rows among which a user would choose: same model, batch and GPUs
  std::string group;   // left out together: whole model, sequence length, ...
  std::string choice;  // left out together when a layout of `table` is to be recommended
};

// What makes two rows runs of one layout, kernels and recomputation aside: model, sequence, degrees,
// micro-batch. Rows of one layout are left out of a k-fold fit together.
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
