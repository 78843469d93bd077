#include "scenarios/tables/published_row.h"

#include <fmt/format.h>

namespace slipway::scenarios {
namespace {

// Below it the node's network was faulty: healthy nodes of Hugging Face's runs show 400 to 480 GB/s.
constexpr double healthy_all_reduce = 300e9;

}  // namespace

std::string layout_key(const PublishedRow& row) {
  const Step& step = row.scenario->step;
  return fmt::format("{} s{} on {}: t{} c{} p{} d{} b{}", step.model->name, step.model->sequence, row.machine,
                     step.layout.tensor, step.layout.context, step.layout.pipeline, step.layout.data, step.micro_batch);
}

std::string in_words(const PublishedRow& row) {
  if (!row.scenario) return row.group;
  const Step& step = row.scenario->step;
  const Layout& cut = step.layout;
  std::string text = fmt::format("{} s{}, {} GPUs: t{}{}", step.model->name, step.model->sequence, gpus_of(row),
                                 cut.tensor, cut.sequence_parallel && cut.tensor > 1 ? "+sp" : "");
  if (cut.context > 1) text += fmt::format(" c{}", cut.context);
  text += fmt::format(" p{} d{} b{} m{} zero{}", cut.pipeline, cut.data, step.micro_batch, micro_batches_of(step),
                      cut.zero);
  if (cut.expert > 1) text += fmt::format(" e{}", cut.expert);
  if (cut.chunks > 1) text += fmt::format(" v{}", cut.chunks);
  if (step.narrow != NarrowRecipe::none) text += fmt::format(" {}", name_of(step.narrow));
  return text + ' ' + name_of(step.kernels) +
         (step.recompute == Recompute::full        ? ", recompute"
          : step.recompute == Recompute::selective ? ", selective recompute"
                                                   : "");
}

Exclusion exclusion_of(const PublishedRow& row) {
  if (row.status != RowStatus::ok) return Exclusion::status;
  const bool is_faulty = row.all_reduce_bytes_per_s > 0 && row.all_reduce_bytes_per_s < healthy_all_reduce;
  const Exclusion first = row.excluded.empty() ? Exclusion::none : *row.excluded.begin();
  if (is_faulty && (first == Exclusion::none || first > Exclusion::all_reduce_test)) return Exclusion::all_reduce_test;
  return first;
}

int gpus_of(const PublishedRow& row) {
  return row.scenario ? static_cast<int>(rank_count(row.scenario->step.layout)) : 0;
}

double tokens_per_step(const PublishedRow& row) {
  const Step& step = row.scenario->step;
  return static_cast<double>(step.global_batch * step.model->sequence);
}

double mfu_of(const PublishedRow& row, double seconds, double peak_flops) {
  return tokens_per_step(row) * mfu_flops_per_token(row.scenario->step.model) / (gpus_of(row) * peak_flops * seconds);
}

}  // namespace slipway::scenarios
