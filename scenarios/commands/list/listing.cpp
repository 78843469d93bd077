#include "scenarios/commands/list/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <stdexcept>

#include "models/machine/topology.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/laboratory/tables/table.h"
#include "scenarios/language/load_constants.h"
#include "scenarios/language/load_model.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/language/nearest.h"
#include "scenarios/trainers/dictionary.h"
#include "schedules/step/action.h"

namespace slipway::scenarios {
namespace {

// The built-in files are tested, so a defect here is Slipway's.
[[noreturn]] void broken(const Defects& defects) {
  throw std::logic_error("a built-in file is broken: " + describe(defects));
}

Model built_in_model(std::string_view name) {
  Defects defects;
  std::optional<Value> document = parse_document("{model: {name: " + std::string(name) + "}}", "", defects);
  if (!document) broken(defects);
  Defects of_the_rest;  // complaints about cluster and schedule, which are missing here
  Settings settings(std::move(*document), scenario_keys(), of_the_rest);
  const std::optional<Model> model = load_model(settings, "");
  if (!model) broken(of_the_rest);
  return *model;
}

std::string in_units(double value, const char* unit) {
  const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(prefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.4g} {}{}", value, prefixes[prefix], unit);
}

std::string link_text(const Link& link) {
  return link.bandwidth > 0 ? fmt::format("{} {}", link.name, in_units(link.bandwidth, "B/s")) : "none";
}

struct NamedDictionary {
  const Dictionary* dictionary;
  std::string version;  // empty: none is named
};

NamedDictionary dictionary_of(const std::string& name, const std::string& topic) {
  if (const Dictionary* itself = built_in_dictionary(name)) return {itself, ""};
  std::vector<std::string> known = dictionary_names();
  for (const EmbeddedFile& file : embedded_trainers())
    if (!built_in_trainer(file.name)->dictionary.empty() && built_in_dictionary(file.name) == nullptr)
      known.emplace_back(file.name);
  const TrainerName trainer = trainer_name(name);
  if (std::find(known.begin(), known.end(), trainer.name) == known.end())
    throw UsageError("no arguments of '" + name + "' are described" +
                     suggestion(trainer.name, known, "slipway list " + topic + " ") +
                     fmt::format("; allowed: {}", fmt::join(known, ", ")));
  Defects defects;
  Reference asked;
  asked.origin.file = "list " + topic;
  asked.key = name;
  const std::optional<Trainer> found = load_trainer(name, asked, defects);
  if (!found) throw UsageError(defects.front().message + "; " + defects.front().remedy);
  return {built_in_dictionary(found->dictionary), found->arguments_version()};
}

std::string versions_text(const std::string& since, const std::string& until) {
  if (since.empty() && until.empty()) return "";
  return (since.empty() ? "" : "since " + since) +
         (until.empty() ? "" : (since.empty() ? "" : " ") + ("until " + until));
}

}  // namespace

std::string type_text(const Key& key) {
  std::string text(name_of(key.type));
  if (key.unit != Unit::pure) text += ", " + std::string(name_of(key.unit));
  return text;
}

std::string allowed_text(const Key& key) {
  if (key.path == "model.name") return "slipway list models";
  if (key.path == "schedule.name") return "slipway list schedules";
  if (key.path == "cluster.fabrics.*.topology.kind") return "slipway list topologies";
  return allowed_by(key);
}

void list_models(std::ostream& out) {
  out << fmt::format("{:<18} {:<6} {:>10} {:>7} {:>7} {:>7} {:>6} {:>4} {:>8} {:>9} {:>8}\n", "model", "family",
                     "parameters", "layers", "hidden", "ffn", "heads", "kv", "vocab", "sequence", "experts");
  for (const EmbeddedFile& file : embedded_models()) {
    const Model model = built_in_model(file.name);
    const Block& block = model.runs[model.runs.size() - 2].block;  // of several kinds, the last
    const char* families[] = {"llama", "gpt", "bert"};
    out << fmt::format("{:<18} {:<6} {:>10} {:>7} {:>7} {:>7} {:>6} {:>4} {:>8} {:>9} {:>8}\n", file.name,
                       families[static_cast<std::size_t>(model.family)],
                       fmt::format("{:.4g} G", static_cast<double>(parameter_count(model)) / 1e9), layer_count(model),
                       block.hidden, block.ffn, block.heads, block.kv_heads, model.runs[0].block.vocab, model.sequence,
                       block.experts > 0 ? fmt::format("{} of {}", block.experts_per_token, block.experts) : "");
  }
  out << "\nmodel.config reads a config.json of model_type\n ";
  int column = 1;
  for (const EmbeddedFile& family : embedded_families()) {
    constexpr int width = 100;
    if (column + static_cast<int>(family.name.size()) >= width) out << "\n ", column = 1;
    out << " " << family.name;
    column += 1 + static_cast<int>(family.name.size());
  }
  out << "\n";
}

void list_machines(std::ostream& out) {
  out << fmt::format("{:<12} {:>16} {:>10} {:>12}  {:<26} {}\n", "machine", "16-bit peak", "memory", "bandwidth",
                     "in a node", "between nodes");
  for (const EmbeddedFile& file : embedded_machines()) {
    Defects defects;
    const std::optional<Machine> machine = machine_from_yaml(std::string(file.text), std::string(file.path), defects);
    if (!machine) broken(defects);
    const double brain = machine->peak_flops[static_cast<std::size_t>(Dtype::bfloat16)];
    const double peak = brain > 0 ? brain : machine->peak_flops[static_cast<std::size_t>(Dtype::float16)];
    out << fmt::format("{:<12} {:>16} {:>10} {:>12}  {:<26} {}\n", file.name,
                       peak > 0 ? in_units(peak, "FLOP/s") : "none", in_units(machine->memory_bytes, "B"),
                       in_units(machine->memory_bandwidth, "B/s"), link_text(machine->node_link),
                       link_text(machine->network_link));
  }
}

void list_trainers(std::ostream& out) {
  out << fmt::format("{:<20} {:>6}  {}\n", "trainer", "facts", "machines with published runs of its steps");
  std::map<std::string_view, std::set<std::string>> machines;
  for (const PublishedRow& row : published_rows())
    if (row.unpriceable.empty() && exclusion_of(row) == Exclusion::none) machines[row.trainer].insert(row.machine);
  for (const EmbeddedFile& file : embedded_trainers())
    out << fmt::format("{:<20} {:>6}  {}\n", file.name, built_in_trainer(file.name)->named,
                       machines.contains(file.name) ? fmt::format("{}", fmt::join(machines[file.name], ", ")) : "none");
}

void list_trainer_keys(std::ostream& out) {
  for (const auto& [name, allowed] : trainer_fact_names()) out << fmt::format("{:<32} {}\n", "facts." + name, allowed);
  for (const MemoryFact& fact : memory_facts())
    out << fmt::format("{:<32} {:<20} {}\n", fmt::format("memory.{}", fact.name), fact.unit, fact.meaning);
}

void list_arguments(std::ostream& out, const std::string& trainer) {
  const auto [dictionary, version] = dictionary_of(trainer, "arguments");
  out << fmt::format("{}, read from {}\n", dictionary->of, dictionary->source);
  if (!dictionary->versions.empty()) out << fmt::format("versions: {}\n", fmt::join(dictionary->versions, ", "));
  out << fmt::format("\n{:<60} {:<13} {:<32} {:<12} {}\n", "argument", "effect", "key", "versions", "why");
  for (const Term& term : dictionary->terms) {
    if (!version.empty() && !is_in(*dictionary, version, term.since, term.until)) continue;
    std::string line =
        fmt::format("{:<60} {:<13} {:<32} {:<12} {}", "--" + term.argument, name_in(effect_names, term.effect),
                    term.key, versions_text(term.since, term.until), term.words);
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

void list_recipes(std::ostream& out, const std::string& trainer) {
  const auto [dictionary, version] = dictionary_of(trainer, "recipes");
  for (const Recipe& recipe : dictionary->recipes) {
    if (!version.empty() && !is_in(*dictionary, version, recipe.since, recipe.until)) continue;
    out << fmt::format("{}: {}\n ", recipe.name, recipe.source);
    for (const auto& [argument, values] : recipe.arguments)
      out << fmt::format(" --{}{}{}", argument, values.empty() ? "" : " ", fmt::join(values, " "));
    out << "\n";
  }
}

void list_constants(std::ostream& out) {
  out << fmt::format("{:<20} {:<20} {:>9} {:>9}  {}\n", "constant", "unit", "book", "fitted", "meaning");
  const StepConstants fitted = constants_of(built_in_constants(), "", "");
  for (const StepConstant& constant : step_constants())
    out << fmt::format("{:<20} {:<20} {:>9.3g} {:>9.3g}  {}\n", constant.name, constant.unit, constant.book,
                       fitted.*constant.value, constant.meaning);
}

void list_schedules(std::ostream& out) {
  for (const Schedule& schedule : all_schedules())
    out << fmt::format("{:<20} {}\n{:<20} layout.chunks = {} unless given\n", schedule.name, schedule.summary, "",
                       schedule.default_chunks);
}

void list_topologies(std::ostream& out) {
  out << fmt::format("{:<16} {}\n", "star", "non-blocking: nothing is shared but the ports");
  for (const Topology& topology : all_topologies()) {
    out << fmt::format("{:<16} {}\n", topology.name, topology.summary);
    for (const TopologyParameter& each : topology.parameters)
      out << fmt::format("{:<16} {:<16} {}; default: {}\n", "", each.name, each.meaning, each.otherwise);
  }
}

void list_keys(std::ostream& out, std::span<const Key> table) {
  for (const Key& key : table)
    out << fmt::format("{}\n    {}\n    {}; default: {}; allowed: {}\n", key.path, key.meaning, type_text(key),
                       default_of(key), allowed_text(key));
}

}  // namespace slipway::scenarios
