#include "scenarios/tables/published_row.h"

#include <fmt/format.h>

namespace slipway::scenarios {
namespace {

// Below it the node's network was faulty: healthy nodes of Hugging Face's runs show 400 to 480 GB/s.
constexpr double healthy_all_reduce = 300e9;

}  // namespace

std::string layout_key(const PublishedRow& row) {
  const Layout& cut = row.step.layout;
  return fmt::format("{} s{} on {}: t{} c{} p{} d{} b{}", row.step.model->name, row.step.model->sequence, row.machine,
                     cut.tensor, cut.context, row.step.layout.pipeline, row.step.layout.data, row.step.micro_batch);
}

void assume(PublishedRow& row, const std::string& what) { row.assumed += (row.assumed.empty() ? "" : "; ") + what; }

std::string in_words(const PublishedRow& row) {
  if (row.step.model->runs.empty()) return row.group;  // no model: refused
  const Layout& cut = row.step.layout;
  std::string text = fmt::format("{} s{}, {} GPUs: t{}{}", row.step.model->name, row.step.model->sequence, row.gpus,
                                 cut.tensor, cut.sequence_parallel && cut.tensor > 1 ? "+sp" : "");
  if (cut.context > 1) text += fmt::format(" c{}", cut.context);
  text += fmt::format(" p{} d{} b{}", row.step.layout.pipeline, row.step.layout.data, row.step.micro_batch);
  // Of a row that was read in part, the batch may still be missing.
  const std::int64_t at_once = row.step.micro_batch * row.step.layout.data;
  if (at_once > 0 && row.step.global_batch % at_once == 0) text += fmt::format(" m{}", micro_batches_of(row.step));
  text += fmt::format(" zero{}", row.step.layout.zero);
  if (cut.expert > 1) text += fmt::format(" e{}", cut.expert);
  if (cut.chunks > 1) text += fmt::format(" v{}", cut.chunks);
  if (row.step.narrow != NarrowRecipe::none) text += fmt::format(" {}", name_of(row.step.narrow));
  return text + ' ' + name_of(row.step.kernels) +
         (row.step.recompute == Recompute::full        ? ", recompute"
          : row.step.recompute == Recompute::selective ? ", selective recompute"
                                                       : "");
}

Exclusion exclusion_of(const PublishedRow& row) {
  if (row.status != RowStatus::ok) return Exclusion::status;
  if (!row.fixed_pipeline) return Exclusion::after_pp_fix;
  if (row.all_reduce_bytes_per_s > 0 && row.all_reduce_bytes_per_s < healthy_all_reduce)
    return Exclusion::all_reduce_test;
  if (row.no_layout) return Exclusion::no_layout;
  if (row.memory_only) return Exclusion::memory_only;
  if (row.contradiction) return Exclusion::contradiction;
  if (row.superseded) return Exclusion::superseded;
  if (row.unknown_recipe) return Exclusion::unknown_recipe;
  return Exclusion::none;
}

double tokens_per_step(const PublishedRow& row) {
  return static_cast<double>(row.step.global_batch * row.step.model->sequence);
}

double mfu_of(const PublishedRow& row, double seconds, double peak_flops) {
  return tokens_per_step(row) * mfu_flops_per_token(row.step.model) / (row.gpus * peak_flops * seconds);
}

}  // namespace slipway::scenarios
