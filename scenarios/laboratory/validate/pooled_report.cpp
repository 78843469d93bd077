#include <fmt/format.h>

#include <cmath>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/files/csv.h"
#include "scenarios/laboratory/validate/pooled.h"
#include "scenarios/laboratory/validate/report.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

std::string error_text(const PooledError& error) {
  return std::isnan(error.mean) ? "-" : fmt::format("{:.1f} / {:.1f}", error.mean, error.median);
}

Description<PooledError> error_keys() {
  return Description<PooledError>()
      .key("mean", "percent", "mean of |predicted / measured - 1|", &PooledError::mean)
      .key("median", "percent", "its median", &PooledError::median)
      .key("bias", "percent", "mean of predicted / measured - 1", &PooledError::bias);
}

Description<PooledScore> score_keys() {
  return Description<PooledScore>()
      .include(error_keys(), &PooledScore::error)
      .key("covered", "percent", "runs within the 90 % interval", &PooledScore::covered)
      .key("half_width", "percent", "of that interval, (high - low) / (2 prediction), median",
           &PooledScore::half_width);
}

Description<PooledChoice> choice_keys() {
  return Description<PooledChoice>()
      .key("tables", "count", "tables of one model on as many GPUs, with two measured layouts and more",
           &PooledChoice::tables)
      .key("mean", "percent", "mean regret of the layout predicted fastest of those that fit with 99 %",
           &PooledChoice::mean)
      .key("median", "percent", "its median", &PooledChoice::median)
      .key("none", "count", "tables of which none is predicted to fit: regret 100", &PooledChoice::none)
      .key("ran_out", "count", "layouts chosen that ran out of memory: regret 100", &PooledChoice::ran_out);
}

std::string error_text(const PooledScore& score) { return error_text(score.error); }

std::string interval_text(const PooledScore& score) {
  return std::isnan(score.covered) ? "-" : fmt::format("{:.0f} %, {:.0f} %", score.covered, score.half_width);
}

// The columns: what a stranger should expect.
Description<PooledTable> table_keys() {
  Description<PooledTable> keys;
  keys.key("trainer", "text", "trainer of the runs", &PooledTable::trainer)
      .column("trainer")
      .key("machine", "text", "their machine profile", &PooledTable::machine)
      .column("machine")
      .key("rows", "count", "scored runs", &PooledTable::rows)
      .column("runs", readable_count)
      .object("paper", "without any run of the trainer", &PooledTable::paper, score_keys())
      .wide_column("nothing of yours", [](const PooledTable& table) { return error_text(table.paper.error); });
  for (std::size_t way = 0; way < runs_of_own.size(); ++way)
    keys.object(
            fmt::format("after_{}", runs_of_own[way]),
            fmt::format("with {} of the table, drawn several times: its other runs",
                        counted(static_cast<std::int64_t>(runs_of_own[way]), "run")),
            [way](const PooledTable& table) { return table.after[way]; }, score_keys())
        .wide_column(fmt::format("after {}", counted(static_cast<std::int64_t>(runs_of_own[way]), "run")),
                     [way](const PooledTable& table) { return error_text(table.after[way].error); });
  return keys.only_column("interval", [](const PooledTable& table) { return interval_text(table.paper); })
      .only_column("interval after 3", [](const PooledTable& table) { return interval_text(table.after[1]); })
      .object("choice", "the layout chosen without any run of the trainer", &PooledTable::choice, choice_keys())
      .wide_column("regret",
                   [](const PooledTable& table) {
                     return error_text(PooledError{table.choice.mean, table.choice.median, 0});
                   })
      .only_column("none fits",
                   [](const PooledTable& table) {
                     return table.choice.tables > 0 ? fmt::format("{} of {}", table.choice.none, table.choice.tables)
                                                    : "-";
                   })
      .only_column("out of memory",
                   [](const PooledTable& table) {
                     const PooledChoice& choice = table.choice;
                     return choice.tables > 0 ? fmt::format("{} of {}", choice.ran_out, choice.tables) : "-";
                   })
      .object("book", "error with nothing fitted", &PooledTable::book, error_keys())
      .object("in_sample", "error of the fit to all runs", &PooledTable::in_sample, error_keys())
      .object("layouts", "without a fifth of the layouts", &PooledTable::layouts, score_keys())
      .object("groups", "without a width, a number of GPUs, a tensor degree: mean of the three", &PooledTable::groups,
              score_keys())
      .object("layouts_corrected", "layouts, with a residual layer of the table's other runs",
              &PooledTable::layouts_corrected, score_keys())
      .object("groups_corrected", "groups, with a residual layer of the table's other runs",
              &PooledTable::groups_corrected, score_keys());
}

// Further columns of the fit.
Description<PooledTable> other_columns() {
  const auto shows = [](auto PooledTable::*member) {
    return [member](const PooledTable& table) { return error_text(table.*member); };
  };
  return Description<PooledTable>()
      .only_column("trainer", [](const PooledTable& table) { return table.trainer; })
      .only_column("machine", [](const PooledTable& table) { return table.machine; })
      .only_column("by the book", shows(&PooledTable::book))
      .only_column("in sample", shows(&PooledTable::in_sample))
      .only_column("layouts out", shows(&PooledTable::layouts))
      .only_column("groups out", shows(&PooledTable::groups));
}

// Columns of the predictions with a residual layer per table.
Description<PooledTable> corrected_columns() {
  Description<PooledTable> columns;
  columns.only_column("trainer", [](const PooledTable& table) { return table.trainer; })
      .only_column("machine", [](const PooledTable& table) { return table.machine; });
  const auto show = [&](const std::string& name, PooledScore PooledTable::*member) {
    columns.only_column(name, [member](const PooledTable& table) { return error_text(table.*member); })
        .only_column("interval", [member](const PooledTable& table) { return interval_text(table.*member); });
  };
  show("layouts out", &PooledTable::layouts), show("with the layer", &PooledTable::layouts_corrected);
  show("groups out", &PooledTable::groups), show("with the layer", &PooledTable::groups_corrected);
  return columns;
}

Description<PooledConstant> constant_keys() {
  return Description<PooledConstant>()
      .key("name", "text", "of the constant", &PooledConstant::name)
      .column("constant")
      .key("trainer", "text", "whose deviation it is; empty: all trainers'", &PooledConstant::trainer)
      .column("trainer")
      .key("machine", "text", "whose deviation it is; empty: all machines'", &PooledConstant::machine)
      .column("machine")
      .key("unit", "text", "of book and value; a deviation is a factor", &PooledConstant::unit)
      .key("meaning", "text", "what it prices", &PooledConstant::meaning)
      .key("source", "text", "of the book value", &PooledConstant::source)
      .key("book", "its own", "before the fit", &PooledConstant::book)
      .column("book", [](double value) { return fmt::format("{:.3g}", value); })
      .key("value", "its own", "after it", &PooledConstant::value)
      .column("fitted", [](double value) { return fmt::format("{:.3g}", value); })
      .key("spread", "-", "of the logarithm: how sure the book is", &PooledConstant::spread)
      .column("book's spread", [](double value) { return fmt::format("{:.2f}", value); })
      .key("deviation", "-", "of the logarithm: standard deviation after the fit", &PooledConstant::deviation)
      .column("left", [](double value) { return fmt::format("{:.2f}", value); })
      .key("from_book", "spreads", "ln(value / book) / spread", &PooledConstant::from_book)
      .column("off by", [](double value) { return fmt::format("{:+.1f}", value); });
}

Description<PooledEffect::Table> effect_table_keys() {
  return Description<PooledEffect::Table>()
      .key("trainer", "text", "of the table", &PooledEffect::Table::trainer)
      .key("machine", "text", "of the table", &PooledEffect::Table::machine)
      .include(error_keys(), &PooledEffect::Table::without);
}

Description<PooledEffect> effect_keys() {
  return Description<PooledEffect>()
      .key("name", "text", "of the constant", &PooledEffect::name)
      .column("without")
      .object("without", "error of the fit to all runs, mean over tables, with the constant without effect",
              &PooledEffect::without, error_keys())
      .wide_column("in sample", [](const PooledEffect& effect) { return error_text(effect.without); })
      .only_column("bias", [](const PooledEffect& effect) { return fmt::format("{:+.1f}", effect.without.bias); })
      .key("meaning", "text", "what it prices", &PooledEffect::meaning)
      .column("what it prices")
      .list("tables", "the same of each table", &PooledEffect::tables, effect_table_keys());
}

const Description<PooledValidation>& description() {
  static const Description<PooledValidation> description =
      Description<PooledValidation>()
          .list("tables", "one object per trainer and machine", &PooledValidation::tables, table_keys())
          .object("mean", "over tables", &PooledValidation::mean, table_keys())
          .object("larger", "the same over those of more than ten runs, which have every figure",
                  &PooledValidation::larger, table_keys())
          .key("covered", "percent", "of all runs within the 90 % interval, with nothing of yours",
               &PooledValidation::covered)
          .key("covered_after_3", "percent", "the same after 3 runs of a table, of its others",
               &PooledValidation::covered_after_3)
          .key("effective_constants", "count", "sum of 1 - variance after the fit / before it",
               &PooledValidation::effective)
          .list("effects", "what each constant of its own effect contributes, the largest first",
                &PooledValidation::effects, effect_keys())
          .list("constants", "shared ones, then deviations of trainers, machines and both",
                &PooledValidation::constants, constant_keys())
          .key("not_priced", "list of text", "runs without a prediction, each with the reason",
               &PooledValidation::not_priced);
  return description;
}

// The first line.
std::string expectation(const PooledValidation& validation) {
  const double nothing = validation.mean.paper.error.mean;
  if (std::isnan(nothing)) return "These runs are of one trainer, so nothing else says what to expect of it.\n";
  std::string text =
      fmt::format("Expect a step time to be {:.1f} % off with nothing of yours (mean over tables).", nothing);
  const PooledTable& larger = validation.larger;
  if (larger.rows == 0) return text + '\n';
  text += fmt::format(" Of tables with more runs than ten: {:.1f} %", larger.paper.error.mean);
  for (std::size_t way = 0; way < runs_of_own.size(); ++way)
    text += fmt::format(", {:.1f} % after {}", larger.after[way].error.mean,
                        counted(static_cast<std::int64_t>(runs_of_own[way]), "run"));
  return text + " of yours.\n";
}

// Nothing where no paper could be left out.
std::string covered_text(const PooledValidation& validation) {
  if (std::isnan(validation.covered)) return "";
  std::string text = fmt::format("Of all runs {:.1f} % lie in the interval", validation.covered);
  if (!std::isnan(validation.covered_after_3)) text += fmt::format(", {:.1f} % after 3", validation.covered_after_3);
  return text + ", each table by as many as it has.\n";
}

}  // namespace

std::vector<AnswerKeys> pooled_answers() { return {{"validate --pooled --json", description().keys()}}; }

std::string pooled_json(const PooledValidation& validation) { return description().text(validation); }

std::string pooled_text(const PooledValidation& validation) {
  std::vector<PooledTable> tables = validation.tables;
  tables.push_back(validation.mean);
  if (validation.larger.rows > 0 && validation.larger.rows < validation.mean.rows) tables.push_back(validation.larger);
  std::string text =
      expectation(validation) +
      "\nErrors of step times, regret: percent, mean / median. Nothing of yours: without any run of the "
      "trainer.\nInterval: runs within that of 90 %, and half of its width. Regret of the layout chosen with "
      "nothing of yours;\nnone fits, out of memory: of the tables of layouts, those of which nothing is "
      "recommended, and whose choice ran out.\n\n" +
      aligned_table(table_keys().table(tables)) + covered_text(validation) +
      "\nThe same, with runs of the trainer in the fit:\n\n" + aligned_table(other_columns().table(tables)) +
      "\nWith a residual layer: a smooth correction per trainer and machine, of the runs that are not left out. No\n"
      "other number here has it, nor has any other command.\n\n" +
      aligned_table(corrected_columns().table(tables));
  std::vector<PooledConstant> shown;
  for (const PooledConstant& each : validation.constants)
    if ((each.trainer.empty() && each.machine.empty()) || std::abs(each.from_book) >= 1) shown.push_back(each);
  text += "\nWhat each effect contributes: the error in sample without it, nothing fitted again:\n\n" +
          aligned_table(effect_keys().table(validation.effects));
  text += fmt::format("\n{:.1f} effective constants. Shared ones, and deviations of one spread and more:\n\n",
                      validation.effective) +
          aligned_table(constant_keys().table(shown));
  if (!validation.not_priced.empty()) {
    text += fmt::format("\n{} not priced:\n", counted(static_cast<std::int64_t>(validation.not_priced.size()), "run"));
    for (const std::string& reason : validation.not_priced) text += "  " + reason + '\n';
  }
  return text;
}

std::string pooled_rows_csv(const PooledValidation& validation) {
  std::string text = csv_line({"trainer", "machine", "run", "measured_s", "book_s", "in_sample_s", "layouts_out_s",
                               "layouts_corrected_s", "paper_out_s", "low_s", "high_s"});
  const auto number = [](double value) { return std::isnan(value) ? std::string() : fmt::format("{:.6g}", value); };
  for (const PooledRun& run : validation.runs)
    text += csv_line({run.trainer, run.machine, run.words, number(run.measured_s), number(run.book_s),
                      number(run.in_sample_s), number(run.layouts_s), number(run.layouts_corrected_s),
                      number(run.paper_s), number(run.low_s), number(run.high_s)});
  return text;
}

}  // namespace slipway::scenarios
