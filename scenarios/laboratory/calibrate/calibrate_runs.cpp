#include "scenarios/laboratory/calibrate/calibrate_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <set>

#include "models/trace/statistics.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/files/output_file.h"
#include "scenarios/laboratory/tables/pooled_runs.h"
#include "scenarios/laboratory/tables/table.h"
#include "scenarios/language/load_constants.h"
#include "scenarios/predict/basis.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

// Runs of equal settings whose times differ by more are not one run measured twice.
constexpr double contradicts = 1.2;

// "line 4", "lines 4, 7, 9", "lines 4, 7, 9 and 12 more"
std::string lines_text(const std::vector<int>& lines) {
  constexpr std::size_t shown = 8;
  const std::vector<int> first(lines.begin(),
                               lines.begin() + static_cast<std::ptrdiff_t>(std::min(shown, lines.size())));
  return fmt::format("line{} {}{}", lines.size() == 1 ? "" : "s", fmt::join(first, ", "),
                     lines.size() > shown ? fmt::format(" and {} more", lines.size() - shown) : "");
}

void note_unread(const PublishedTable& table, std::ostream& err) {
  if (table.unread.empty()) return;
  err << fmt::format("note: {} {} {} not read\n", table.unread.size() == 1 ? "column" : "columns",
                     fmt::join(table.unread, ", "), table.unread.size() == 1 ? "is" : "are");
}

std::string kind_of(const PublishedRow& row) {
  switch (exclusion_of(row)) {
    case Exclusion::after_pp_fix:
      return "row of a trainer before its pipeline was repaired (after_pp_fix)";
    case Exclusion::all_reduce_test:
      return "row on a faulty network (all_reduce_bytes_per_s)";
    default:
      return row.status == RowStatus::out_of_memory ? "out-of-memory row"
                                                    : fmt::format("row of status {}", name_of(row.status));
  }
}

// The rows with a time. Notes the others.
std::vector<const PublishedRow*> timed_rows(const PublishedTable& table, std::ostream& err) {
  std::vector<const PublishedRow*> timed;
  std::map<std::string, std::vector<int>> others;
  for (const PublishedRow& row : table.rows) {
    if (!row.unpriceable.empty() || exclusion_of(row) == Exclusion::none)
      timed.push_back(&row);
    else
      others[kind_of(row)].push_back(row.line);
  }
  for (const auto& [kind, lines] : others) {
    std::string kinds = kind;
    if (lines.size() > 1) kinds.insert(kinds.find("row") + 3, "s");
    err << fmt::format("note: {} {} ({}) {} nothing of step times\n", lines.size(), kinds, lines_text(lines),
                       lines.size() == 1 ? "says" : "say");
  }
  return timed;
}

// Names the first row that cannot be read or priced.
void refuse_unpriceable(const PublishedTable& table, const std::vector<const PublishedRow*>& rows) {
  std::string first;
  int more = 0;
  for (const PublishedRow* row : rows) {
    try {
      PricedRun run(*row);
      run.replay([&](const Machine&) { return constants_of(built_in_constants(), row->trainer, row->machine); });
    } catch (const std::invalid_argument& error) {
      if (first.empty())
        first = fmt::format("{}:{}: {}", table.file, row->line, error.what());
      else
        ++more;
    }
  }
  if (first.empty()) return;
  throw UsageError(first + "; correct the row, or remove it" +
                   (more > 0 ? fmt::format(" (and {} that cannot be priced)", counted(more, "further row")) : ""));
}

// Equal for runs of the same settings, however they are written and whatever was measured.
std::string settings_of(const PublishedRow& row) { return load_scenario_text(row.text, "").scenario.summary; }

void refuse_contradictions(const PublishedTable& table, const std::vector<const PublishedRow*>& rows) {
  std::map<std::string, const PublishedRow*> fastest, slowest;
  for (const PublishedRow* row : rows) {
    const auto key = settings_of(*row);
    const PublishedRow*& fast = fastest.try_emplace(key, row).first->second;
    const PublishedRow*& slow = slowest.try_emplace(key, row).first->second;
    if (row->step_s < fast->step_s) fast = row;
    if (row->step_s > slow->step_s) slow = row;
    if (slow->step_s <= contradicts * fast->step_s) continue;
    const auto [a, b] = std::minmax(fast, slow, [](auto* x, auto* y) { return x->line < y->line; });
    throw UsageError(fmt::format(
        "{}:{} and {}:{} are the same run in every setting, but took {} and {}; remove the wrong one, or give the "
        "key that tells them apart",
        table.file, a->line, table.file, b->line, readable_seconds(a->step_s), readable_seconds(b->step_s)));
  }
}

// The score of a set of constants on the runs.
struct Score {
  double mean_error = 0;  // of |predicted / measured - 1|
  double half_width = 0;  // of the 90 % interval, (high - low) / (2 prediction), median
};

Score score_of(const PooledRuns& runs, const PooledConstants& constants) {
  std::vector<double> seconds(runs.size()), spreads(runs.size()), widths;
  runs.predict(runs.all(), constants, seconds, &spreads);
  Score score;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    score.mean_error += std::abs(seconds[i] / runs.row(i).measured_s - 1) / static_cast<double>(runs.size());
    widths.push_back(std::sinh(half_width(constants, spreads[i])));
  }
  score.half_width = median(widths);
  return score;
}

std::string owner_of(const PooledCoordinate& at) {
  if (at.trainer.empty()) return at.machine.empty() ? "all" : at.machine;
  return at.machine.empty() ? at.trainer : at.trainer + " on " + at.machine;
}

std::string moved_text(const PooledConstants& before, const PooledConstants& after) {
  constexpr double shown = 0.2;  // of the prior spread
  constexpr double of_90_percent = 1.645;
  std::vector<std::vector<std::string>> rows{{"constant", "of", "before", "after", "90 % interval", "unit"}};
  for (std::size_t c = 0; c < after.coordinates.size(); ++c) {
    const PooledCoordinate& at = after.coordinates[c];
    if (std::abs(after.values[c] - before.values[c]) <= shown * at.spread) continue;
    const StepConstant& constant = step_constants()[at.constant];
    const bool shared = at.machine.empty() && at.trainer.empty();
    const double book = shared ? constant.book : 1;
    const double width = of_90_percent * std::sqrt(after.covariance[c * after.coordinates.size() + c]);
    const auto number = [&](double logarithm) { return fmt::format("{:.3g}", book * std::exp(logarithm)); };
    rows.push_back({constant.name, owner_of(at), number(before.values[c]), number(after.values[c]),
                    number(after.values[c] - width) + " to " + number(after.values[c] + width),
                    shared ? constant.unit : "factor"});
  }
  if (rows.size() == 1) return "No constant moved by more than a fifth of its spread.\n";
  return "Constants that moved by more than a fifth of their spread:\n\n" + aligned_table(rows, "  ");
}

std::string clusters_of(const PooledRuns& runs) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < runs.size(); ++i) names.insert(runs.row(i).trainer + " on " + runs.row(i).machine);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void calibrate_runs(const CalibrateRuns& asked, std::ostream& out, std::ostream& err) {
  const PublishedTable table = read_table_file(asked.table);
  note_unread(table, err);
  const std::vector<const PublishedRow*> rows = timed_rows(table, err);
  if (rows.empty())
    throw UsageError(asked.table + " has no row with a step time (status ok); add a run that was measured");
  Score before, after;
  PooledConstants fitted;
  const PooledConstants& known = built_in_constants();
  refuse_unpriceable(table, rows);
  refuse_contradictions(table, rows);
  PooledRuns runs(rows);
  if (rows.size() == 1)
    err << "note: one run moves only what its trainer and cluster have in common; two and more tell constants apart\n";
  {
    const ProgressLine progress(err, "fitting");
    fitted = runs.add(runs.all(), known, asked.noise);
    before = score_of(runs, known), after = score_of(runs, fitted);
  }
  fitted.runs = table_text(rows);
  fitted.seen = known.seen;
  for (const PublishedRow* row : rows) add_run(row->step, row->trainer, row->machine, FittedOf::times, fitted.seen);
  const std::string what =
      fmt::format("{} of {}", counted(static_cast<std::int64_t>(runs.size()), "run"), clusters_of(runs));
  OutputFile file(asked.output);
  file.stream() << constants_to_yaml(
      fitted, fmt::format("Constants of a step, fitted to published runs and to {} ({}); written by slipway calibrate "
                          "--runs.",
                          what, asked.table));
  file.commit();
  std::vector<PooledRow> measured;
  for (std::size_t i = 0; i < runs.size(); ++i) measured.push_back(runs.row(i));
  out << what << ", added to what published runs say\n\n"
      << aligned_table({{"constants", "mean error", "90 % interval"},
                        {"built in", readable_share(before.mean_error), "± " + readable_share(before.half_width)},
                        {"with these runs", readable_share(after.mean_error), "± " + readable_share(after.half_width)}},
                       "  ")
      << fmt::format("\nRuns differ by {} beyond what the constants say ({}).\n\n", readable_share(fitted.row_spread),
                     asked.noise ? "given" : fmt::format("estimated, {:.1f} degrees of freedom", fitted.freedom))
      << moved_text(prior_constants(measured, known), fitted) << "\nwrote " << asked.output
      << "; in the scenario, by a path from its folder: cluster.constants: " << asked.output << "\n";
}

}  // namespace slipway::scenarios
