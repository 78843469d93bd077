#include "scenarios/tables/tuned_micro_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "scenarios/tables/csv.h"
#include "scenarios/tables/price.h"

namespace slipway::scenarios {
namespace {

double book_seconds(const PublishedRow& row) {
  std::vector<double> priors;
  for (const StackConstant& constant : time_constants_of(row).constants) priors.push_back(constant.prior);
  return time_model_of(row.trainer)->seconds(work_of(row), priors);
}

// Bytes that a GPT layer keeps for one micro-batch: s·b·h·(10 + 24/t) + 5·a·b·s²/t. Sequence parallelism divides the 10
// by t too; selective recomputation drops the scores (Korthikanti et al. 2022, arXiv 2205.05198).
double layer_bytes(const StepWork& w, Recompute recompute) {
  const double M = w.b * w.s, norms = w.sequence_parallel ? 10 / w.t : 10;
  const double scores = recompute == Recompute::selective ? 0 : 5 * w.a * w.b * w.s * w.s / w.t;
  return M * w.h * (norms + 24 / w.t) + scores;
}

// The first stage: 18 bytes per parameter (weight 2, fp32 gradient 4, Adam 12), and the activations in flight: under
// full recomputation only inputs and one layer at work.
double peak_bytes(const StepWork& w) {
  constexpr double logit_bytes = 8, library_bytes = 1e9;  // fp32 logits and their gradient; CUDA context and NCCL
  const double parameters = (fullest_layers(w) * layer_matrix_parameters(w) + w.V * w.h) / w.t;
  const double interleaved = w.chunks > 1 ? 1 + (w.p - 1) / (w.p * w.chunks) : 1;
  const double layers = std::min(w.p, w.m) * interleaved * fullest_layers(w);
  const double kept = w.recompute == Recompute::full ? layers * 2 * w.b * w.s * w.h + layer_bytes(w, Recompute::full)
                                                     : layers * layer_bytes(w, w.recompute);
  const double logits = w.p > 1 ? 0 : logit_bytes * w.b * w.s * w.V / w.t;
  return 18 * parameters + kept + logits + library_bytes;
}

bool fits(const PublishedRow& row) {
  constexpr double usable_share = 0.99;  // what the driver leaves
  return peak_bytes(work_of(row)) <= usable_share * machine_of(row).memory_bytes;
}

}  // namespace

void set_tuned_micro_batch(PublishedRow& row, std::int64_t global_batch, WithMicroBatch set) {
  std::optional<PublishedRow> best;
  double seconds = 0;
  std::string why;
  for (const std::int64_t micro_batch : {1, 2, 4, 8, 16}) {
    PublishedRow tried = row;
    try {
      set(tried, micro_batch, global_batch);
      if (tried.step.global_batch != global_batch) continue;
      if (best && !fits(tried)) continue;
      const double own = book_seconds(tried);
      if (best && own >= seconds) continue;
      best = tried, seconds = own;
    } catch (const std::exception& error) {
      if (why.empty()) why = error.what();
    }
  }
  if (!best) throw CellError(why.empty() ? "no micro-batch of 1 to 16 divides the global batch" : why);
  row = *best;
  assume(row, fmt::format("micro-batch {}: of 1 to 16 the fastest that fits, by book values", row.step.micro_batch));
}

}  // namespace slipway::scenarios
