#include "scenarios/fitted_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "scenarios/embedded_files.h"
#include "scenarios/language/load_stack.h"
#include "scenarios/memory/refit.h"
#include "scenarios/tables/formats.h"

namespace slipway {
namespace {

struct Quantity {
  const char* name;
  double (*of_row)(const PublishedRow& row);
  double (*of_scenario)(const Scenario& scenario);
};

constexpr std::array quantities{
    Quantity{"tensor", [](const PublishedRow& row) { return static_cast<double>(row.shape.sharding.tensor); },
             [](const Scenario& s) { return static_cast<double>(s.layout.tensor); }},
    Quantity{"pipeline", [](const PublishedRow& row) { return static_cast<double>(row.pipeline); },
             [](const Scenario& s) { return static_cast<double>(s.layout.pipeline); }},
    Quantity{"chunks", [](const PublishedRow& row) { return static_cast<double>(row.chunks); },
             [](const Scenario& s) { return static_cast<double>(s.layout.chunks); }},
    Quantity{"context", [](const PublishedRow& row) { return static_cast<double>(row.shape.sharding.context); },
             [](const Scenario& s) { return static_cast<double>(s.layout.context); }},
    Quantity{"zero", [](const PublishedRow& row) { return static_cast<double>(row.zero); },
             [](const Scenario& s) { return static_cast<double>(s.layout.zero); }},
    Quantity{"sequence", [](const PublishedRow& row) { return static_cast<double>(row.model.sequence); },
             [](const Scenario& s) { return static_cast<double>(s.model.sequence); }},
    Quantity{"micro-batch", [](const PublishedRow& row) { return static_cast<double>(row.shape.micro_batch); },
             [](const Scenario& s) { return static_cast<double>(s.schedule.micro_batch); }},
    Quantity{"GPUs", [](const PublishedRow& row) { return static_cast<double>(row.gpus); },
             [](const Scenario& s) { return static_cast<double>(rank_count(s.layout)); }},
};

using Word = std::optional<std::string>;  // nothing: a run without that choice

std::string recompute_word(Recompute recompute) {
  constexpr const char* words[] = {"none", "selective", "full"};
  return words[static_cast<std::size_t>(recompute)];
}

Word sequence_parallel_word(int tensor, bool parallel) {
  return tensor > 1 ? Word(parallel ? "true" : "false") : std::nullopt;
}

// Without a pipeline all schedules are one; interleaving is told by its chunks.
Word schedule_word(const Scenario& s) {
  if (s.layout.pipeline == 1) return std::nullopt;
  if (s.schedule.actions) return "of a CSV";
  return s.schedule.name == "interleaved-1f1b" ? "1f1b" : s.schedule.name;
}

// Both 16-bit types are priced alike.
std::string dtype_word(Dtype dtype) { return bytes_of(dtype) == 2 ? "of 16 bits" : name_of(dtype); }

struct Choice {
  const char* name;
  Word (*of_row)(const PublishedRow& row);
  Word (*of_scenario)(const Scenario& scenario);
};

// Attention kernels are the formula's own affair (TimeModel::outside): many differ in nothing that it prices.
constexpr std::array choices{
    Choice{"recompute", [](const PublishedRow& row) { return Word(recompute_word(row.recompute)); },
           [](const Scenario& s) { return Word(recompute_word(s.schedule.recompute)); }},
    Choice{"schedule", [](const PublishedRow& row) { return row.pipeline > 1 ? Word("1f1b") : std::nullopt; }, schedule_word},
    Choice{"sequence parallel",
           [](const PublishedRow& row) {
             return sequence_parallel_word(row.shape.sharding.tensor, row.shape.sharding.sequence_parallel);
           },
           [](const Scenario& s) { return sequence_parallel_word(s.layout.tensor, s.layout.sequence_parallel); }},
    Choice{"dtype", [](const PublishedRow& row) { return Word(dtype_word(row.shape.dtype)); },
           [](const Scenario& s) { return Word(dtype_word(s.dtype)); }},
};

bool takes_part(const PublishedRow& row, FittedOf of) {
  if (of == FittedOf::memory) return tells_of_memory(row) && has_memory_constants(row);
  return row.unpriceable.empty() && exclusion_of(row) == Exclusion::none;
}

const std::vector<PublishedRow>& published_rows() {
  static const std::vector<PublishedRow> all = [] {
    std::vector<PublishedRow> rows;
    for (const EmbeddedFile& file : embedded_tables()) {
      std::istringstream in{std::string(file.text)};
      for (PublishedRow& row : read_table(in, std::string(file.path)).rows) rows.push_back(std::move(row));
    }
    return rows;
  }();
  return all;
}

struct Range {
  double least = 0, most = 0;
};
struct Ranges {
  std::vector<Range> quantities;                // as `quantities`; empty: no row
  std::vector<std::set<std::string>> choices;  // as `choices`
};

// Of the rows that take part in a fit (stack_text.cpp), of this trainer on this machine.
Ranges ranges_of(const std::string& trainer, const std::string& machine, FittedOf of) {
  Ranges ranges;
  ranges.choices.resize(choices.size());
  for (const PublishedRow& row : published_rows()) {
    if (row.trainer != trainer || row.machine != machine || !takes_part(row, of)) continue;
    const bool first = ranges.quantities.empty();
    ranges.quantities.resize(quantities.size());
    for (std::size_t i = 0; i < quantities.size(); ++i) {
      Range& range = ranges.quantities[i];
      const double value = quantities[i].of_row(row);
      range = first ? Range{value, value} : Range{std::min(range.least, value), std::max(range.most, value)};
    }
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (const Word word = choices[i].of_row(row)) ranges.choices[i].insert(*word);
  }
  return ranges;
}

const Ranges& known_ranges(const std::string& trainer, const std::string& machine, FittedOf of) {
  static std::map<std::tuple<std::string, std::string, FittedOf>, Ranges> known;
  const auto found = known.find({trainer, machine, of});
  return found != known.end() ? found->second : known[{trainer, machine, of}] = ranges_of(trainer, machine, of);
}

bool same_memory(const MemoryConstants& a, const MemoryConstants& b) {
  return std::all_of(memory_parameters().begin(), memory_parameters().end(),
                     [&](const MemoryParameter& each) { return a.*each.value == b.*each.value; });
}

bool is_built_in(const Scenario& scenario, const std::string& machine, FittedOf of) {
  const Stack* known = built_in_stack(scenario.stack->trainer);
  if (known == nullptr) return false;
  if (of == FittedOf::memory)
    return memory_on(*known, machine) != nullptr && same_memory(memory_on(*known, machine)->constants, scenario.trainer);
  const StackTime *here = time_on(*scenario.stack, machine), *there = time_on(*known, machine);
  return here != nullptr && there != nullptr && values_of(*here) == values_of(*there);
}

}  // namespace

std::vector<OutsideFit> outside_fit(const Scenario& scenario, const std::string& machine, FittedOf of) {
  std::vector<OutsideFit> outside;
  if (!scenario.stack || !is_built_in(scenario, machine, of)) return outside;
  const Ranges& ranges = known_ranges(scenario.stack->trainer, machine, of);
  for (std::size_t i = 0; i < ranges.quantities.size(); ++i) {
    const double here = quantities[i].of_scenario(scenario);
    const auto [least, most] = ranges.quantities[i];
    if (here < least || here > most) outside.push_back({quantities[i].name, here, least, most, "", {}});
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Word here = choices[i].of_scenario(scenario);
    const std::set<std::string>& fitted = ranges.choices[i];
    if (here && !fitted.empty() && !fitted.contains(*here))
      outside.push_back({choices[i].name, 0, 0, 0, *here, {fitted.begin(), fitted.end()}});
  }
  return outside;
}

std::optional<OutsideFit> short_slices(const Scenario& scenario, const std::string& machine) {
  if (scenario.schedule.slices < 2) return std::nullopt;
  const auto tokens_of = [](const PublishedRow& row) {
    return static_cast<double>(row.shape.micro_batch * row.shape.sequence) / row.shape.sharding.context;
  };
  OutsideFit found{"tokens of a slice", 0, 0, 0, "", {}};
  found.here = static_cast<double>(scenario.schedule.micro_batch * scenario.model.sequence) / scenario.schedule.slices /
               scenario.layout.context;
  bool here = false;  // of this machine
  for (const PublishedRow& row : published_rows()) {
    const bool same = row.machine == machine;
    if (!takes_part(row, FittedOf::times) || (here && !same)) continue;
    const bool first = found.most == 0 || (same && !here);
    here = here || same;
    found.least = first ? tokens_of(row) : std::min(found.least, tokens_of(row));
    found.most = first ? tokens_of(row) : std::max(found.most, tokens_of(row));
  }
  return found.here < found.least ? std::optional(found) : std::nullopt;
}

std::string describe(const OutsideFit& outside) {
  if (!outside.chosen.empty())
    return fmt::format("{} {} (fitted: {})", outside.what, outside.chosen, fmt::join(outside.fitted, ", "));
  return fmt::format("{} {} (fitted: {})", outside.what, outside.here,
                     outside.least == outside.most ? fmt::format("{}", outside.least)
                                                   : fmt::format("{} to {}", outside.least, outside.most));
}

}  // namespace slipway
