#include "scenarios/commands/plan/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "scenarios/predict/basis.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "scenarios/search/layout_text.h"
#include "scenarios/search/refine.h"
#include "scenarios/search/search.h"

namespace slipway::scenarios {

namespace {

// "9, 8x3, 7".
std::string runs_of(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0, end = 0; i < numbers.size(); i = end) {
    for (end = i + 1; end < numbers.size() && numbers[end] == numbers[i];) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (end > i + 1) text += "x" + std::to_string(end - i);
  }
  return text;
}

const PricedLayout& priced_in(const PlanRow& row) { return row.priced; }
const Step& choice_in(const PlanRow& row) { return row.priced.choice; }
const Layout& layout_in(const PlanRow& row) { return row.priced.choice.layout; }

bool has_experts_in(const PlanRow& row) { return has_experts(choice_in(row).model); }

std::optional<TrainingCost> training_in(const PlanRow& row) {
  return row.priced.simulated ? training_cost(row.scenario, row.priced.step_time_s) : std::nullopt;
}

// The columns in their order. Layout settings are left out only where all rows share them, and printed below.
struct Shown {
  const char* heading;
  int spared = 0;  // order of removal from a table that is too wide: 1 before 2, 0 never
  bool is_choice = false;
};
constexpr Shown shown_columns[] = {{"tensor", 9, true},
                                   {"pipeline", 8, true},
                                   {"chunks", 2, true},
                                   {"context", 1, true},
                                   {"data", 7, true},
                                   {"experts on", 0, true},
                                   {"batch", 5, true},
                                   {"zero", 6, true},
                                   {"recompute", 3, true},
                                   {"schedule", 4, true},
                                   {"layers per stage", 0, true},
                                   {"step"},
                                   {"90 % interval", 16},
                                   {"MFU", 13},
                                   {"tokens/s", 12},
                                   {"days", 15},
                                   {"cost", 14},
                                   {"memory"},
                                   {"bubble", 10},
                                   {"exposed", 11}};

struct Column {
  Shown shown;
  std::vector<std::string> cells;  // per row
  bool all_same() const {
    return std::all_of(cells.begin(), cells.end(), [&](const std::string& c) { return c == cells.front(); });
  }
};

class Table {
 public:
  Table(const Scenario& scenario, const std::vector<PricedLayout>& rows) : rows_(rows) {
    const std::vector<std::string> headings = plan_row_keys().headings();
    std::vector<std::vector<std::string>> cells;
    for (const PricedLayout& row : rows) cells.push_back(plan_row_keys().cells({scenario, row}));
    for (const Shown& shown : shown_columns) {
      const auto at = std::find(headings.begin(), headings.end(), shown.heading) - headings.begin();
      Column column{shown, {}};
      for (const std::vector<std::string>& row : cells) column.cells.push_back(row.at(static_cast<std::size_t>(at)));
      if (is_wanted(column)) columns_.push_back(std::move(column));
    }
  }

  std::string text(int columns) {
    while (columns > 0 && width() > static_cast<std::size_t>(columns) && spare()) {
    }
    std::string text = drawn();
    if (!common_.empty()) text += "  All rows: " + common_ + ".\n";
    if (!left_out_.empty())
      text += "  Left out, to fit into " + std::to_string(columns) + " columns: " + left_out_ + ".\n";
    return text + waiting();
  }

 private:
  // Splits that are all even, and what the scenario has no length or price of training for, are no columns.
  static bool is_wanted(const Column& column) {
    const char* usual = column.shown.heading == std::string_view("layers per stage") ? "even" : "";
    return !column.all_same() || column.cells.front() != usual;
  }

  // Removes the next column; false: there is none.
  bool spare() {
    auto next = columns_.end();
    for (auto at = columns_.begin(); at != columns_.end(); ++at)
      if (at->shown.spared > 0 && (!at->shown.is_choice || at->all_same()) &&
          (next == columns_.end() || at->shown.spared < next->shown.spared))
        next = at;
    if (next == columns_.end()) return false;
    std::string& list = next->shown.is_choice ? common_ : left_out_;
    list += (list.empty() ? "" : ", ") + std::string(next->shown.heading) +
            (next->shown.is_choice ? " " + next->cells.front() : "");
    columns_.erase(next);
    return true;
  }

  std::string drawn() const {
    std::vector<std::vector<std::string>> cells(rows_.size() + 1);
    cells[0].emplace_back("#");
    for (std::size_t i = 0; i < rows_.size(); ++i) cells[i + 1].push_back(std::to_string(i + 1));
    for (const Column& column : columns_) {
      cells[0].emplace_back(column.shown.heading);
      for (std::size_t i = 0; i < rows_.size(); ++i) cells[i + 1].push_back(column.cells[i]);
    }
    return aligned_table(cells, "  ");
  }

  std::size_t width() const {
    std::istringstream lines(drawn());
    std::size_t most = 0;
    for (std::string line; std::getline(lines, line);) most = std::max(most, display_width(line));
    return most;
  }

  std::string waiting() const {
    const bool shown = std::any_of(columns_.begin(), columns_.end(),
                                   [](const Column& c) { return c.shown.heading == std::string_view("bubble"); });
    const bool waits = std::any_of(rows_.begin(), rows_.end(), [](const PricedLayout& r) {
      return r.choice.layout.pipeline == 1 && r.bubble_share > 5e-4;
    });
    return shown && waits ? "  Without a pipeline, bubble is time of waiting for other GPUs.\n" : "";
  }

  const std::vector<PricedLayout>& rows_;
  std::vector<Column> columns_;
  std::string common_, left_out_;
};

// Rows that may as well be faster than the first.
std::string not_told_apart_text(const std::vector<PricedLayout>& rows) {
  constexpr double sure = 0.9;
  std::size_t alike = 0;
  while (alike + 1 < rows.size() && rows[alike + 1].first_is_faster.value_or(1) < sure) ++alike;
  if (alike == 0) return "";
  return fmt::format("  Row{} {} not told apart from the first: with {} % or more, {} may be faster on the cluster.\n",
                     alike == 1 ? " 2" : "s 2 to " + std::to_string(alike + 1), alike == 1 ? "is" : "are",
                     std::lround(100 * (1 - sure)), alike == 1 ? "it" : "each");
}

// "0-3, 6, 4-5": numbers that ascend by one become a range.
std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0, end = 0; i < numbers.size(); i = end) {
    for (end = i + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (end > i + 1) text += fmt::format("-{}", numbers[end - 1]);
  }
  return text;
}

std::string where_text(const Scenario& scenario, const Layout& layout) {
  const Variant variant = variant_of(scenario, layout);
  return fmt::format("layers per stage {}; nodes {}", layers_text(variant.layers), ranges(variant.nodes));
}

std::string refinement_text(const Scenario& scenario, const SearchResult& result) {
  if (result.refined == 0) return "";
  std::string text = fmt::format(
      "\nNodes or links differ, so the first {} layouts were refined by {} of "
      "other\n"
      "orders of nodes and splits of layers; before that the fastest took {}. Their stages:\n",
      result.refined, counted(result.refinements, "simulation"), readable_seconds(result.unrefined_s));
  for (std::size_t i = 0; i < result.best.size(); ++i)
    text += fmt::format("  {}  {}\n", i + 1, where_text(scenario, result.best[i].choice.layout));
  return text;
}

std::string excluded_text(const SearchResult& result, const SearchOptions& options) {
  if (result.too_large == 0) return "";
  std::string text = fmt::format("\n{} more than {} of a GPU's memory with 99 % probability and {} left out.",
                                 counted(result.too_large, "layout") + (result.too_large == 1 ? " needs" : " need"),
                                 readable_share(options.memory_share), result.too_large == 1 ? "is" : "are");
  const PricedLayout& row = *result.best_too_large;
  text +=
      fmt::format(" The fastest of them would take {}{} a step and needs {}{} ({}):\n  {}\n",
                  row.simulated ? "" : "at least ", readable_seconds(row.step_time_s), row.judged ? "" : "at least ",
                  readable_bytes(row.memory_bytes), readable_share(row.memory_share), layout_text(row.choice));
  return text;
}

struct Part {
  std::string what;
  double gain_s;
};

// Without a pipeline, idle ranks wait for unfinished micro-batches or reductions of others.
std::string idle_name(const PricedLayout& a, const PricedLayout& b) {
  const bool piped = a.choice.layout.pipeline > 1, other_piped = b.choice.layout.pipeline > 1;
  if (piped && other_piped) return "bubble";
  return piped || other_piped ? "bubble and waiting for other GPUs" : "waiting for other GPUs";
}

std::vector<Part> parts_of(const PricedLayout& row, const PricedLayout& next) {
  const auto gain = [&](double PricedLayout::*share) {
    return next.*share * next.step_time_s - row.*share * row.step_time_s;
  };
  return {{"compute", gain(&PricedLayout::compute_share)},
          {idle_name(row, next), gain(&PricedLayout::bubble_share)},
          {"exposed communication", gain(&PricedLayout::exposed_comm_share)}};
}

}  // namespace

const Description<PlanRow>& plan_row_keys() {
  const auto is_simulated = of(priced_in, &PricedLayout::simulated);
  static const Description<PlanRow> description =
      Description<PlanRow>()
          .key("tensor", "count", "layout.tensor", of(layout_in, &Layout::tensor))
          .wide_column("tensor",
                       [](const PlanRow& row) {
                         return std::to_string(layout_in(row).tensor) + (layout_in(row).sequence_parallel ? " sp" : "");
                       })
          .key("sequence_parallel", "bool", "layout.sequence_parallel", of(layout_in, &Layout::sequence_parallel))
          .key("pipeline", "count", "layout.pipeline", of(layout_in, &Layout::pipeline))
          .column("pipeline")
          .key("chunks", "count", "layout.chunks", of(layout_in, &Layout::chunks))
          .column("chunks")
          .key("context", "count", "layout.context", of(layout_in, &Layout::context))
          .column("context")
          .key("data", "count", "layout.data", of(layout_in, &Layout::data))
          .column("data")
          .key("expert", "count", "layout.expert; this and the next are present where the model has experts",
               of(layout_in, &Layout::expert))
          .wide_column(
              "experts on",
              [](const PlanRow& row) {
                const Layout& layout = layout_in(row);
                if (!has_experts(choice_in(row).model)) return std::string();
                return std::to_string(layout.expert) +
                       (layout.tensor > 1 ? " x " + std::to_string(expert_tensor_of(sharding_of(layout))) : "");
              })
          .when(has_experts_in)
          .key("expert_tensor", "count", "layout.expert_tensor", of(layout_in, &Layout::expert_tensor))
          .when(has_experts_in)
          .key("zero", "0..3", "layout.zero", of(layout_in, &Layout::zero))
          .column("zero")
          .key("split", "list", "layers per stage; present where it is not even", of(layout_in, &Layout::split_list))
          .wide_column("layers per stage",
                       [](const PlanRow& row) {
                         return layout_in(row).split_list.empty() ? "even" : runs_of(layout_in(row).split_list);
                       })
          .when([](const PlanRow& row) { return !layout_in(row).split_list.empty(); })
          .key("placement", "list", "order of nodes; present where it is not that of the cluster",
               of(layout_in, &Layout::placement))
          .when([](const PlanRow& row) { return !layout_in(row).placement.empty(); })
          .key("schedule", "text", "schedule.name, or 'of a CSV'",
               [](const PlanRow& row) { return schedule_text(choice_in(row)); })
          .column("schedule")
          .key("micro_batch", "count", "schedule.micro_batch", of(choice_in, &Step::micro_batch))
          .column("batch")
          .key("recompute", "text", "schedule.recompute, or schedule.recompute_modules joined by +",
               [](const PlanRow& row) { return recompute_text(choice_in(row)); })
          .column("recompute")
          .key("bound_s", "s", "lower bound of the step", of(priced_in, &PricedLayout::bound_s))
          .key("memory_bytes", "bytes",
               "what 99 % of needs stay below, of the pipeline rank that is least likely to fit; a lower bound where "
               "the "
               "row was never judged",
               [](const PlanRow& row) { return std::round(row.priced.memory_bytes); })
          .key("memory_share", "0..1", "of that rank's GPU", of(priced_in, &PricedLayout::memory_share))
          .wide_column("memory",
                       [](const PlanRow& row) {
                         return readable_bytes(row.priced.memory_bytes) + " (" +
                                readable_share(row.priced.memory_share) + ")";
                       })
          .key("fit_probability", "0..1", "as in `slipway memory`; 0 where the row was never judged",
               of(priced_in, &PricedLayout::fit_probability))
          .key("step_time_s", "s", "as in simulate; this and all below are present where the row was simulated",
               of(priced_in, &PricedLayout::step_time_s))
          .column("step", readable_seconds)
          .when(is_simulated)
          .only_column("90 % interval",
                       [](const PlanRow& row) {
                         return row.priced.interval ? interval_text(*row.priced.interval) : std::string();
                       })
          .include(interval_keys(), of(priced_in, &PricedLayout::interval))
          .key("first_is_faster", "0..1",
               "probability that the first row of best is faster than it; present where it has an interval and is not "
               "the first",
               of(priced_in, &PricedLayout::first_is_faster))
          .key("mfu", "0..1", "as in simulate", of(priced_in, &PricedLayout::mfu))
          .column("MFU", readable_share)
          .when(is_simulated)
          .key("compute_share", "0..1", "as in simulate", of(priced_in, &PricedLayout::compute_share))
          .when(is_simulated)
          .key("bubble_share", "0..1", "as in simulate", of(priced_in, &PricedLayout::bubble_share))
          .column("bubble", readable_share)
          .when(is_simulated)
          .key("exposed_comm_share", "0..1", "as in simulate", of(priced_in, &PricedLayout::exposed_comm_share))
          .column("exposed", readable_share)
          .when(is_simulated)
          .key("timeline_bytes", "bytes", "simulated peak of the fullest rank",
               [](const PlanRow& row) { return std::round(row.priced.timeline_bytes); })
          .when(is_simulated)
          .key("tokens_per_s", "1/s", "as in simulate",
               [](const PlanRow& row) { return tokens_per_step(row.scenario) / row.priced.step_time_s; })
          .column("tokens/s", readable_count)
          .when(is_simulated)
          .include(training_cost_keys(), training_in)
          .only_column("days",
                       [](const PlanRow& row) {
                         const auto training = training_in(row);
                         return training ? fmt::format("{:.4g}", training->days) : "";
                       })
          .only_column("cost",
                       [](const PlanRow& row) {
                         const auto training = training_in(row);
                         return training && training->cost ? readable_count(*training->cost) : "";
                       })
          .key("why", "text", "it wins over the next row; present in best, but for the last",
               [](const PlanRow& row) { return why(row.priced, *row.next); })
          .when([](const PlanRow& row) { return row.next != nullptr; });
  return description;
}

std::string table_of(const Scenario& scenario, const std::vector<PricedLayout>& rows, int columns) {
  return rows.empty() ? "" : Table(scenario, rows).text(columns);
}

// The answer of `slipway plan` as a report.

std::string why(const PricedLayout& row, const PricedLayout& next) {
  const double gain = next.step_time_s - row.step_time_s;
  if (gain <= 1e-3 * next.step_time_s) {
    const double bytes = next.memory_bytes - row.memory_bytes;
    if (bytes > 0.01 * next.memory_bytes) return "as fast, with " + readable_bytes(bytes) + " less memory";
    return gain > 0 ? "faster by less than 0.1 %" : "equal";
  }
  std::vector<Part> parts = parts_of(row, next);
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.gain_s > b.gain_s; });
  const std::string text =
      fmt::format("{} faster (-{}): less {} (-{})", readable_share(gain / next.step_time_s), readable_seconds(gain),
                  parts.front().what, readable_seconds(parts.front().gain_s));
  std::string losses;
  for (auto part = parts.rbegin(); part != parts.rend() && part->gain_s < -0.05 * gain; ++part)
    losses += (losses.empty() ? " against more " : ", ") + part->what + " (+" + readable_seconds(-part->gain_s) + ")";
  return text + losses;
}

std::string search_text(const Scenario& scenario, const SearchResult& result, const SearchOptions& options) {
  std::string text = fmt::format("{}: {}, global batch {} of {} tokens, on {}{}\n", scenario.name,
                                 scenario.step.model->name, scenario.step.global_batch, scenario.step.model->sequence,
                                 machines_text(scenario.cluster), trainer_text(scenario));
  text += fmt::format("{} screened in {}, {} simulated in {}{}\n", counted(result.legal, "legal layout"),
                      readable_seconds(result.screening_s), result.simulated, readable_seconds(result.simulation_s),
                      result.complete ? "" : "; INTERRUPTED: the best so far, not of all");
  if (const auto& lists = scenario.step.actions)
    text += fmt::format("The schedule is that of schedule.csv, {} and {} a pipeline; all else is searched.\n",
                        counted(static_cast<std::int64_t>(lists->size()), "pipeline rank"),
                        counted(micro_batches_in(*lists), "micro-batch"));
  if (!result.best.empty()) {
    std::vector<Basis> rows;
    for (const PricedLayout& row : result.best) rows.push_back(basis_of(with_layout(scenario, row.choice)));
    text += empty_line_first(basis_text(rows, "row"));
    text += "\nThe fastest layouts that fit:\n" + table_of(scenario, result.best, options.columns) +
            not_told_apart_text(result.best) + "\nWhy each wins over the next:\n";
    for (std::size_t i = 0; i + 1 < result.best.size(); ++i)
      text += fmt::format("  {}  {}\n", i + 1, why(result.best[i], result.best[i + 1]));
    text += refinement_text(scenario, result);
    text += "\nLess memory for more time (the Pareto front):\n" + table_of(scenario, result.pareto, options.columns);
  }
  text += excluded_text(result, options);
  return text;
}

}  // namespace slipway::scenarios
