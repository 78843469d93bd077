#include "scenarios/import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <regex>

#include "scenarios/language/keys.h"
#include "scenarios/language/nearest.h"
#include "scenarios/language/quantity.h"
#include "scenarios/language/settings.h"

namespace slipway::scenarios {

namespace {

const Row* row_of(std::span<const Row> table, std::string_view argument) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.argument == argument; });
  return row == table.end() ? nullptr : &*row;
}

std::string without(std::string_view argument) { return fmt::format("import without it: --without {}", argument); }

// The same argument twice is a contradiction, unless the values are the same.
std::vector<Argument> each_once(std::vector<Argument> list, Defects& defects) {
  std::vector<Argument> once;
  for (Argument& argument : list) {
    const auto first =
        std::find_if(once.begin(), once.end(), [&](const Argument& a) { return a.name == argument.name; });
    if (first == once.end())
      once.push_back(std::move(argument));
    else if (first->values != argument.values)
      defects.push_back(
          {argument.origin.file, argument.origin.line, "--" + argument.name,
           fmt::format("it is given twice, as '{}' and as '{}'; allowed: one value", first->text(), argument.text()),
           "remove one of the two"});
  }
  return once;
}

}  // namespace

Import::Import(Arguments arguments, ImportChoices choices)
    : arguments_(std::move(arguments)), choices_(std::move(choices)) {
  document_.kind = Value::Kind::map;
  arguments_.list = each_once(std::move(arguments_.list), defects_);
  for (const std::string& option : choices_.keys) {
    const std::size_t equals = option.find('=');
    const std::string path = option.substr(0, equals);
    if (equals == std::string::npos || key_of(scenario_keys(), path) == nullptr) {
      std::vector<std::string> words;
      for (const Key& each : scenario_keys()) words.emplace_back(each.path);
      defects_.push_back({"--set " + option, 0, path,
                          "there is no such key" + suggestion(path, words) +
                              "; allowed: NAME=VALUE of a variable, or KEY=VALUE of a scenario key",
                          "correct it (slipway list keys)"});
      continue;
    }
    Defects of_value;
    const std::optional<Value> value = parse_document(option.substr(equals + 1), "--set " + option, of_value);
    if (value) set_value(path, *value, "--set " + option, {});
  }
}

const Argument* Import::find(std::string_view argument) const {
  for (const Argument& each : arguments_.list)
    if (each.name == argument) return &each;
  return nullptr;
}

std::string Import::text(std::string_view argument, const std::string& fallback) {
  const Argument* found = find(argument);
  if (found == nullptr) return fallback;
  std::string text;
  for (const std::string& value : found->values) text += (text.empty() ? "" : " ") + value;
  text = with_variables(text, choices_.variables);
  if (const std::string name = unset_variable(text); !name.empty()) {
    refuse(argument, fmt::format("the variable {} is not set", name),
           fmt::format("give its value: --set {}=...", name));
    return fallback;
  }
  return text.empty() && !found->values.empty() ? fallback : text;
}

double Import::number(std::string_view argument, double fallback) {
  const std::string text = this->text(argument);
  if (text.empty()) return fallback;
  if (const std::optional<double> number = quantity(text, Unit::pure)) return *number;
  refuse(argument, "'" + text + "' is no number; allowed: a number", "correct it");
  return fallback;
}

std::int64_t Import::whole(std::string_view argument, std::int64_t fallback) {
  const std::string text = this->text(argument);
  if (text.empty()) return fallback;
  if (const std::optional<std::int64_t> number = whole_number(text)) return *number;
  refuse(argument, "'" + text + "' is no whole number; allowed: a whole number", "correct it");
  return fallback;
}

void Import::exclude(std::string_view first, std::string_view second, const std::string& remedy) {
  if (given(first) && given(second))
    refuse(second, fmt::format("it contradicts --{}; allowed: one of the two", first), remedy);
}

void Import::set_value(const std::string& key, Value value, std::string_view argument, std::string_view nearest) {
  if (has(key)) return;
  const Key* known = key_of(scenario_keys(), key);
  const std::string wrong =
      known == nullptr ? "it is not modelled yet (the key would be " + key + ")" : wrong_with(*known, value);
  if (!wrong.empty()) {
    if (!nearest.empty())
      note(NoteKind::nearest, find(argument) != nullptr ? find(argument)->text() : key, std::string(nearest));
    else if (known == nullptr)
      not_modelled(argument, wrong);
    else
      refuse(argument, key + ": " + wrong + "; allowed: " + allowed_by(*known), "correct it, or " + without(argument));
    return;
  }
  Value* map = &document_;
  std::string_view rest = key;
  for (std::size_t dot; (dot = rest.find('.')) != std::string_view::npos; rest.remove_prefix(dot + 1)) {
    const std::string name(rest.substr(0, dot));
    if (map->find(name) == nullptr) {
      map->entries.push_back({name, {}, {}});
      map->entries.back().value.kind = Value::Kind::map;
    }
    map = map->find(name);
  }
  map->entries.push_back({std::string(rest), {}, std::move(value)});
  said_by_[key] = argument;
}

void Import::set(const std::string& key, const std::string& value, std::string_view argument,
                 std::string_view nearest) {
  const Key* known = key_of(scenario_keys(), key);
  if (known == nullptr || known->type != KeyType::words) return set_value(key, scalar(value, {}), argument, nearest);
  Value list;
  list.kind = Value::Kind::list;
  std::string word;
  for (const char c : value + " ") {  // "a b", "a,b" and "['a', 'b']" are lists of words
    if (std::string_view(" ,[]'\"").find(c) == std::string_view::npos) {
      word += c;
      continue;
    }
    if (!word.empty()) list.items.push_back(scalar(word, {}));
    word.clear();
  }
  set_value(key, std::move(list), argument, nearest);
}

void Import::set(const std::string& key, const std::vector<std::int64_t>& values, std::string_view argument) {
  Value list;
  list.kind = Value::Kind::list;
  for (const std::int64_t value : values) list.items.push_back(scalar(std::to_string(value), {}));
  set_value(key, std::move(list), argument, {});
}

namespace {

const Value* at(const Value& document, std::string_view key) {
  const Value* value = &document;
  while (value != nullptr && !key.empty()) {
    const std::size_t dot = key.find('.');
    value = value->find(key.substr(0, dot));
    key.remove_prefix(dot == std::string_view::npos ? key.size() : dot + 1);
  }
  return value;
}

}  // namespace

bool Import::has(std::string_view key) const { return at(document_, key) != nullptr; }

std::string Import::value(std::string_view key) const {
  const Value* value = at(document_, key);
  return value == nullptr ? "" : value->text;
}

std::int64_t Import::count(std::string_view key, std::int64_t fallback) const {
  return whole_number(value(key)).value_or(fallback);
}

void Import::note(NoteKind kind, const std::string& argument, const std::string& words) {
  notes_.push_back({kind, argument, words});
}

void Import::refuse(std::string_view argument, const std::string& message, const std::string& remedy) {
  const Argument* found = find(argument);
  const std::string name = found != nullptr ? "--" + found->name : std::string(argument);
  for (const ScenarioError& defect : defects_)
    if (defect.key == name && defect.message == message) return;
  defects_.push_back({found != nullptr ? found->origin.file : "arguments", found != nullptr ? found->origin.line : 0,
                      name, message, remedy});
}

void Import::not_modelled(std::string_view argument, const std::string& message) {
  const Argument* found = find(argument);
  if (choices_.without.contains("all"))
    note(NoteKind::left_out, found != nullptr ? found->text() : std::string(argument), message);
  else
    refuse(argument, message, without(argument));
}

const std::string& Import::argument_of(const std::string& key) const {
  static const std::string nobody;
  const auto found = said_by_.find(key);
  return found == said_by_.end() ? nobody : found->second;
}

void Import::apply(const Row& row, const Argument& argument) {
  const std::string first = argument.values.empty() ? "" : argument.values.front();
  const std::string shown = argument.text();
  if (std::find(row.harmless.begin(), row.harmless.end(), first) != row.harmless.end())
    return note(NoteKind::no_effect, shown, "with this value it changes nothing");
  switch (row.effect) {
    case Effect::part:
      return;
    case Effect::none:
      return note(NoteKind::no_effect, shown, std::string(row.words));
    case Effect::near:
      return note(NoteKind::nearest, shown, std::string(row.words));
    case Effect::refused:
      return not_modelled(argument.name, std::string(row.words) + ", which is not modelled");
    case Effect::key: {
      const std::string value = argument.values.empty() ? "true" : text(argument.name);
      if (!value.empty()) set(std::string(row.key), row.convert ? row.convert(value) : value, argument.name, row.words);
    }
  }
}

void Import::read(std::span<const Row> table) {
  std::vector<Argument> left_out;
  for (const Argument& argument : arguments_.list) {
    const Row* row = row_of(table, argument.name);
    if (choices_.without.contains(argument.name)) {
      note(NoteKind::left_out, argument.text(), "as --without says");
      left_out.push_back(argument);
    } else if (row == nullptr && arguments_.format == ArgumentFormat::hugging_face) {
      continue;  // the loader of models reads or refuses it
    } else if (row == nullptr) {
      std::vector<std::string> words;
      for (const Row& each : table) words.emplace_back(each.argument);
      not_modelled(argument.name, "it is unknown to import" + suggestion(argument.name, words, "--"));
    } else {
      apply(*row, argument);
    }
  }
  for (const Argument& argument : left_out)
    std::erase_if(arguments_.list, [&](const Argument& each) { return each.name == argument.name; });
}

// The cluster.

namespace {

struct GpuWord {
  std::string_view word, machine;
  int per_node;
};
// Words of files' names. Where all GPUs of a rack share one NVLink domain, it counts as a node: 72 of GB200 and GB300.
const GpuWord gpu_words[] = {
    {"gb300", "gb300", 72}, {"gb200", "gb200", 72}, {"b300", "b300", 8},      {"b200", "b200", 8},
    {"h200", "h200", 8},    {"h800", "h800", 8},    {"h100", "h100-80gb", 8}, {"a100", "a100-80gb", 8},
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

constexpr std::int64_t domain_gpus = 72;

const GpuWord* gpu_in(const std::string& name) {
  for (const GpuWord& each : gpu_words)
    if (std::regex_search(name, std::regex("(^|[^a-z0-9])" + std::string(each.word) + "([^a-z0-9]|$)"))) return &each;
  return nullptr;
}

std::int64_t gpus_in(const std::string& name) {
  std::smatch found;
  return std::regex_search(name, found, std::regex("([0-9]{1,7})gpu")) ? std::stoll(found[1]) : 0;
}

std::int64_t launched(const Import& import, std::string_view option) {
  for (const Argument& each : import.arguments().launcher)
    if (each.name == option && !each.values.empty())
      return whole_number(with_variables(each.values[0], import.choices().variables)).value_or(0);
  return 0;
}

// 0 where a number is no count. Arguments may name any number; the loader refuses more ranks than a scenario may have.
std::int64_t ranks_of(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t beyond = 1'000'000'000'000;
  if (a <= 0 || b <= 0) return 0;
  return a > beyond / b ? beyond : a * b;
}

// As few ranks as hold one copy of everything: replicas until each expert is somewhere.
std::int64_t fewest_ranks(const Import& import) {
  const std::int64_t dense = ranks_of(import.count("layout.tensor", 1), import.count("layout.context", 1));
  std::int64_t cut = import.count("layout.expert_tensor", 0);
  if (cut == 0) cut = import.count("layout.tensor", 1);
  const std::int64_t experts = ranks_of(import.count("layout.expert", 1), cut);
  constexpr std::int64_t most = 1'000'000;
  if (dense == 0 || dense > most || experts > most) return dense;
  const std::int64_t data = std::max(import.count("layout.data", 1), std::lcm(experts, dense) / dense);
  return ranks_of(ranks_of(dense, data), import.count("layout.pipeline", 1));
}

}  // namespace

void compose_cluster(Import& import, const std::string& file, const std::string& trainer) {
  const std::string name = lower(std::filesystem::path(file).stem().string());
  const GpuWord* gpu = gpu_in(name);
  if (gpu != nullptr && !import.has("cluster.machine") && !import.has("cluster.groups")) {
    import.note(NoteKind::assumed, "cluster.machine", fmt::format("{}, from the file's name", gpu->machine));
    import.set("cluster.machine", std::string(gpu->machine), "cluster.machine");
  }
  if (!import.has("cluster.groups") && !import.has("cluster.machine")) {
    import.note(NoteKind::assumed, "cluster.machine",
                "h100-80gb: no argument names the GPU; --set cluster.machine=NAME");
    import.set("cluster.machine", "h100-80gb", "cluster.machine");
  }
  if (!trainer.empty()) import.set("cluster.trainer", trainer, "cluster.trainer");
  if (import.has("cluster.groups") || import.has("cluster.nodes")) {
    if (import.has("cluster.groups") || import.has("cluster.gpus_per_node")) return;
    const std::string each = std::to_string(gpu != nullptr ? gpu->per_node : 8);
    import.note(NoteKind::assumed, "cluster.gpus_per_node", each + "; --set cluster.gpus_per_node=N");
    import.set("cluster.gpus_per_node", each, "cluster.gpus_per_node");
    return;
  }
  std::int64_t per_node = import.count("cluster.gpus_per_node", launched(import, "nproc-per-node"));
  if (per_node == 0) per_node = import.value("cluster.machine").starts_with("gb") ? domain_gpus : 8;
  std::int64_t ranks = ranks_of(launched(import, "nnodes"), per_node);
  std::string why = "from the launcher";
  if (ranks == 0) {
    ranks = gpus_in(name);
    why = "from the file's name";
  }
  if (ranks == 0) {
    ranks = std::max<std::int64_t>(1, fewest_ranks(import));
    why = "the fewest that the degrees need; --set cluster.nodes=N";
  }
  if (why != "from the launcher")
    import.note(NoteKind::assumed, "cluster.nodes", fmt::format("{} GPUs, {}", ranks, why));
  // Domains of equal parts of the ranks.
  if (ranks < per_node) per_node = ranks;
  if (per_node == domain_gpus)
    while (ranks % per_node != 0) --per_node;
  import.set("cluster.nodes", std::to_string((ranks + per_node - 1) / per_node), "cluster.nodes");
  import.set("cluster.gpus_per_node", std::to_string(per_node), "cluster.gpus_per_node");
}

namespace {

// Sections in the order of the reference.
void sort_sections(Value& document) {
  const std::vector<std::string> order{"model", "cluster", "layout", "schedule", "training", "run"};
  const auto place = [&](const Entry& entry) { return std::find(order.begin(), order.end(), entry.key); };
  std::stable_sort(document.entries.begin(), document.entries.end(),
                   [&](const Entry& a, const Entry& b) { return place(a) < place(b); });
}

// What the loader refuses is said with the argument that it came from.
void check(Import& import, const std::string& yaml, const std::string& output) {
  for (ScenarioError error : load_scenario_text(yaml, output).errors) {
    const std::string& argument = import.argument_of(error.key);
    if (const Argument* found = import.find(argument)) {
      error.file = found->origin.file;
      error.line = found->origin.line;
      error.message = "--" + found->name + ": " + error.message;
    } else if (error.file == output) {
      error.file = argument.empty() ? "arguments" : argument;
      error.line = 0;
    }
    import.defects().push_back(std::move(error));
  }
}

// Files later in the list and the command line hold against the files before them, as torchtitan's overrides do.
void override_with(std::vector<Argument>& list, std::vector<Argument> more) {
  for (Argument& argument : more) {
    std::erase_if(list, [&](const Argument& each) {
      return each.name == argument.name && each.origin.file != argument.origin.file;
    });
    list.push_back(std::move(argument));
  }
}

Arguments all_arguments(const std::vector<std::string>& files, const std::string& line, ImportChoices& choices,
                        Defects& defects) {
  Arguments all;
  bool first = true;
  const auto add = [&](Arguments more) {
    if (first) {
      all = std::move(more);
    } else if (all.format == ArgumentFormat::torchtitan) {
      override_with(all.list, std::move(more.list));
    } else {
      all.list.insert(all.list.end(), more.list.begin(), more.list.end());
      all.environment.insert(all.environment.end(), more.environment.begin(), more.environment.end());
      all.launcher.insert(all.launcher.end(), more.launcher.begin(), more.launcher.end());
    }
    first = false;
  };
  for (const std::string& file : files) add(read_arguments(file, choices.variables, defects));
  if (!line.empty()) add(command_line_arguments(line, "--arguments", choices.variables, defects));
  return all;
}

}  // namespace

Imported imported(const std::vector<std::string>& files, const std::string& line, const ImportChoices& given,
                  const std::string& output) {
  Imported answer;
  ImportChoices choices = given;
  Arguments arguments = all_arguments(files, line, choices, answer.defects);
  if (!answer.defects.empty()) return answer;
  const ArgumentFormat format = arguments.format;
  if (format == ArgumentFormat::torchtitan) add_torchtitan_registry(arguments, answer.defects);
  if (!answer.defects.empty()) return answer;
  const std::string file = files.empty() ? "" : files.front();
  Import import(std::move(arguments), choices);
  switch (format) {
    case ArgumentFormat::megatron:
      import.read(megatron_rows());
      compose_megatron(import);
      break;
    case ArgumentFormat::torchtitan:
      import.read(torchtitan_rows());
      compose_torchtitan(import);
      break;
    case ArgumentFormat::hugging_face:
      import.read(hugging_face_rows());
      compose_hugging_face(import, file, output);
  }
  compose_cluster(import, file, format == ArgumentFormat::torchtitan ? "torchtitan" : "");
  sort_sections(import.document());
  answer.yaml = to_yaml(import.document());
  if (import.defects().empty()) check(import, answer.yaml, output);
  answer.notes = import.notes();
  answer.defects = import.defects();
  // With less than was trained, a step is another one.
  const bool is_whole = std::none_of(answer.notes.begin(), answer.notes.end(),
                                     [](const ImportNote& note) { return note.kind == NoteKind::left_out; });
  if (is_whole) answer.published = published_run(import);
  return answer;
}

}  // namespace slipway::scenarios
