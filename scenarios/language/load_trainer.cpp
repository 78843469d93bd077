#include "scenarios/language/load_trainer.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/keys.h"

namespace slipway::scenarios {
namespace {

// Sets the fact and returns "", or returns what is allowed.
using SetFact = std::string (*)(const Value& value, TrainerFacts& facts);

std::string take_flag(const std::string& text, bool& to) {
  if (text != "true" && text != "false") return "true, false";
  to = text == "true";
  return "";
}

std::string take_number(const std::string& text, double& to) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || !(value >= 0)) return "a number from 0";
  to = value;
  return "";
}

template <bool TrainerFacts::*member>
std::string set_flag(const Value& value, TrainerFacts& facts) {
  return take_flag(value.text, facts.*member);
}

template <FlashKernel TrainerFacts::*member>
std::string set_kernel(const Value& value, TrainerFacts& facts) {
  const auto kernel = value_in(flash_names, value.text);
  if (!kernel) return all_names(flash_names);
  facts.*member = *kernel;
  return "";
}

template <double TrainerFacts::*member>
std::string set_number(const Value& value, TrainerFacts& facts) {
  return take_number(value.text, facts.*member);
}

std::string set_reduction(const Value& value, TrainerFacts& facts) {
  const auto by = value_in(reduction_dtype_names, value.text);
  if (!by) return all_names(reduction_dtype_names);
  facts.reduces_in = *by;
  return "";
}

std::string set_narrow_weights(const Value& value, TrainerFacts& facts) {
  SetOf<NarrowRecipe> recipes;
  bool is_good = value.kind == Value::Kind::list;
  for (const Value& item : value.items) {
    const auto recipe = value_in(narrow_recipe_names, item.text);
    is_good = is_good && recipe && *recipe != NarrowRecipe::none;
    if (is_good) recipes.add(*recipe);
  }
  if (!is_good) return "a list of what run.fp8 may be, such as [delayed, mxfp8]; [] for none";
  facts.narrow_weights = recipes;
  return "";
}

const std::map<std::string, SetFact, std::less<>> known_facts = {
    {"ampere", set_kernel<&TrainerFacts::ampere>},
    {"hopper", set_kernel<&TrainerFacts::hopper>},
    {"eager", set_flag<&TrainerFacts::eager>},
    {"accumulate_bytes", set_number<&TrainerFacts::accumulate_bytes>},
    {"dropout", set_flag<&TrainerFacts::dropout>},
    {"cuda_graphs", set_flag<&TrainerFacts::cuda_graphs>},
    {"all_reduces_gradients", set_flag<&TrainerFacts::all_reduces_gradients>},
    {"reduces_each_tensor", set_flag<&TrainerFacts::reduces_each_tensor>},
    {"reduces_in", set_reduction},
    {"overlaps_reduction", set_flag<&TrainerFacts::overlaps_reduction>},
    {"overlaps_gather", set_flag<&TrainerFacts::overlaps_gather>},
    {"blocking_transfers", set_flag<&TrainerFacts::blocking_transfers>},
    {"cuts_transfers", set_flag<&TrainerFacts::cuts_transfers>},
    {"host_driven_collectives", set_flag<&TrainerFacts::host_driven_collectives>},
    {"ring_attention", set_flag<&TrainerFacts::ring_attention>},
    {"gathers_narrow_inputs", set_flag<&TrainerFacts::gathers_narrow_inputs>},
    {"narrow_weights", set_narrow_weights},
    {"caches_narrow_weights", set_flag<&TrainerFacts::caches_narrow_weights>},
    {"balances_layers", set_flag<&TrainerFacts::balances_layers>},
};

std::string all_facts() {
  std::string text;
  for (const auto& [name, set] : known_facts) text += (text.empty() ? "" : ", ") + name;
  return text;
}

class TrainerReader {
 public:
  TrainerReader(Defects& defects, std::string name, std::string version) : defects_(defects) {
    trainer_.facts.name = std::move(name);
    trainer_.version = std::move(version);
  }

  // `asked`: who names the version, for the error of one that is not there.
  std::optional<Trainer> read(const Value& root, const Reference& asked) {
    const std::size_t before = defects_.size();
    if (const Value* versions = root.find("versions")) read_versions(*versions);
    check_version(asked);
    for (const Entry& section : root.entries) {
      if (section.key == "versions") continue;
      if (section.key == "arguments") {
        trainer_.dictionary = section.value.text;
        continue;
      }
      if (section.key == "aliases") continue;  // aliases.h
      if (section.key != "facts" && section.key != "memory" && section.key != "levers") {
        refuse(section.origin, section.key, "unknown key; allowed: facts, memory, levers, arguments, versions",
               "remove it");
        continue;
      }
      if (section.value.kind != Value::Kind::map) {
        refuse(section.origin, section.key, "is no map", "name facts below it");
        continue;
      }
      for (const Entry& entry : section.value.entries) read_fact(entry, section.key);
    }
    if (root.entries.empty()) refuse(root.origin, "facts", "there are neither facts nor memory", "name a fact");
    if (defects_.size() != before) return std::nullopt;
    return trainer_;
  }

 private:
  void refuse(const Origin& origin, const std::string& key, const std::string& problem, const std::string& remedy) {
    defects_.push_back({origin.file, origin.line, key, problem, remedy});
  }

  // A list of names, or a map from them to versions of the dictionary.
  void read_versions(const Value& value) {
    for (const Value& item : value.items) trainer_.versions.push_back({item.text, item.text});
    for (const Entry& entry : value.entries) trainer_.versions.push_back({entry.key, entry.value.text});
    if (trainer_.versions.empty())
      refuse(value.origin, "versions", "names no version; allowed: a list, oldest first", "name one, or remove it");
  }

  std::string all_versions() const {
    std::string text;
    for (const TrainerVersion& each : trainer_.versions) text += (text.empty() ? "" : ", ") + each.name;
    return text;
  }

  // -1: there is no such version.
  std::ptrdiff_t place_of(const std::string& version) const {
    const auto found = std::ranges::find(trainer_.versions, version, &TrainerVersion::name);
    return found == trainer_.versions.end() ? -1 : found - trainer_.versions.begin();
  }

  void check_version(const Reference& asked) {
    if (trainer_.version.empty() || place_of(trainer_.version) >= 0) return;
    const std::string& name = trainer_.facts.name;
    if (trainer_.versions.empty())
      return refuse(asked.origin, asked.key,
                    "there is no version '" + trainer_.version + "': no versions of " + name + " are described",
                    "write " + name + " alone");
    refuse(asked.origin, asked.key,
           "there is no version '" + trainer_.version + "' of " + name + "; allowed: " + all_versions(),
           "choose one of them, or write " + name + " alone, which is " + trainer_.versions.back().name);
  }

  // True if a fact is one of the version that is read.
  bool is_of_version(const Value& fact, const std::string& path) {
    const std::ptrdiff_t last =
        std::max<std::ptrdiff_t>(0, std::ssize(trainer_.versions) - 1);  // 0: none are described
    const std::ptrdiff_t at = trainer_.version.empty() ? last : place_of(trainer_.version);
    std::ptrdiff_t from = 0, to = last;
    for (const char* bound : {"since", "until"}) {
      const Value* named = fact.find(bound);
      if (named == nullptr) continue;
      const std::ptrdiff_t place = place_of(named->text);
      if (place < 0)
        refuse(named->origin, path + "." + bound,
               "there is no version '" + named->text +
                   "'; allowed: " + (trainer_.versions.empty() ? "none, as `versions` is missing" : all_versions()),
               "name one of `versions`");
      (std::string_view(bound) == "since" ? from : to) = place;
    }
    return from <= at && at <= to;
  }

  void read_fact(const Entry& entry, const std::string& section) {
    const std::string path = section + "." + entry.key;
    if (entry.value.kind != Value::Kind::list) return read_value(entry, entry.value, section, path);
    for (const Value& item : entry.value.items) read_value(entry, item, section, path);
  }

  void read_value(const Entry& entry, const Value& fact, const std::string& section, const std::string& path) {
    const Value* value = fact.find("value");
    const Value* source = fact.find("source");
    if (value == nullptr || source == nullptr || source->text.empty())
      return refuse(entry.origin, path, "has no value with a source; allowed: {value: ..., source: ...}",
                    "say where the fact comes from");
    ++trainer_.named;
    if (!is_of_version(fact, path)) return;
    if (section == "memory") {
      trainer_.memory.sources.push_back(entry.key + ": " + source->text);
      return read_memory(entry, *value, path);
    }
    if (section == "levers") return read_lever(entry, *value, path);
    const auto found = known_facts.find(entry.key);
    if (found == known_facts.end())
      return refuse(entry.origin, path, "is no fact; allowed: " + all_facts(), "remove it");
    refuse_unless(found->second(*value, trainer_.facts), *value, path);
  }

  void read_lever(const Entry& entry, const Value& value, const std::string& path) {
    const bool is_lever = entry.key.starts_with("layout.") || entry.key.starts_with("schedule.");
    if (!is_lever || std::ranges::find(scenario_keys(), entry.key, &Key::path) == scenario_keys().end())
      return refuse(entry.origin, path, "is no key of layout or schedule (slipway list keys)", "remove it");
    std::vector<std::string>& values = trainer_.levers[entry.key];
    for (std::size_t at = 0; at <= value.text.size();) {
      const std::size_t end = std::min(value.text.find(", ", at), value.text.size());
      values.push_back(value.text.substr(at, end - at));
      at = end + 2;
    }
  }

  void refuse_unless(const std::string& allowed, const Value& value, const std::string& path) {
    if (!allowed.empty())
      refuse(value.origin, path, in_words(value) + " is not possible; allowed: " + allowed, "choose one");
  }

  // A word of `names`, or what is allowed.
  template <typename Enum, std::size_t count>
  static std::string take_word(const std::string& text, const std::array<Named<Enum>, count>& names, Enum& to) {
    const auto known = value_in(names, text);
    if (!known) return all_names(names);
    to = *known;
    return "";
  }

  void read_memory(const Entry& entry, const Value& value, const std::string& path) {
    MemoryFacts& facts = trainer_.memory;
    if (entry.key == "loss") return refuse_unless(take_word(value.text, loss_memory_names, facts.loss), value, path);
    if (entry.key == "gathered_inputs")
      return refuse_unless(take_word(value.text, gathered_inputs_names, facts.gathered), value, path);
    const auto known = std::ranges::find(memory_facts(), std::string_view(entry.key), &MemoryFact::name);
    if (known == memory_facts().end())
      return refuse(entry.origin, path, "is no fact about memory (slipway list trainer-keys)", "remove it");
    refuse_unless(known->flag != nullptr ? take_flag(value.text, facts.*known->flag)
                                         : take_number(value.text, facts.*known->number),
                  value, path);
  }

  Defects& defects_;
  Trainer trainer_;
};

// A version of a built-in trainer, read on first use; each file is parsed once.
const Trainer* read_built_in(const std::string& name, const std::string& version, const Reference& from,
                             Defects& defects) {
  static std::mutex guard;
  static std::map<std::string, Value, std::less<>> files;
  static std::map<std::string, Trainer, std::less<>> trainers;
  const std::lock_guard lock(guard);
  const std::string own = with_version(name, version);
  if (const auto found = trainers.find(own); found != trainers.end()) return &found->second;
  const auto file = std::ranges::find(embedded_trainers(), std::string_view(name), &EmbeddedFile::name);
  if (file == embedded_trainers().end()) return nullptr;
  if (!files.contains(name)) {
    Defects of_file;
    std::optional<Value> root = parse_document(std::string(file->text), std::string(file->path), of_file);
    if (!root) throw std::logic_error("built-in trainer " + name + ": " + describe(of_file));
    files.emplace(name, std::move(*root));
  }
  auto trainer = TrainerReader(defects, name, version).read(files.find(name)->second, from);
  return trainer ? &trainers.emplace(own, std::move(*trainer)).first->second : nullptr;
}

}  // namespace

TrainerName trainer_name(const std::string& text) {
  const std::size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0) return {text, ""};
  const std::string version = text.substr(at + 1);
  // An @ may be part of a path.
  return looks_like_path(version) ? TrainerName{text, ""} : TrainerName{text.substr(0, at), version};
}

std::string with_version(const std::string& name, const std::string& version) {
  return version.empty() ? name : name + "@" + version;
}

std::string Trainer::arguments_version() const {
  const auto found = std::ranges::find(versions, version, &TrainerVersion::name);
  return found == versions.end() ? "" : found->arguments;
}

std::optional<Trainer> trainer_from_yaml(const std::string& text, const std::string& file, const std::string& name,
                                         Defects& defects, const std::string& version) {
  const std::optional<Value> root = parse_document(text, file, defects);
  if (!root) return std::nullopt;
  Reference asked;
  asked.origin.file = file;
  asked.key = "cluster.trainer";
  return TrainerReader(defects, name, version).read(*root, asked);
}

std::optional<Trainer> load_trainer(const std::string& name_or_path, const Reference& from, Defects& defects) {
  const TrainerName named = trainer_name(name_or_path);
  if (const auto built_in = embedded_named(embedded_trainers(), named.name, "trainer", from, defects)) {
    const Trainer* trainer = read_built_in(named.name, named.version, from, defects);
    return trainer == nullptr ? std::nullopt : std::optional(*trainer);
  }
  if (!looks_like_path(named.name)) return std::nullopt;
  const std::string file = resolve_path(from.folder, named.name);
  const std::optional<Value> root = read_document(file, from.origin, from.key, defects);
  if (!root) return std::nullopt;
  return TrainerReader(defects, std::filesystem::path(file).stem().string(), named.version).read(*root, from);
}

const Trainer* built_in_trainer(std::string_view name) {
  const TrainerName named = trainer_name(std::string(name));
  const Reference nobody;
  Defects defects;
  const Trainer* trainer = read_built_in(named.name, named.version, nobody, defects);
  if (trainer == nullptr && !defects.empty() && named.version.empty())
    throw std::logic_error("built-in trainer " + named.name + ": " + describe(defects));
  return trainer;
}

std::vector<std::pair<std::string, std::string>> trainer_fact_names() {
  std::vector<std::pair<std::string, std::string>> names;
  TrainerFacts ignored;
  for (const auto& [name, set] : known_facts) names.emplace_back(name, set(scalar("?", {}), ignored));
  return names;
}

}  // namespace slipway::scenarios
