#include "scenarios/commands/goodput/goodput_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

std::vector<Share> shares_of(const GoodputAnswer& answer) {
  const MeanGoodput& own = answer.own.simulated;
  const auto share = [&](const char* name, double part, const char* colour) {
    return Share{name, readable_seconds(part * answer.horizon_s), part, colour};
  };
  return {share("kept steps", own.share, "compute"), share("checkpoints", own.checkpoint, "optimizer"),
          share("work lost", own.lost, "exposed"), share("restarts", own.restart, "recompute"),
          share("waiting for a repair", own.waiting, "bubble")};
}

// The largest loss of time.
std::string reason_of(const GoodputAnswer& answer) {
  const std::vector<Share> shares = shares_of(answer);
  const auto most = std::max_element(shares.begin() + 1, shares.end(),
                                     [](const Share& a, const Share& b) { return a.share < b.share; });
  return fmt::format("{} of the time become kept steps. The largest loss is {}: {} of {}.",
                     readable_share(answer.own.simulated.share), most->name, readable_share(most->share),
                     readable_seconds(answer.horizon_s));
}

Plot intervals_plot(const GoodputAnswer& answer) {
  PlotSeries simulated{"simulated", {}, {}}, daly{"closed form (Daly 2006)", {}, {}},
      own{"this scenario", {}, {}, Mark::points};
  for (const IntervalRow& row : answer.around) {
    simulated.x.push_back(row.interval_s), simulated.y.push_back(row.simulated.share);
    if (row.daly_share) daly.x.push_back(row.interval_s), daly.y.push_back(*row.daly_share);
  }
  own.x = {answer.own.interval_s}, own.y = {answer.own.simulated.share};
  Plot plot{"Goodput by checkpoint interval",
            "",
            {"time between checkpoints", PlotAxis::Unit::seconds, true},
            {"goodput", PlotAxis::Unit::share},
            {std::move(simulated)},
            false,
            {}};
  if (!daly.x.empty()) plot.series.push_back(std::move(daly));
  plot.series.push_back(std::move(own));
  return plot;
}

}  // namespace

Report report_of(const Scenario& scenario, const GoodputAnswer& answer) {
  const FaultyTraining& training = answer.training;
  const MeanGoodput& own = answer.own.simulated;
  const auto tokens = tokens_per_day_interval(answer);
  Report report;
  report.command = "goodput";
  report.headline = fmt::format("{}: {} of training on {}, {}", scenario.name, readable_seconds(answer.horizon_s),
                                counted(training.nodes, "node"), counted(training.spare_nodes, "spare node"));
  report.reason = reason_of(answer);
  report.cards = {{"goodput", readable_share(own.share),
                   own.error ? fmt::format("{}; mean of {}, standard error {}", histories_text(own), own.histories,
                                           readable_share(*own.error))
                             : "one history"},
                  {"tokens per day", readable_count(answer.tokens_per_s * 86400 * own.share),
                   (tokens ? tokens_note(*tokens) : no_interval) + "; without failures " +
                       readable_count(answer.tokens_per_s * 86400)},
                  {"step time", readable_seconds(training.step_s), interval_note(answer.step_interval)},
                  {"failures", fmt::format("{:.3g}", own.failures), "per history"},
                  {"checkpoint every", readable_seconds(answer.own.interval_s),
                   answer.interval_is_given ? "" : "the best by Daly 2006"}};
  report.sections.push_back(Bar{"Where the time goes", "Mean over histories.", shares_of(answer)});
  report.sections.push_back(intervals_plot(answer));
  report.sections.push_back(ReportTable{"By checkpoint interval",
                                        "* this scenario's; closed form: Daly 2006, with enough spares",
                                        interval_rows(answer)});
  return report;
}

}  // namespace slipway::scenarios
