// Temporary driver.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "models/trace/statistics.h"
#include "scenarios/command_line/command.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/files/files.h"
#include "scenarios/tables/formats.h"
#include "scenarios/validate/pooled_rows.h"
#include "schedules/graph/parallel.h"

namespace slipway::scenarios {

int pooled_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  const std::string dump = args.size() > 0 ? args[0] : "";
  std::vector<PublishedTable> tables;
  for (const EmbeddedFile& file : embedded_tables()) {
    std::istringstream in{std::string(file.text)};
    tables.push_back(read_table(in, std::string(file.path)));
  }
  std::vector<PricedRun> runs;
  std::vector<std::string> names, papers;
  std::map<std::string, int> size;
  const auto name_of_row = [](const PublishedRow& row) { return row.trainer + " " + row.machine; };
  std::vector<const PublishedRow*> rows;
  for (const PublishedTable& table : tables)
    for (const PublishedRow& row : table.rows) {
      if (exclusion_of(row) != Exclusion::none || !row.unpriceable.empty()) continue;
      try {
        runs.emplace_back(row);
      } catch (const std::invalid_argument& error) {
        err << table.file << ":" << row.line << ": " << error.what() << "\n";
        continue;
      }
      names.push_back(name_of_row(row));
      papers.push_back(row.trainer);
      rows.push_back(&row);
      ++size[names.back()];
    }
  std::vector<PooledRow> pooled_rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    pooled_rows.push_back(runs[i].row());
    pooled_rows.back().weight = std::min(1.0, 60.0 / size[names[i]]);
  }
  const auto clock = [begin = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto price_of = [&](const std::vector<std::size_t>& which) {
    PooledPrices prices;
    prices.replay = [&runs, which](const std::vector<StepConstants>& constants) {
      schedules::each_in_parallel(which.size(), 1000000, [&](std::size_t i) { runs[which[i]].replay(constants[i]); });
    };
    prices.seconds = [&runs, which](const std::vector<StepConstants>& constants) {
      std::vector<double> seconds(which.size());
      schedules::each_in_parallel(which.size(), 1000000, [&](std::size_t i) { seconds[i] = runs[which[i]].seconds(constants[i], nullptr); });
      return seconds;
    };
    prices.slopes = [&runs, which](const std::vector<StepConstants>& constants) {
      std::vector<std::vector<double>> slopes(which.size());
      schedules::each_in_parallel(which.size(), 1000000, [&](std::size_t i) { runs[which[i]].seconds(constants[i], &slopes[i]); });
      return slopes;
    };
    return prices;
  };
  const auto subset = [&](const std::vector<std::size_t>& which) {
    std::vector<PooledRow> some;
    for (const std::size_t i : which) some.push_back(pooled_rows[i]);
    return some;
  };
  std::vector<std::size_t> all(runs.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  using Column = std::vector<double>;
  const auto predicted = [&](const std::vector<std::size_t>& which, const PooledConstants& pooled, Column& column,
                             Column* spreads) {
    std::vector<StepConstants> constants;
    for (const std::size_t i : which) constants.push_back(constants_of(pooled, pooled_rows[i].trainer, pooled_rows[i].machine));
    std::vector<std::vector<double>> slopes(which.size());
    schedules::each_in_parallel(which.size(), 1000000, [&](std::size_t i) {
      PricedRun run = runs[which[i]];
      column[which[i]] = run.replay(constants[i]);
      if (spreads != nullptr) run.seconds(constants[i], &slopes[i]);
    });
    for (std::size_t i = 0; i < which.size() && spreads != nullptr; ++i)
      (*spreads)[which[i]] = spread_of(pooled, pooled_rows[which[i]].trainer, pooled_rows[which[i]].machine, slopes[i]);
  };
  Column book(runs.size()), in_sample(runs.size()), paper(runs.size()), spread(runs.size()), spread_in(runs.size());
  PooledConstants nothing;
  predicted(all, nothing, book, nullptr);
  err << fmt::format("{:.1f} s: replayed by the book\n", clock());
  const PooledConstants fit = fit_pooled(pooled_rows, price_of(all));
  err << fmt::format("{:.1f} s: fitted; {} coordinates, {:.1f} effective\n", clock(), fit.coordinates.size(),
                     effective_constants(fit));
  predicted(all, fit, in_sample, &spread_in);
  std::set<std::string> each(papers.begin(), papers.end());
  PooledOptions options;
  options.start = &fit;
  options.replays = 0;
  for (const std::string& left : each) {
    std::vector<std::size_t> kept, out_of;
    for (std::size_t i = 0; i < runs.size(); ++i) (papers[i] == left ? out_of : kept).push_back(i);
    const PooledConstants without = fit_pooled(subset(kept), price_of(kept), options);
    predicted(out_of, without, paper, &spread);
    err << fmt::format("{:.1f} s: without {}\n", clock(), left);
  }
  const auto line = [&](const Column& column, const std::string& table) {
    std::vector<double> errors;
    double mean = 0, bias = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (names[i] != table) continue;
      const double error = 100 * (column[i] / pooled_rows[i].measured_s - 1);
      errors.push_back(std::abs(error));
      mean += std::abs(error), bias += error;
    }
    const double n = static_cast<double>(errors.size());
    return std::array{mean / n, median(errors), bias / n};
  };
  std::array<double, 6> sums{};
  for (const auto& [table, count] : size) {
    const auto a = line(book, table), b = line(in_sample, table), c = line(paper, table);
    out << fmt::format("{:34} {:4}  book {:5.1f}/{:5.1f} {:+6.1f}   in sample {:5.1f}/{:5.1f} {:+6.1f}   paper out {:5.1f}/{:5.1f} {:+6.1f}\n",
                       table, count, a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]);
    for (int k = 0; k < 2; ++k) sums[k] += a[k], sums[2 + k] += b[k], sums[4 + k] += c[k];
  }
  const double n = static_cast<double>(size.size());
  out << fmt::format("{:39}  book {:5.1f}/{:5.1f}          in sample {:5.1f}/{:5.1f}          paper out {:5.1f}/{:5.1f}\n", "mean over tables",
                     sums[0] / n, sums[1] / n, sums[2] / n, sums[3] / n, sums[4] / n, sums[5] / n);
  const auto constants = step_constants();
  for (std::size_t c = 0; c < fit.coordinates.size(); ++c) {
    const auto& at = fit.coordinates[c];
    const double z = fit.values[c] / at.spread;
    if (!at.machine.empty() || !at.trainer.empty()) {
      if (std::abs(z) < 0.5) continue;
    }
    out << fmt::format("{:20} {:20} {:12} {:10.4g} x {:.3f}  z {:+.2f}  sd {:.2f} of {:.2f}\n", constants[at.constant].name, at.trainer,
                       at.machine, constants[at.constant].book, std::exp(fit.values[c]), z,
                       std::sqrt(fit.covariance[c * fit.coordinates.size() + c]), at.spread);
  }
  if (!dump.empty()) {
    OutputFile file(dump);
    file.stream() << "table,line,words,measured,book,in_sample,paper_out,spread\n";
    for (std::size_t i = 0; i < runs.size(); ++i)
      file.stream() << names[i] << "," << rows[i]->line << ",\"" << in_words(*rows[i]) << "\"," << pooled_rows[i].measured_s << "," << book[i]
                    << "," << in_sample[i] << "," << paper[i] << "," << spread[i] << "\n";
    file.commit();
  }
  return 0;
}

}  // namespace slipway::scenarios
