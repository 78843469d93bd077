#include "scenarios/predict/basis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/predict/description.h"

namespace slipway::scenarios {

namespace {

// Fitted runs and scenarios hold the same Step, so one function reads both.
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
  const std::string& whole = schedule_of(s).interleaves;
  return whole.empty() ? s.schedule : whole;
}

// Both 16-bit types have the same price.
std::string dtype_word(Dtype dtype) { return bytes_of(dtype) == 2 ? "of 16 bits" : name_of(dtype); }

Word modules_word(const Step& s) {
  std::string words;
  for (const auto& each : recomputed_module_names)
    if (s.levers.recomputed.has(each.value)) words += (words.empty() ? "" : "+") + std::string(each.name);
  return words.empty() ? "none" : words;
}

// Features that no run of a fit has; only their parts were tested.
Word levers_word(const Step& s) {
  std::string words;
  const auto add = [&](bool is_on, const char* word) {
    if (is_on) words += (words.empty() ? "" : "+") + std::string(word);
  };
  add(s.levers.lora.rank > 0, "LoRA");
  add(s.levers.offloads(), "offload");
  add(s.optimizer.offload_fraction > 0, "optimizer offload");
  add(s.delay_weight_grads, "delayed weight gradients");
  add(s.narrow_habits.dispatches, "tokens of 8 bits");
  add(!s.levers.graphs.empty() && !s.levers.graphs.has(GraphScope::full), "graphs of modules");
  add(s.layout.replicate > 1, "hybrid shards");
  add(dispatches_tokens(s) && s.layout.dispatcher == Dispatcher::hybridep, "hybridep");
  add(s.optimizer.moment_dtype != Dtype::float32, "narrow moments");
  return words.empty() ? "none" : words;
}

Word layers_word(const Step& s) {
  std::string words = has_experts(*s.model) ? "with experts" : "dense";
  const bool latent = std::ranges::any_of(s.model->runs, [](const BlockRun& run) { return is_latent(run.block); });
  return latent ? words + ", latent attention" : words;
}

Word products_word(const Step& s) {
  return s.narrow == NarrowRecipe::none ? "in the dtype" : std::string(name_in(narrow_recipe_names, s.narrow));
}

struct Choice {
  const char* name;
  Word (*of)(const Step& step);
};

constexpr std::array choices{
    Choice{"recompute", [](const Step& s) { return Word(name_of(s.recompute)); }},
    Choice{"recomputed modules", modules_word},
    Choice{"levers", levers_word},
    Choice{"schedule", schedule_word},
    Choice{"sequence parallel", sequence_parallel_word},
    Choice{"dtype", [](const Step& s) { return Word(dtype_word(s.dtype)); }},
    Choice{"products", products_word},
    Choice{"layers", layers_word},
};

constexpr const char* pass_tokens = "tokens of a pass";  // of a rank: not compared as such (short_slices)

void widen(FittedRange& range, bool is_first, double least, double most) {
  range = is_first ? FittedRange{least, most} : FittedRange{std::min(range.least, least), std::max(range.most, most)};
}

void widen(FittedRuns& runs, const std::string& name, double least, double most) {
  const auto [found, is_first] = runs.ranges.try_emplace(name);
  widen(found->second, is_first, least, most);
}

double tokens_of_pass(const Step& step) {
  return static_cast<double>(step.micro_batch * step.model->sequence) / step.layout.context;
}

// All runs of a trainer on a machine as one; empty: of all trainers, on all machines.
FittedRuns runs_of(const PooledConstants& constants, const std::string& trainer, const std::string& machine,
                   FittedOf of) {
  FittedRuns all;
  for (const FittedRuns& each : constants.seen) {
    if (each.of != of || (!trainer.empty() && each.trainer != trainer) || (!machine.empty() && each.machine != machine))
      continue;
    for (const auto& [name, range] : each.ranges) widen(all, name, range.least, range.most);
    for (const auto& [name, words] : each.choices) all.choices[name].insert(words.begin(), words.end());
  }
  return all;
}

// The runs that a scenario is compared with: those of its trainer on the machine; where there is none, all on the
// machine; else all.
struct Compared {
  FittedRuns runs;
  std::string whose;  // "that nanotron was fitted to"
};
Compared compared_runs(const PooledConstants& constants, const std::string& trainer, const std::string& machine,
                       FittedOf of) {
  FittedRuns own = runs_of(constants, trainer, machine, of);
  if (!own.ranges.empty() || of == FittedOf::memory) return {std::move(own), "that " + trainer + " was fitted to"};
  FittedRuns here = runs_of(constants, "", machine, of);
  if (!here.ranges.empty()) return {std::move(here), "published on " + machine};
  return {runs_of(constants, "", "", of), "published"};
}

std::vector<OutsideFit> outside_of(const FittedRuns& runs, const Step& step) {
  std::vector<OutsideFit> outside;
  for (const Quantity& quantity : quantities) {
    const auto range = runs.ranges.find(quantity.name);
    if (range == runs.ranges.end()) continue;
    const double here = quantity.of(step);
    const auto [least, most] = range->second;
    if (here < least || here > most) outside.push_back({quantity.name, here, least, most, "", {}});
  }
  for (const Choice& choice : choices) {
    const auto fitted = runs.choices.find(choice.name);
    if (fitted == runs.choices.end()) continue;
    const Word here = choice.of(step);
    if (here && !fitted->second.contains(*here))
      outside.push_back({choice.name, 0, 0, 0, *here, {fitted->second.begin(), fitted->second.end()}});
  }
  return outside;
}

bool has_runs(const PooledConstants& constants, const std::string& trainer, const std::string& machine) {
  return !runs_of(constants, trainer, machine, FittedOf::times).ranges.empty();
}

std::vector<std::string> trainers_timed_on(const PooledConstants& constants, const Cluster& cluster) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_trainers()) {
    const std::string name(file.name);
    if (std::all_of(cluster.groups.begin(), cluster.groups.end(),
                    [&](const NodeGroup& group) { return has_runs(constants, name, group.machine.name); }))
      names.push_back(name);
  }
  return names;
}

void add_trainers_times(const Scenario& scenario, Basis& basis) {
  const PooledConstants& constants = constants_of(scenario);
  basis.trainer = scenario.trainer.name;
  basis.is_named = scenario.names_trainer;
  if (!basis.is_named) basis.fitted_here = trainers_timed_on(constants, scenario.cluster);
  if (!scenario.trainer_file.empty()) return;
  std::vector<std::string> unseen;
  for (const NodeGroup& group : scenario.cluster.groups) {
    const std::string& machine = group.machine.name;
    if (!has_runs(constants, basis.trainer, machine)) unseen.push_back(machine);
    if (!basis.outside.empty()) continue;
    const Compared compared = compared_runs(constants, basis.trainer, machine, FittedOf::times);
    basis.outside = outside_of(compared.runs, scenario.step);
    basis.compared = compared.whose;
  }
  basis.not_seen = fmt::format("{}", fmt::join(unseen, ", "));
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

std::string unnamed_text(const Basis& basis) {
  const std::string names = fmt::format("{}", fmt::join(basis.fitted_here, ", "));
  return "No trainer is named (cluster.trainer): priced as " + basis.trainer +
         " trains. What yours has of its own is unknown.\n" +
         (names.empty() ? "" : "Trainers with published runs on this machine: " + names + ".\n");
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

bool has_trainer(const Basis& basis) { return !basis.trainer.empty(); }

std::string basis_name(const Basis& basis) { return has_trainer(basis) ? basis.trainer : "profile"; }

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

void add_run(const Step& step, const std::string& trainer, const std::string& machine, FittedOf of,
             std::vector<FittedRuns>& seen) {
  const auto known = std::ranges::find_if(seen, [&](const FittedRuns& each) {
    return each.trainer == trainer && each.machine == machine && each.of == of;
  });
  FittedRuns& runs = known != seen.end() ? *known : seen.emplace_back(FittedRuns{trainer, machine, of, {}, {}});
  for (const Quantity& quantity : quantities) widen(runs, quantity.name, quantity.of(step), quantity.of(step));
  widen(runs, pass_tokens, tokens_of_pass(step), tokens_of_pass(step));
  for (const Choice& choice : choices)
    if (const Word word = choice.of(step)) runs.choices[choice.name].insert(*word);
}

std::vector<OutsideFit> outside_fit(const Scenario& scenario, const std::string& machine, FittedOf of) {
  if (!scenario.trainer_file.empty()) return {};
  return outside_of(compared_runs(constants_of(scenario), scenario.trainer.name, machine, of).runs, scenario.step);
}

std::optional<OutsideFit> short_slices(const Scenario& scenario, const std::string& machine) {
  if (scenario.step.slices < 2) return std::nullopt;
  const PooledConstants& constants = constants_of(scenario);
  FittedRuns runs = runs_of(constants, "", machine, FittedOf::times);
  if (runs.ranges.empty()) runs = runs_of(constants, "", "", FittedOf::times);
  const auto range = runs.ranges.find(pass_tokens);
  if (range == runs.ranges.end()) return std::nullopt;
  const double here = tokens_of_pass(scenario.step) / scenario.step.slices;
  if (here >= range->second.least) return std::nullopt;
  return OutsideFit{"tokens of a slice", here, range->second.least, range->second.most, "", {}};
}

std::string describe(const OutsideFit& outside) {
  if (!outside.chosen.empty())
    return fmt::format("{} {} (fitted: {})", outside.what, outside.chosen, fmt::join(outside.fitted, ", "));
  return fmt::format("{} {} (fitted: {})", outside.what, outside.here,
                     outside.least == outside.most ? fmt::format("{}", outside.least)
                                                   : fmt::format("{} to {}", outside.least, outside.most));
}

Basis basis_of(const Scenario& scenario) {
  Basis basis;
  add_own_tables(scenario, basis);
  if (scenario.names_trainer) {
    basis.memory_trainer = scenario.trainer.name;
    basis.memory_outside = outside_fit(scenario, scenario.cluster.groups.front().machine.name, FittedOf::memory);
  }
  if (is_priced_by_trainer(scenario.cluster)) {
    add_trainers_times(scenario, basis);
    basis.slices = short_slices(scenario, scenario.cluster.groups.front().machine.name);
  }
  return basis;
}

std::optional<StepInterval> interval_of(const PreparedStep& prepared, double step_s) {
  return step_interval(prepared, step_s, basis_of(prepared.scenario).outside.size());
}

Basis without_memory(Basis basis) {
  basis.memory_trainer.clear();
  basis.memory_outside.clear();
  return basis;
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
  Tally unnamed, blocks, own_profiles, slices, unseen;
  std::map<std::string, Tally> outside, memory;
  for (const Basis& point : points) {
    if (!point.trainer.empty() && !point.is_named) unnamed.add(unnamed_text(point));
    if (!point.blocks.empty()) blocks.add(point.blocks);
    for (const std::string& origin : point.own_profiles) own_profiles.add(origin);
    if (point.slices) slices.add(describe(*point.slices));
    if (point.is_named && !point.not_seen.empty()) unseen.add(point.trainer + " on " + point.not_seen);
    for (const OutsideFit& each : point.outside) outside[point.compared].add(describe(each));
    for (const OutsideFit& each : point.memory_outside) memory[point.memory_trainer].add(describe(each));
  }
  const auto counted = [&](const Tally& tally) { return counted_text(tally, points.size(), noun); };
  std::string text;
  for (const auto& [what, count] : unnamed.entries)
    text += (static_cast<std::size_t>(count) < points.size() ? fmt::format("{} of {} {}s: ", count, points.size(), noun)
                                                             : "") +
            what;
  if (!blocks.entries.empty()) text += "Blocks take the times of a table, on any machine: " + counted(blocks) + ".\n";
  for (const auto& [origin, count] : own_profiles.entries) text += "Machine profile " + origin + ".\n";
  if (!slices.entries.empty()) text += "Shorter than in any published run, so extrapolated: " + counted(slices) + ".\n";
  if (!unseen.entries.empty())
    text += "None of the fitted runs is of " + counted(unseen) + ": what it has of its own there is unknown.\n";
  for (const auto& [runs, tally] : outside) text += "Outside the runs " + runs + ": " + counted(tally) + ".\n";
  for (auto& [trainer, tally] : memory) {
    std::erase_if(tally.entries, [&](const auto& entry) {
      const auto& printed = outside["that " + trainer + " was fitted to"].entries;
      return std::find(printed.begin(), printed.end(), entry) != printed.end();
    });
    if (!tally.entries.empty())
      text += "Outside the runs that the memory of " + trainer + " was fitted to: " + counted(tally) + ".\n";
  }
  return text.empty() ? "" : text + "\n";
}

const Description<Basis>& time_basis_keys() {
  static const Description<Basis> description =
      Description<Basis>()
          .key("basis", "text",
               "trainer whose facts price the step, generic where cluster.trainer names none; profile: a profile or "
               "block table of your own; in plan of the winner, present where something fits",
               basis_name)
          .key("fitted_trainers", "list",
               "trainers with published runs on these machines; present where no trainer is named", &Basis::fitted_here)
          .when([](const Basis& basis) { return has_trainer(basis) && !basis.is_named; })
          .key("own_sources", "list",
               "sources of times that are not built in: machine profiles (file: source, date), the table of "
               "cluster.block_times; in plan present where something fits",
               own_sources)
          .key("not_seen", "text",
               "machines on which none of the fitted runs is the trainer's; present with a trainer, else empty",
               &Basis::not_seen)
          .when(has_trainer)
          .list("outside_fit",
                "values outside the trainer's published runs on this machine, or outside all on it where there is "
                "none; and slices "
                "with fewer tokens than any "
                "published run computed at once; present with a trainer, or such slices",
                outside_and_slices, outside_keys())
          .when([](const Basis& basis) { return has_trainer(basis) || basis.slices; });
  return description;
}

const Description<Basis>& basis_keys() {
  static const Description<Basis> description =
      Description<Basis>(time_basis_keys())
          .list("memory_outside_fit",
                "values outside the runs to which its memory was fitted; present with cluster.trainer, where memory is "
                "reported",
                &Basis::memory_outside, outside_keys())
          .when([](const Basis& basis) { return !basis.memory_trainer.empty(); })
          .listed_elsewhere();
  return description;
}

}  // namespace slipway::scenarios
