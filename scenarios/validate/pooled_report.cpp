#include <fmt/format.h>

#include <cmath>

#include "scenarios/answers/description.h"
#include "scenarios/answers/readable.h"
#include "scenarios/command_line/command.h"
#include "scenarios/tables/csv.h"
#include "scenarios/validate/pooled.h"
#include "scenarios/validate/report.h"

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

Description<PooledTable> table_keys() {
  const auto shows = [](PooledError PooledTable::*member) {
    return [member](const PooledTable& table) { return error_text(table.*member); };
  };
  return Description<PooledTable>()
      .key("trainer", "text", "trainer of the runs", &PooledTable::trainer)
      .column("trainer")
      .key("machine", "text", "their machine profile", &PooledTable::machine)
      .column("machine")
      .key("rows", "count", "scored runs", &PooledTable::rows)
      .column("runs", readable_count)
      .object("book", "error with nothing fitted", &PooledTable::book, error_keys())
      .wide_column("by the book", shows(&PooledTable::book))
      .object("in_sample", "error of the fit to all runs", &PooledTable::in_sample, error_keys())
      .wide_column("in sample", shows(&PooledTable::in_sample))
      .object("layouts", "without a fifth of the layouts", &PooledTable::layouts, error_keys())
      .wide_column("layouts out", shows(&PooledTable::layouts))
      .object("groups", "without a width, a number of GPUs, a tensor degree: mean of the three", &PooledTable::groups,
              error_keys())
      .wide_column("groups out", shows(&PooledTable::groups))
      .object("paper", "without any run of the trainer", &PooledTable::paper, error_keys())
      .wide_column("paper out", shows(&PooledTable::paper))
      .key("covered", "percent", "runs within the 90 % interval, paper out", &PooledTable::covered)
      .column("in 90 %", [](double value) { return fmt::format("{:.0f} %", value); })
      .key("half_width", "percent", "of that interval, (high - low) / (2 prediction), median", &PooledTable::half_width)
      .column("half width", [](double value) { return fmt::format("{:.0f} %", value); });
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

const Description<PooledValidation>& description() {
  static const Description<PooledValidation> description =
      Description<PooledValidation>()
          .list("tables", "one object per trainer and machine", &PooledValidation::tables, table_keys())
          .object("mean", "over tables", &PooledValidation::mean, table_keys())
          .key("effective_constants", "count", "sum of 1 - variance after the fit / before it",
               &PooledValidation::effective)
          .list("constants", "shared ones, then deviations of trainers, machines and both",
                &PooledValidation::constants, constant_keys())
          .key("not_priced", "list of text", "runs without a prediction, each with the reason",
               &PooledValidation::not_priced);
  return description;
}

}  // namespace

std::vector<AnswerKeys> pooled_answers() { return {{"validate --pooled --json", description().keys()}}; }

std::string pooled_json(const PooledValidation& validation) { return description().text(validation); }

std::string pooled_text(const PooledValidation& validation) {
  std::vector<PooledTable> tables = validation.tables;
  tables.push_back(validation.mean);
  std::string text = "Errors of step times in percent, mean / median. The interval is that of paper out.\n\n" +
                     aligned_table(table_keys().table(tables));
  std::vector<PooledConstant> shown;
  for (const PooledConstant& each : validation.constants)
    if ((each.trainer.empty() && each.machine.empty()) || std::abs(each.from_book) >= 1) shown.push_back(each);
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
                               "paper_out_s", "low_s", "high_s"});
  const auto number = [](double value) { return std::isnan(value) ? std::string() : fmt::format("{:.6g}", value); };
  for (const PooledRun& run : validation.runs)
    text += csv_line({run.trainer, run.machine, run.words, number(run.measured_s), number(run.book_s),
                      number(run.in_sample_s), number(run.layouts_s), number(run.paper_s), number(run.low_s),
                      number(run.high_s)});
  return text;
}

}  // namespace slipway::scenarios
