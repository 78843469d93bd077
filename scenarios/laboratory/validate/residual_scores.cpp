#include "scenarios/laboratory/validate/residual_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace slipway::scenarios {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

ResidualLayer layer_of(const PooledRuns& runs, const std::vector<std::size_t>& kept,
                       const std::vector<double>& seconds) {
  std::vector<ResidualRow> rows;
  for (const std::size_t i : kept) {
    const PooledRow& row = runs.row(i);
    rows.push_back({row.trainer, row.machine, place_of(runs.published(i)), std::log(row.measured_s / seconds[i])});
  }
  return ResidualLayer(rows);
}

}  // namespace

std::vector<double> place_of(const PublishedRow& row) {
  const Step& step = row.scenario->step;
  const Layout& cut = step.layout;
  const auto& layers = step.model->runs[1];
  const double tensor = static_cast<double>(cut.tensor), pipeline = static_cast<double>(cut.pipeline),
               context = static_cast<double>(cut.context);
  const auto sequence = static_cast<double>(step.model->sequence);
  const double nodes = static_cast<double>(gpus_of(row)) / row.scenario->cluster.groups[0].gpus_per_node;
  return {std::log2(tensor),
          std::log2(pipeline),
          std::log2(context),
          std::log2(static_cast<double>(cut.data)),
          std::log2(static_cast<double>(step.micro_batch) * sequence / context),  // tokens of a pass on one GPU
          std::log2(static_cast<double>(micro_batches_of(step))),                 //
          std::log2(static_cast<double>(layers.block.hidden) / tensor),           // width of a shard
          std::log2(static_cast<double>(layers.count) / pipeline),                // layers of a rank
          std::log2(sequence),                                                    //
          std::log2(std::max(nodes, 1.0)),                                        //
          step.recompute == Recompute::none   ? 0.0
          : step.recompute == Recompute::full ? 1.0
                                              : 0.5,
          writes_scores(step.kernels) ? 0.0 : 1.0,
          static_cast<double>(cut.zero)};
}

int count_of(const std::vector<int>& parts) { return 1 + *std::max_element(parts.begin(), parts.end()); }

LeftOutBothWays left_out(PooledRuns& runs, const std::vector<int>& parts, const PooledConstants& fitted,
                         const std::function<void()>& each) {
  const std::vector<double> none(runs.size(), nothing);
  LeftOutBothWays result{{none, none}, {none, none}};
  PooledOptions options;
  options.start = &fitted;
  options.replays = 0;
  const int count = count_of(parts);
  for (int part = 0; part < count; each(), ++part) {
    std::vector<std::size_t> kept, out;
    for (std::size_t i = 0; i < runs.size(); ++i) (parts[i] == part ? out : kept).push_back(i);
    if (out.empty() || kept.empty()) continue;
    const PooledConstants constants = runs.fit(kept, options);
    std::vector<double> seen(runs.size()), spreads(runs.size());
    runs.predict(out, constants, result.physics.seconds, &spreads);
    runs.predict(kept, constants, seen, nullptr);
    const ResidualLayer layer = layer_of(runs, kept, seen);
    for (const std::size_t i : out) {
      const double seconds = result.physics.seconds[i];
      result.physics.widths[i] = half_width(constants, spreads[i]);
      result.corrected.seconds[i] = seconds, result.corrected.widths[i] = result.physics.widths[i];
      const PooledRow& row = runs.row(i);
      if (!layer.knows(row.trainer, row.machine)) continue;
      const ResidualCorrection correction = layer.at(row.trainer, row.machine, place_of(runs.published(i)));
      result.corrected.seconds[i] = seconds * std::exp(correction.shift);
      result.corrected.widths[i] = half_width(correction, spreads[i]);
    }
  }
  return result;
}

}  // namespace slipway::scenarios
