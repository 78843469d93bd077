#include "scenarios/trainers/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <regex>

#include "scenarios/language/load_trainer.h"
#include "scenarios/language/quantity.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/trainers/arguments.h"
#include "scenarios/trainers/compose_torchtitan.h"

namespace slipway::scenarios {

namespace {

// The cluster.

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

std::int64_t launched(const Reading& reading, std::string_view option) {
  for (const Argument& each : reading.arguments().launcher)
    if (each.name == option && !each.values.empty())
      return whole_number(with_variables(each.values[0], reading.choices().variables)).value_or(0);
  return 0;
}

// 0 where a number is no count. Arguments may name any number; the loader refuses more ranks than a scenario may have.
std::int64_t ranks_of(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t beyond = 1'000'000'000'000;
  if (a <= 0 || b <= 0) return 0;
  return a > beyond / b ? beyond : a * b;
}

// As few ranks as hold one copy of everything: replicas until each expert is somewhere.
std::int64_t fewest_ranks(const Reading& reading) {
  const std::int64_t dense = ranks_of(reading.count("layout.tensor", 1), reading.count("layout.context", 1));
  std::int64_t cut = reading.count("layout.expert_tensor", 0);
  if (cut == 0) cut = reading.count("layout.tensor", 1);
  const std::int64_t experts = ranks_of(reading.count("layout.expert", 1), cut);
  constexpr std::int64_t most = 1'000'000;
  if (dense == 0 || dense > most || experts > most) return dense;
  const std::int64_t data = std::max(reading.count("layout.data", 1), std::lcm(experts, dense) / dense);
  return ranks_of(ranks_of(dense, data), reading.count("layout.pipeline", 1));
}

// The machines, from --set, the launcher, the file's name, or as few as the layout needs (assumed). `trainer`: empty is
// generic, Megatron-Core as recipes set it today.
void compose_cluster(Reading& reading, const std::string& file, const std::string& trainer) {
  const std::string name = lower(std::filesystem::path(file).stem().string());
  const GpuWord* gpu = gpu_in(name);
  if (gpu != nullptr && !reading.has("cluster.machine") && !reading.has("cluster.groups")) {
    reading.note(NoteKind::assumed, "cluster.machine", fmt::format("{}, from the file's name", gpu->machine));
    reading.set("cluster.machine", std::string(gpu->machine), "cluster.machine");
  }
  if (!reading.has("cluster.groups") && !reading.has("cluster.machine")) {
    reading.note(NoteKind::assumed, "cluster.machine",
                 "h100-80gb: no argument names the GPU; --set cluster.machine=NAME");
    reading.set("cluster.machine", "h100-80gb", "cluster.machine");
  }
  if (!trainer.empty()) reading.set("cluster.trainer", trainer, "cluster.trainer");
  if (reading.has("cluster.groups") || reading.has("cluster.nodes")) {
    if (reading.has("cluster.groups") || reading.has("cluster.gpus_per_node")) return;
    const std::string each = std::to_string(gpu != nullptr ? gpu->per_node : 8);
    reading.note(NoteKind::assumed, "cluster.gpus_per_node", each + "; --set cluster.gpus_per_node=N");
    reading.set("cluster.gpus_per_node", each, "cluster.gpus_per_node");
    return;
  }
  std::int64_t per_node = reading.count("cluster.gpus_per_node", launched(reading, "nproc-per-node"));
  if (per_node == 0) per_node = reading.value("cluster.machine").starts_with("gb") ? domain_gpus : 8;
  std::int64_t ranks = ranks_of(launched(reading, "nnodes"), per_node);
  std::string why = "from the launcher";
  if (ranks == 0) {
    ranks = gpus_in(name);
    why = "from the file's name";
  }
  if (ranks == 0) {
    ranks = std::max<std::int64_t>(1, fewest_ranks(reading));
    why = "the fewest that the degrees need; --set cluster.nodes=N";
  }
  if (why != "from the launcher")
    reading.note(NoteKind::assumed, "cluster.nodes", fmt::format("{} GPUs, {}", ranks, why));
  // Domains of equal parts of the ranks.
  if (ranks < per_node) per_node = ranks;
  if (per_node == domain_gpus)
    while (ranks % per_node != 0) --per_node;
  reading.set("cluster.nodes", std::to_string((ranks + per_node - 1) / per_node), "cluster.nodes");
  reading.set("cluster.gpus_per_node", std::to_string(per_node), "cluster.gpus_per_node");
}

// `path`: of the config; `output`: of the scenario, to whose folder the config's path is relative.
void compose_hugging_face(Reading& reading, const std::string& path, const std::string& output) {
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(output, ignored).parent_path().lexically_normal();
  std::string relative =
      std::filesystem::absolute(path, ignored).lexically_normal().lexically_relative(folder).string();
  if (!relative.starts_with(".")) relative = "./" + relative;
  reading.set("model.config", relative, "model.config");
  if (!reading.has("schedule.global_batch")) {
    reading.note(NoteKind::assumed, "schedule.global_batch",
                 "8 sequences, one on each GPU of one node; --set schedule.global_batch=N");
    reading.set("schedule.global_batch", "8", "schedule.global_batch");
  }
  if (reading.has("cluster.nodes") || reading.has("cluster.groups")) return;
  reading.note(NoteKind::assumed, "cluster.nodes", "1 node of 8 GPUs; --set cluster.nodes=N");
  reading.set("cluster.nodes", "1", "cluster.nodes");
}

// Sections in the order of the reference.
void sort_sections(Value& document) {
  const std::vector<std::string> order{"model", "cluster", "layout", "schedule", "training", "run"};
  const auto place = [&](const Entry& entry) { return std::find(order.begin(), order.end(), entry.key); };
  std::stable_sort(document.entries.begin(), document.entries.end(),
                   [&](const Entry& a, const Entry& b) { return place(a) < place(b); });
}

// A refusal of the loader is reported with the argument that caused it.
void check(Reading& reading, const std::string& yaml, const std::string& output) {
  for (ScenarioError error : load_scenario_text(yaml, output).errors) {
    const std::string& argument = reading.argument_of(error.key);
    if (const Argument* found = reading.find(argument)) {
      error.file = found->origin.file;
      error.line = found->origin.line;
      error.message = "--" + found->name + ": " + error.message;
    } else if (error.file == output) {
      error.file = argument.empty() ? "arguments" : argument;
      error.line = 0;
    }
    reading.defects().push_back(std::move(error));
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
    } else if (all.dictionary == "torchtitan") {
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

// The version of the dictionary that cluster.trainer names with --set; else that of the recipe; empty: none is named.
std::string named_version(const Reading& reading, const std::string& of_recipe) {
  const Trainer* trainer = built_in_trainer(reading.value("cluster.trainer"));
  const bool is_its = trainer != nullptr && trainer->dictionary == reading.dictionary().name;
  return is_its && !trainer->version.empty() ? trainer->arguments_version() : of_recipe;
}

// Arguments of a recipe, "deepseek-v3-hopper@0.14". Returns its version.
std::string add_named_recipe(const Dictionary& dictionary, const std::string& recipe, Arguments& arguments,
                             Defects& defects) {
  const TrainerName named = trainer_name(recipe);
  const std::string option = "--recipe " + recipe;
  if (!named.version.empty() &&
      std::find(dictionary.versions.begin(), dictionary.versions.end(), named.version) == dictionary.versions.end())
    defects.push_back({option, 0, "recipe",
                       fmt::format("{} has no version '{}'; allowed: {}", dictionary.of, named.version,
                                   fmt::join(dictionary.versions, ", ")),
                       "name one of them, or none"});
  add_recipe(dictionary, named.name, {option, 0}, arguments, defects);
  return named.version;
}

}  // namespace

Imported imported(const std::vector<std::string>& files, const std::string& line, const ImportChoices& given,
                  const std::string& output, const std::string& recipe) {
  Imported answer;
  ImportChoices choices = given;
  Arguments arguments = all_arguments(files, line, choices, answer.defects);
  if (!answer.defects.empty()) return answer;
  const Dictionary& dictionary = *built_in_dictionary(arguments.dictionary);
  std::string version;
  if (!recipe.empty()) version = add_named_recipe(dictionary, recipe, arguments, answer.defects);
  if (dictionary.name == "torchtitan") add_torchtitan_registry(dictionary, arguments, answer.defects);
  if (!answer.defects.empty()) return answer;
  const std::string file = files.empty() ? "" : files.front();
  Reading reading(dictionary, std::move(arguments), choices);
  reading.read(named_version(reading, version));
  if (dictionary.name == "hugging-face") compose_hugging_face(reading, file, output);
  compose_cluster(reading, file, dictionary.trainer);
  sort_sections(reading.document());
  answer.yaml = to_yaml(reading.document());
  if (reading.defects().empty()) check(reading, answer.yaml, output);
  answer.notes = reading.notes();
  answer.defects = reading.defects();
  // With less than was trained, a step is another one.
  const bool is_whole = std::none_of(answer.notes.begin(), answer.notes.end(),
                                     [](const ImportNote& note) { return note.kind == NoteKind::left_out; });
  if (is_whole) answer.published = published_run(reading);
  return answer;
}

}  // namespace slipway::scenarios
