#include "scenarios/laboratory/kernels/kernel_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>

#include "models/machine/collectives.h"
#include "models/machine/ring.h"
#include "scenarios/files/cells.h"
#include "scenarios/files/csv.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {
namespace {

constexpr double result_bytes = 2;  // results are in 16 bits, whatever the operands

struct ReadRow {
  KernelKey key;
  MeasuredKernel measured;
};

Format format_in(const Cells& cells) { return cells.choice("format", format_names); }

ReadRow gemm_row(const Cells& cells) {
  const Format format = format_in(cells);
  const double m = cells.count("m"), n = cells.count("n"), k = cells.count("k");
  const double bytes = input_bytes(format) * m * k + weight_bytes(format) * n * k + result_bytes * m * n;
  return {{KernelKind::gemm, format, 0, Collective::none}, {GemmShape{m, n, k, bytes}, {}, 0}};
}

// FLOPs of the visible half; heads of the query that share keys and values read them once.
ReadRow attention_row(const Cells& cells) {
  const Format format = format_in(cells);
  const double b = cells.count("sequences"), s = cells.count("tokens"), a = cells.count("heads");
  const double kv_heads = cells.count("kv_heads"), width = cells.count("head_dim");
  const double bytes = result_bytes * b * s * width * 2 * (a + kv_heads);
  return {{KernelKind::attention, format, cells.count("head_dim"), Collective::none},
          {AttentionShape{b, a, s, 2 * b * a * s * s * width, bytes}, {}, 0}};
}

// DeepSeek-V3: 192 numbers of a head's query and key, 128 of its value.
ReadRow latent_attention_row(const Cells& cells) {
  constexpr double query = 192, value = 128;
  const double b = cells.count("sequences"), s = cells.count("tokens"), a = cells.count("heads");
  const double bytes = result_bytes * b * s * a * 2 * (query + value);
  return {{KernelKind::latent_attention, format_in(cells), 0, Collective::none},
          {AttentionShape{b, a, s, b * a * s * s * (query + value), bytes}, {}, 0}};
}

double exponent_in(const Cells& cells) {
  const std::string word = cells.text("distribution"), prefix = "power_law_";
  if (word == "balanced") return 0;
  if (word.starts_with(prefix)) {
    try {
      return std::stod(word.substr(prefix.size()));
    } catch (const std::logic_error&) {
      // not a number: refused below
    }
  }
  throw CellError("column distribution: '" + word + "' is none of balanced, power_law_A (A: a number)");
}

ReadRow grouped_row(const Cells& cells) {
  const Format format = format_in(cells);
  const int experts = cells.count("experts"), chosen = cells.count("experts_per_token");
  const int gpus = cells.count("expert_parallel");
  const double tokens = cells.count("tokens"), exponent = exponent_in(cells);
  if (experts % gpus != 0)
    throw CellError(fmt::format("column expert_parallel: {} does not divide {} experts", gpus, experts));
  const std::vector<double> rows =
      exponent > 0 ? rows_of_fullest_gpu(tokens, chosen, experts, gpus, exponent)
                   : std::vector<double>(static_cast<std::size_t>(experts / gpus), tokens * chosen / experts);
  GroupedGemmShape shape;
  shape.hidden = cells.count("hidden");
  shape.ffn = cells.number("ffn") / cells.count("tensor");
  shape.tokens = tokens;
  for (const double of_expert : rows) shape.rows += of_expert, shape.active += std::min(of_expert, 1.0);
  shape.weight_bytes = 3 * weight_bytes(format) * shape.active * shape.hidden * shape.ffn;
  return {{KernelKind::grouped_gemm, format, 0, Collective::none}, {shape, {}, 0}};
}

ReadRow collective_row(const Cells& cells) {
  const auto collective = cells.choice("collective", collective_names);
  const int members = cells.count("members");
  const double bytes = cells.above_zero("bytes");
  return {
      {KernelKind::collective, Format::bfloat16, 0, collective},
      {CollectiveShape{static_cast<double>(members), bytes, ring_traffic(collective, members, bytes).bytes_per_link},
       {},
       0}};
}

using RowReader = ReadRow (*)(const Cells& cells);

// The columns that only this kind has.
RowReader reader_of(const CsvTable& table) {
  const auto has = [&](const char* column) {
    return std::find(table.header.begin(), table.header.end(), column) != table.header.end();
  };
  if (has("k")) return gemm_row;
  if (has("head_dim")) return attention_row;
  if (has("distribution")) return grouped_row;
  if (has("collective")) return collective_row;
  if (has("heads")) return latent_attention_row;
  throw UsageError(
      fmt::format("{}:{}: its columns are of no known kernel; allowed: those that `slipway kernels --help` "
                  "lists; rename the columns",
                  table.file, table.header_line));
}

bool counts(const ReadRow& row) {
  constexpr double least_message = 1 << 20;
  const auto* message = std::get_if<CollectiveShape>(&row.measured.shape);
  return message == nullptr || message->bytes >= least_message;
}

std::string name_of_row(const CsvTable& table, const CsvRow& row) {
  std::string name;
  for (std::size_t i = 0; i + 1 < row.fields.size(); ++i)
    if (table.header[i] != "gpu") name += (name.empty() ? "" : " ") + row.fields[i];
  return name;
}

void set_rates(KernelTable& table, const KernelKey& key, const Machine& machine) {
  table.kind = key.kind;
  table.casts = key.kind == KernelKind::gemm && key.format >= Format::fp8;
  table.rates = {machine.peak_flops[static_cast<std::size_t>(computes_as(key.format))], machine.memory_bandwidth};
  table.bandwidth = machine.node_link.bandwidth;
  if (key.kind != KernelKind::collective && !(table.rates.flops > 0))
    throw std::invalid_argument("machine " + machine.name + " has no peak_flops for " +
                                name_of(computes_as(key.format)));
}

}  // namespace

std::vector<double> rows_of_fullest_gpu(double tokens, int experts_per_token, int experts, int gpus, double exponent) {
  const double least = 1, most = std::max(0.8 * tokens, 2.0), total = tokens * experts_per_token;
  // The quantiles of a power law between `least` and `most`.
  const double power = 1 - exponent, low = std::pow(least, power), high = std::pow(most, power);
  std::vector<double> rows;
  for (int i = 0; i < experts; ++i) rows.push_back(std::pow(low + (high - low) * (i + 0.5) / experts, 1 / power));
  const double scale = total / std::accumulate(rows.begin(), rows.end(), 0.0);
  for (double& of_expert : rows) of_expert *= scale;
  // No expert gets a token twice: the others get what is too much.
  for (double excess = 1; excess > 1e-9 * total;) {
    double free = 0;
    excess = 0;
    for (double& of_expert : rows) {
      if (of_expert > tokens) excess += of_expert - tokens, of_expert = tokens;
      if (of_expert < tokens) free += of_expert;
    }
    if (free <= 0) break;
    for (double& of_expert : rows)
      if (of_expert < tokens) of_expert *= 1 + excess / free;
  }
  std::mt19937_64 random(3);
  for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random() % i]);
  const auto each = experts / gpus;
  const auto sum_from = [&](int gpu) {
    return std::accumulate(rows.begin() + gpu * each, rows.begin() + (gpu + 1) * each, 0.0);
  };
  int fullest = 0;
  for (int gpu = 1; gpu < gpus; ++gpu)
    if (sum_from(gpu) > sum_from(fullest)) fullest = gpu;
  return {rows.begin() + fullest * each, rows.begin() + (fullest + 1) * each};
}

std::vector<KernelRows> read_kernels(const std::string& file) {
  const CsvTable csv = read_csv_file(file);
  const RowReader reader = reader_of(csv);
  std::map<std::pair<std::string, KernelKey>, KernelTable> tables;
  for (const CsvRow& row : csv.rows) {
    try {
      if (row.fields.size() != csv.header.size())
        throw CellError(fmt::format("{} fields below {} columns", row.fields.size(), csv.header.size()));
      const Cells cells(csv.header, row);
      ReadRow read = reader(cells);
      read.measured.seconds = cells.above_zero("seconds");
      read.measured.name = name_of_row(csv, row);
      KernelTable& table = tables[{cells.text("gpu"), read.key}];
      if (table.rows.empty()) set_rates(table, read.key, built_in_machine(cells.text("gpu")));
      if (counts(read)) table.rows.push_back(std::move(read.measured));
    } catch (const CellError& reason) {
      throw UsageError(fmt::format("{}:{}: {}", file, row.line, reason.what()));
    } catch (const std::invalid_argument& reason) {
      throw UsageError(fmt::format("{}:{}: column gpu: {}", file, row.line, reason.what()));
    }
  }
  std::vector<KernelRows> all;
  for (auto& [name, table] : tables) {
    if (table.rows.size() < least_shapes)
      throw UsageError(
          fmt::format("{}: too few shapes of {} on {} for its constants: {}; allowed: at least {}; measure more", file,
                      name_of(name.second), name.first, table.rows.size(), least_shapes));
    all.push_back(
        {name.first, name.second, std::move(table), values_of(built_in_machine(name.first).kernels, name.second)});
  }
  return all;
}

}  // namespace slipway::scenarios
