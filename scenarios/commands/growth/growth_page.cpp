#include "scenarios/commands/growth/growth_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/training/growth.h"
#include "models/training/loss_dynamics.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

// Loss and batch of a course over time.
struct Curves {
  PlotSeries loss, batch;
};

// Within a span of one batch the law of the loss gives its tokens (models/training/loss_dynamics.h).
Curves curves_of(const Scenario& scenario, const GrowthAnswer& answer, const RuleAnswer& rule) {
  const std::vector<BatchSpan>& spans = rule.course.spans;
  const std::size_t pieces = std::max<std::size_t>(1, 60 / std::max<std::size_t>(1, spans.size()));
  Curves curves{{rule.name, {}, {}}, {rule.name, {}, {}, Mark::steps}};
  double seconds = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const BatchSpan& span = spans[i];
    const double last_loss = i + 1 < spans.size() ? spans[i + 1].from_loss : rule.course.end.loss;
    const double batch_tokens = static_cast<double>(span.batch) * answer.sequence;
    const double step_s = step_time_between(answer.rungs_of(rule.batches.rule), span.batch);
    const double first_tokens = tokens_to(scenario.growth.dynamics, batch_tokens, span.from_loss);
    curves.batch.x.push_back(seconds), curves.batch.y.push_back(static_cast<double>(span.batch));
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const double loss =
          span.from_loss + (last_loss - span.from_loss) * static_cast<double>(piece) / static_cast<double>(pieces);
      const double tokens = tokens_to(scenario.growth.dynamics, batch_tokens, loss) - first_tokens;
      curves.loss.x.push_back(seconds + tokens / batch_tokens * step_s), curves.loss.y.push_back(loss);
    }
    seconds += static_cast<double>(span.steps) * step_s;
  }
  curves.loss.x.push_back(seconds), curves.loss.y.push_back(rule.course.end.loss);
  if (!spans.empty())
    curves.batch.x.push_back(seconds), curves.batch.y.push_back(static_cast<double>(spans.back().batch));
  return curves;
}

std::string reason_of(const Scenario& scenario, const GrowthAnswer& answer) {
  const RuleAnswer &own = answer.own(), &first = answer.first();
  if (!own.target_s)
    return fmt::format("By {}, {:.3g} tokens take {} and end at loss {:.4f}.", own.name,
                       own.course.end.samples * answer.sequence, readable_seconds(own.end_s), own.course.end.loss);
  std::string text = fmt::format("By {}, loss {:g} is reached after {}", own.name, scenario.growth.target_loss,
                                 readable_seconds(*own.target_s));
  if (&own != &first && first.target_s)
    text += fmt::format("; with {}, after {}: {:.3g} times as long", first.name, readable_seconds(*first.target_s),
                        *first.target_s / *own.target_s);
  return text + ".";
}

Card time_card(const GrowthAnswer& answer) {
  const RuleAnswer& own = answer.own();
  Card card{own.target_s ? "time to the loss" : "time of the training",
            readable_seconds(own.target_s.value_or(own.end_s))};
  const auto& interval = own.target_s ? own.target_interval : own.end_interval;
  card.note = interval ? fmt::format("90 % interval: {} to {}", readable_seconds(interval->least_s),
                                     readable_seconds(interval->most_s))
                       : no_interval;
  if (own.target_range)
    card.note += fmt::format("; over the noise scales: {} to {}", readable_seconds(own.target_range->least_s),
                             readable_seconds(own.target_range->most_s));
  return card;
}

// Losses that a law gives to a constant batch, between two losses.
PlotSeries law_of(const std::string& name, const LossDynamics& dynamics, double batch_tokens, double from, double to,
                  double at_tokens) {
  constexpr int points = 80;
  PlotSeries series{name, {}, {}};
  const double first = tokens_to(dynamics, batch_tokens, from);
  for (int i = 0; i <= points; ++i) {
    const double loss = from + (to - from) * i / points;
    series.x.push_back(at_tokens + tokens_to(dynamics, batch_tokens, loss) - first), series.y.push_back(loss);
  }
  return series;
}

}  // namespace

Report report_of(const Scenario& scenario, const GrowthAnswer& answer) {
  Report report;
  report.command = "growth";
  report.headline = fmt::format("{}: {} on {}, batch {} to {} sequences by {}", scenario.name,
                                scenario.step.model->name, machines_text(scenario.cluster), scenario.step.global_batch,
                                scenario.growth.largest, answer.own().name);
  report.reason = reason_of(scenario, answer);
  const Milestone& end = answer.own().course.end;
  report.cards = {time_card(answer),
                  {"loss at the end", fmt::format("{:.4f}", end.loss), ""},
                  {"steps", readable_count(static_cast<double>(end.steps)),
                   readable_count(end.samples * answer.sequence) + " tokens"}};
  Plot loss{"Loss over time", "", {"time", PlotAxis::Unit::seconds}, {"loss in nats"}, {}, false, {}};
  Plot batch{"Batch over time", "", {"time", PlotAxis::Unit::seconds}, {"batch in sequences"}, {}, false, {}};
  for (const RuleAnswer& rule : answer.rules) {
    Curves curves = curves_of(scenario, answer, rule);
    loss.series.push_back(std::move(curves.loss)), batch.series.push_back(std::move(curves.batch));
  }
  PlotSeries steps{"simulated", {}, {}};
  for (const RungStep& rung : answer.rungs)
    steps.x.push_back(static_cast<double>(rung.batch)), steps.y.push_back(rung.tokens_per_s);
  report.sections.push_back(std::move(loss));
  report.sections.push_back(std::move(batch));
  report.sections.push_back(ReportTable{"Rules", "* this scenario's", rule_rows(scenario, answer)});
  report.sections.push_back(Plot{
      "Tokens per second by batch", "", {"batch in sequences"}, {"tokens per second"}, {std::move(steps)}, false, {}});
  report.sections.push_back(ReportTable{"Simulated batches", "", rung_rows(answer)});
  return report;
}

Report report_of(const FitAnswer& answer) {
  const LossDynamics& law = answer.fit.dynamics;
  Report report;
  report.command = "growth";
  report.headline = fmt::format("Fit of {} to {}", answer.file.path,
                                counted(static_cast<std::int64_t>(answer.file.curves.size()), "curve"));
  report.reason = fmt::format("The law of the loss is off by {:.4f} nats in the median.", answer.fit.error);
  report.cards = {
      {"noise scale", readable_count(law.noise_tokens) + " tokens",
       answer.noise_range ? fmt::format("95 % interval: {} to {}", readable_count(answer.noise_range->least),
                                        readable_count(answer.noise_range->most))
                          : "interval unknown"},
      {"median error", fmt::format("{:.4f} nats", answer.fit.error),
       counted(static_cast<std::int64_t>(answer.fit.points), "loss")}};
  Plot plot{
      "Losses and the fitted law", "Points: measured. Lines: fitted.", {"tokens"}, {"loss in nats"}, {}, false, {}};
  for (const LossCurve& curve : answer.file.curves) {
    const std::string batch = "batch of " + readable_count(curve.batch_tokens) + " tokens";
    PlotSeries measured{batch, {}, {}, Mark::points};
    for (const CurvePoint& point : curve.points) measured.x.push_back(point.tokens), measured.y.push_back(point.loss);
    if (!measured.x.empty())
      plot.series.push_back(law_of(batch + ", fitted", law, curve.batch_tokens, measured.y.front(), measured.y.back(),
                                   measured.x.front()));
    plot.series.push_back(std::move(measured));
  }
  report.sections.push_back(std::move(plot));
  return report;
}

Report report_of(const RunFitAnswer& answer) {
  const auto run_series = [](const ExecutedRun& run) {
    Curves curves{{run.folder, {}, {}}, {run.folder, {}, {}, Mark::steps}};
    double tokens = 0;
    for (const GradientStep& step : run.steps) {
      tokens += step.batch_tokens;
      curves.loss.x.push_back(tokens), curves.loss.y.push_back(step.loss);
      curves.batch.x.push_back(tokens), curves.batch.y.push_back(step.batch_tokens / run.sequence);
    }
    return curves;
  };
  Report report;
  report.command = "growth";
  report.headline = fmt::format("Fit of {}, {}", answer.run.folder,
                                counted(static_cast<std::int64_t>(answer.run.steps.size()), "step"));
  report.reason = fmt::format("The law of the loss is off by {} in the median.", readable_share(answer.fit.error));
  report.cards = {
      {"noise scale", readable_count(answer.noise.tokens) + " tokens",
       answer.noise.interval ? fmt::format("95 % interval: {} to {}", readable_count(answer.noise.interval->least),
                                           readable_count(answer.noise.interval->most))
                             : "interval unknown"},
      {"last loss", fmt::format("{:.4f}", answer.last_loss), ""}};
  Plot loss{"Loss over tokens", "", {"tokens"}, {"loss in nats"}, {}, false, {}};
  Plot batch{"Batch over tokens", "", {"tokens"}, {"batch in sequences"}, {}, false, {}};
  std::vector<const ExecutedRun*> runs{&answer.run};
  for (const UnseenRun& unseen : answer.unseen) runs.push_back(&unseen.run);
  for (const ExecutedRun* run : runs) {
    Curves curves = run_series(*run);
    loss.series.push_back(std::move(curves.loss)), batch.series.push_back(std::move(curves.batch));
  }
  report.sections.push_back(std::move(loss));
  report.sections.push_back(std::move(batch));
  return report;
}

}  // namespace slipway::scenarios
