#include "scenarios/basis/basis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "scenarios/answers/description.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/language/load_stack.h"
#include "scenarios/tables/formats.h"
#include "scenarios/tables/memory_refit.h"
#include "schedules/time/stack_pace.h"

namespace slipway::scenarios {

namespace {

// Published rows and scenarios hold the same Step, so one function reads both.
struct Quantity {
  const char* name;
  double (*of)(const Step& step);
};

constexpr std::array quantities{
    Quantity{"tensor", [](const Step& s) { return static_cast<double>(s.layout.tensor); }},
    Quantity{"pipeline", [](const Step& s) { return static_cast<double>(s.layout.pipeline); }},
    Quantity{"chunks", [](const Step& s) { return static_cast<double>(s.layout.chunks); }},
    Quantity{"context", [](const Step& s) { return static_cast<double>(s.layout.context); }},
    Quantity{"zero", [](const Step& s) { return static_cast<double>(s.layout.zero); }},
    Quantity{"sequence", [](const Step& s) { return static_cast<double>(s.model->sequence); }},
    Quantity{"micro-batch", [](const Step& s) { return static_cast<double>(s.micro_batch); }},
    Quantity{"GPUs", [](const Step& s) { return static_cast<double>(rank_count(s.layout)); }},
};

using Word = std::optional<std::string>;  // none: a run without that choice

Word sequence_parallel_word(const Step& s) {
  return s.layout.tensor > 1 ? Word(s.layout.sequence_parallel ? "true" : "false") : std::nullopt;
}

// All schedules are the same without a pipeline. The chunks distinguish interleaving.
Word schedule_word(const Step& s) {
  if (s.layout.pipeline == 1) return std::nullopt;
  if (s.actions) return "of a CSV";
  return s.schedule == "interleaved-1f1b" ? "1f1b" : s.schedule;
}

// Both 16-bit types have the same price.
std::string dtype_word(Dtype dtype) { return bytes_of(dtype) == 2 ? "of 16 bits" : name_of(dtype); }

struct Choice {
  const char* name;
  Word (*of)(const Step& step);
};

// Attention kernels are left to the formula (TimeModel::outside), which prices many of them alike.
constexpr std::array choices{
    Choice{"recompute", [](const Step& s) { return Word(name_of(s.recompute)); }},
    Choice{"schedule", schedule_word},
    Choice{"sequence parallel", sequence_parallel_word},
    Choice{"dtype", [](const Step& s) { return Word(dtype_word(s.dtype)); }},
};

bool takes_part(const PublishedRow& row, FittedOf of) {
  if (of == FittedOf::memory) return has_memory_result(row);
  return row.unpriceable.empty() && exclusion_of(row) == Exclusion::none;
}

struct Range {
  double least = 0, most = 0;
};
struct Ranges {
  std::vector<Range> quantities;               // parallel to the table `quantities`; empty: no row
  std::vector<std::set<std::string>> choices;  // parallel to the table `choices`
};

// Ranges over the rows of this trainer on this machine that take part in a fit (stack_text.cpp).
Ranges ranges_of(const std::string& trainer, const std::string& machine, FittedOf of) {
  Ranges ranges;
  ranges.choices.resize(choices.size());
  for (const PublishedRow& row : published_rows()) {
    if (row.trainer != trainer || row.machine != machine || !takes_part(row, of)) continue;
    const bool first = ranges.quantities.empty();
    ranges.quantities.resize(quantities.size());
    for (std::size_t i = 0; i < quantities.size(); ++i) {
      Range& range = ranges.quantities[i];
      const double value = quantities[i].of(row.step);
      range = first ? Range{value, value} : Range{std::min(range.least, value), std::max(range.most, value)};
    }
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (const Word word = choices[i].of(row.step)) ranges.choices[i].insert(*word);
  }
  return ranges;
}

const Ranges& known_ranges(const std::string& trainer, const std::string& machine, FittedOf of) {
  static std::map<std::tuple<std::string, std::string, FittedOf>, Ranges> known;
  const auto found = known.find({trainer, machine, of});
  return found != known.end() ? found->second : known[{trainer, machine, of}] = ranges_of(trainer, machine, of);
}

bool is_built_in(const Scenario& scenario, const std::string& machine, FittedOf of) {
  const Stack* known = built_in_stack(scenario.stack->trainer);
  if (known == nullptr) return false;
  if (of == FittedOf::memory) return scenario.stack_file.empty();
  const StackTime *here = time_on(*scenario.stack, machine), *there = time_on(*known, machine);
  return here != nullptr && there != nullptr && values_of(*here) == values_of(*there);
}

}  // namespace

std::vector<OutsideFit> outside_fit(const Scenario& scenario, const std::string& machine, FittedOf of) {
  std::vector<OutsideFit> outside;
  if (!scenario.stack || !is_built_in(scenario, machine, of)) return outside;
  const Ranges& ranges = known_ranges(scenario.stack->trainer, machine, of);
  for (std::size_t i = 0; i < ranges.quantities.size(); ++i) {
    const double here = quantities[i].of(scenario.step);
    const auto [least, most] = ranges.quantities[i];
    if (here < least || here > most) outside.push_back({quantities[i].name, here, least, most, "", {}});
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Word here = choices[i].of(scenario.step);
    const std::set<std::string>& fitted = ranges.choices[i];
    if (here && !fitted.empty() && !fitted.contains(*here))
      outside.push_back({choices[i].name, 0, 0, 0, *here, {fitted.begin(), fitted.end()}});
  }
  return outside;
}

std::optional<OutsideFit> short_slices(const Scenario& scenario, const std::string& machine) {
  if (scenario.step.slices < 2) return std::nullopt;
  const auto tokens_of = [](const PublishedRow& row) {
    return static_cast<double>(row.step.micro_batch * row.step.model->sequence) / row.step.layout.context;
  };
  OutsideFit found{"tokens of a slice", 0, 0, 0, "", {}};
  found.here = static_cast<double>(scenario.step.micro_batch * scenario.step.model->sequence) / scenario.step.slices /
               scenario.step.layout.context;
  bool here = false;  // a row of this machine was found
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

namespace {

std::vector<std::string> stacks_timed_on(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_stacks()) {
    const Stack* stack = built_in_stack(file.name);
    const bool timed = std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
      return time_on(*stack, group.machine.name) != nullptr;
    });
    if (timed) names.emplace_back(file.name);
  }
  return names;
}

void add_trainers_times(const Scenario& scenario, Basis& basis) {
  basis.trainer = scenario.stack->trainer;
  const NodeGroup& first = scenario.cluster.groups.front();
  const StepWork work = step_work_of(scenario.step, first.machine, first.gpus_per_node);
  for (const char* feature : scenario.stack->model->outside(work)) basis.not_priced.emplace_back(feature);
  for (const char* feature : unknown_to_formulas(scenario.step.model)) basis.not_priced.emplace_back(feature);
  for (const NodeGroup& group : scenario.cluster.groups)
    if (basis.outside.empty()) basis.outside = outside_fit(scenario, group.machine.name, FittedOf::times);
}

std::string origin_of(const std::string& file, const Provenance& provenance) {
  if (provenance.source.empty()) return file + ": its numbers have no stated source (provenance.source)";
  return file + ": " + provenance.source + (provenance.date.empty() ? "" : ", " + provenance.date);
}

void add_own_tables(const Scenario& scenario, Basis& basis) {
  const std::vector<NodeGroup>& groups = scenario.cluster.groups;
  if (const BlockTable& table = groups.front().machine.blocks; !table.empty())
    basis.blocks = table.name + " (" + table.source + ")";
  for (std::size_t i = 0; i < groups.size() && i < scenario.machine_files.size(); ++i) {
    if (scenario.machine_files[i].empty()) continue;
    const std::string origin = origin_of(scenario.machine_files[i], groups[i].machine.provenance);
    if (std::find(basis.own_profiles.begin(), basis.own_profiles.end(), origin) == basis.own_profiles.end())
      basis.own_profiles.push_back(origin);
  }
}

}  // namespace

Basis basis_of(const Scenario& scenario) {
  Basis basis;
  add_own_tables(scenario, basis);
  if (scenario.stack && !scenario.trainer.machine.empty()) {
    basis.memory_trainer = scenario.trainer.trainer;
    basis.memory_outside = outside_fit(scenario, scenario.trainer.machine, FittedOf::memory);
  }
  if (has_pace(scenario)) {
    add_trainers_times(scenario, basis);
    basis.slices = short_slices(scenario, scenario.cluster.groups.front().machine.name);
    return basis;
  }
  basis.book_values = scenario.cluster.groups.front().machine.blocks.empty() &&
                      std::any_of(scenario.machine_files.begin(), scenario.machine_files.end(),
                                  [](const std::string& file) { return file.empty(); });
  if (!basis.book_values) return basis;
  basis.fitted_here = stacks_timed_on(scenario.cluster);
  basis.slices = short_slices(scenario, scenario.cluster.groups.front().machine.name);
  return basis;
}

Basis without_memory(Basis basis) {
  basis.memory_trainer.clear();
  basis.memory_outside.clear();
  return basis;
}

// The text of a basis, for one scenario or for many points of a study, and its JSON.

namespace {

std::string book_text(const Basis& basis) {
  const std::string names = fmt::format("{}", fmt::join(basis.fitted_here, ", "));
  return "No trainer's pace: book values of the hardware, " + book_error_text() +
         (names.empty() ? ". No trainer was fitted on this machine.\n"
                        : ".\nTrainers fitted on this machine, for cluster.stack: " + names + ".\n");
}

// Texts in the order of their first appearance, with their counts.
struct Tally {
  std::vector<std::pair<std::string, int>> entries;
  void add(const std::string& text) {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == text; });
    found == entries.end() ? void(entries.emplace_back(text, 1)) : void(++found->second);
  }
};

// "tensor 16 (fitted: 1 to 8) in 2 of 6 points, micro-batch 8 (fitted: 1 to 4)"
std::string counted_text(const Tally& tally, std::size_t points, const char* noun) {
  std::string text;
  for (const auto& [what, count] : tally.entries) {
    text += (text.empty() ? "" : ", ") + what;
    if (static_cast<std::size_t>(count) < points) text += fmt::format(" in {} of {} {}s", count, points, noun);
  }
  return text;
}

}  // namespace

std::string book_error_text() {
  return fmt::format("on average {} to {} % off published runs, mostly too fast", book_error.least_percent,
                     book_error.most_percent);
}

std::string without_empty_line(const std::string& paragraph) {
  return paragraph.empty() ? "" : paragraph.substr(0, paragraph.size() - 1);
}

std::string empty_line_first(const std::string& paragraph) {
  return paragraph.empty() ? "" : "\n" + without_empty_line(paragraph);
}

std::string memory_basis_text(const Basis& basis) {
  Basis memory;
  memory.memory_trainer = basis.memory_trainer;
  memory.memory_outside = basis.memory_outside;
  return basis_text({memory}, "");
}

// Settings outside the fit of times are not repeated for memory, whose fitted runs are mostly the same.
std::string basis_text(const Basis& basis) {
  Basis once = basis;
  std::erase_if(once.memory_outside, [&](const OutsideFit& each) {
    return std::any_of(basis.outside.begin(), basis.outside.end(),
                       [&](const OutsideFit& printed) { return printed.what == each.what; });
  });
  return basis_text({once}, "");
}

std::string basis_text(const std::vector<Basis>& points, const char* noun) {
  Tally book, blocks, own_profiles, slices;
  std::map<std::string, Tally> not_priced, outside, memory;
  for (const Basis& point : points) {
    if (point.book_values) book.add(book_text(point));
    if (!point.blocks.empty()) blocks.add(point.blocks);
    for (const std::string& origin : point.own_profiles) own_profiles.add(origin);
    if (point.slices) slices.add(describe(*point.slices));
    for (const std::string& feature : point.not_priced) not_priced[point.trainer].add(feature);
    for (const OutsideFit& each : point.outside) outside[point.trainer].add(describe(each));
    for (const OutsideFit& each : point.memory_outside) memory[point.memory_trainer].add(describe(each));
  }
  const auto counted = [&](const Tally& tally) { return counted_text(tally, points.size(), noun); };
  std::string text;
  for (const auto& [what, count] : book.entries)
    text += (static_cast<std::size_t>(count) < points.size() ? fmt::format("{} of {} {}s: ", count, points.size(), noun)
                                                             : "") +
            what;
  if (!blocks.entries.empty()) text += "Blocks take the times of a table, on any machine: " + counted(blocks) + ".\n";
  for (const auto& [origin, count] : own_profiles.entries) text += "Machine profile " + origin + ".\n";
  if (!slices.entries.empty()) text += "Shorter than in any published run, so extrapolated: " + counted(slices) + ".\n";
  for (const auto& [trainer, tally] : not_priced)
    text += "The formula of " + trainer + " does not price: " + counted(tally) + "; such times are guesses.\n";
  for (const auto& [trainer, tally] : outside)
    text += "Outside the runs that " + trainer + " was fitted to: " + counted(tally) + ".\n";
  for (auto& [trainer, tally] : memory) {
    std::erase_if(tally.entries, [&](const auto& entry) {
      const auto& printed = outside[trainer].entries;
      return std::find(printed.begin(), printed.end(), entry) != printed.end();
    });
    if (!tally.entries.empty())
      text += "Outside the runs that the memory of " + trainer + " was fitted to: " + counted(tally) + ".\n";
  }
  return text.empty() ? "" : text + "\n";
}

namespace {

bool is_quantity(const OutsideFit& outside) { return outside.chosen.empty(); }

Description<OutsideFit> outside_keys() {
  return Description<OutsideFit>()
      .key("what", "text", "key or feature of the scenario", &OutsideFit::what)
      .key("here", "number or text", "its value, or the choice",
           [](const OutsideFit& each) {
             return is_quantity(each) ? nlohmann::json(each.here) : nlohmann::json(each.chosen);
           })
      .key("least", "number", "of the fitted runs; present of a quantity", &OutsideFit::least)
      .when(is_quantity)
      .key("most", "number", "of the fitted runs; present of a quantity", &OutsideFit::most)
      .when(is_quantity)
      .key("fitted", "list", "choices of the fitted runs; present of a choice", &OutsideFit::fitted)
      .when([](const OutsideFit& each) { return !is_quantity(each); });
}

bool is_paced(const Basis& basis) { return !basis.trainer.empty(); }

std::string basis_name(const Basis& basis) {
  if (is_paced(basis)) return basis.trainer;
  return basis.book_values ? "book" : "profile";
}

std::vector<std::string> own_sources(const Basis& basis) {
  std::vector<std::string> sources = basis.own_profiles;
  if (!basis.blocks.empty()) sources.push_back(basis.blocks);
  return sources;
}

std::vector<OutsideFit> outside_and_slices(const Basis& basis) {
  std::vector<OutsideFit> outside = basis.outside;
  if (basis.slices) outside.push_back(*basis.slices);
  return outside;
}

}  // namespace

const Description<Basis>& time_basis_keys() {
  const auto is_book = [](const Basis& basis) { return basis.book_values; };
  static const Description<Basis> description =
      Description<Basis>()
          .key("basis", "text",
               "trainer of cluster.stack whose constants price the step; book: built-in machine profiles alone; "
               "profile: a profile or block table of your own; in plan of the winner, present where something fits",
               basis_name)
          .key("book_error", "0..1",
               "list: from, to; how far step times by book values are off published runs; present with basis book",
               [](const Basis&) {
                 return std::vector<double>{book_error.least_percent / 100.0, book_error.most_percent / 100.0};
               })
          .when(is_book)
          .key("fitted_stacks", "list", "stacks that were fitted on these machines; present with basis book",
               &Basis::fitted_here)
          .when(is_book)
          .key("own_sources", "list",
               "sources of times that are not built in: machine profiles (file: source, date), the table of "
               "cluster.block_times; in plan present where something fits",
               own_sources)
          .key("not_priced", "list",
               "features that the trainer's formula of step time has no term for; present with a trainer's pace",
               &Basis::not_priced)
          .when(is_paced)
          .list(
              "outside_fit",
              "values outside the runs to which the trainer's times were fitted, and slices with fewer tokens than any "
              "published run computed at once; present with a trainer's pace, or such slices",
              outside_and_slices, outside_keys())
          .when([](const Basis& basis) { return is_paced(basis) || basis.slices; });
  return description;
}

const Description<Basis>& basis_keys() {
  static const Description<Basis> description =
      Description<Basis>(time_basis_keys())
          .list("memory_outside_fit",
                "values outside the runs to which its memory was fitted; present with cluster.stack, where memory is "
                "reported",
                &Basis::memory_outside, outside_keys())
          .when([](const Basis& basis) { return !basis.memory_trainer.empty(); })
          .listed_elsewhere();
  return description;
}

}  // namespace slipway::scenarios
