#include "scenarios/language/read_scenario.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "models/machine/priced_cluster.h"
#include "scenarios/files/files.h"
#include "scenarios/language/aliases.h"
#include "scenarios/language/check_scenario.h"
#include "scenarios/language/load_cluster.h"
#include "scenarios/language/load_constants.h"
#include "scenarios/language/load_memory.h"
#include "scenarios/language/load_model.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/language/overrides.h"
#include "scenarios/language/quantity.h"
#include "scenarios/language/scenario.h"
#include "schedules/catalogue/schedule_csv.h"

namespace slipway::scenarios {

namespace {

constexpr const char* style = "run.optimizer.lr_decay_style";
constexpr const char* warmup = "run.optimizer.lr_warmup_samples";
constexpr const char* end = "run.optimizer.lr_decay_samples";
constexpr const char* least = "run.optimizer.min_lr";

// run.lr and run.optimizer.lr are two keys of one field.
void check_rate(Settings& settings, double& rate) {
  if (!settings.given("run.lr")) return;
  rate = settings.number("run.lr");
  if (!settings.given("run.optimizer.lr") || settings.number("run.optimizer.lr") == rate) return;
  settings.refuse("run.optimizer.lr",
                  "run.lr = " + settings.text("run.lr") + " says otherwise; allowed: one learning rate",
                  "remove one of the two");
}

void refuse_without_decay(Settings& settings, const char* key, const std::string& value) {
  settings.refuse(key,
                  value +
                      " is for a learning rate that decays, but lr_decay_style is constant; allowed: with "
                      "linear, cosine",
                  std::string("remove it, or set ") + style + " to linear or cosine");
}

// Where the decay ends with the training, `execute` knows when that is (scenarios/commands/execute/learning_rate_end.h).
void check_warmup(Settings& settings, const LearningRateSchedule& schedule) {
  if (!settings.given(end) || !settings.good({warmup})) return;
  if (schedule.warmup_samples <= schedule.decay_samples) return;
  const std::string samples = std::to_string(schedule.decay_samples);
  settings.refuse(warmup,
                  "the warm-up of " + std::to_string(schedule.warmup_samples) +
                      " sequences is longer than the decay, which ends after " + samples +
                      " (lr_decay_samples); allowed: up to " + samples,
                  std::string("lower it, or raise ") + end);
}

void check_rate_schedule(Settings& settings, const LearningRateSchedule& schedule, double rate) {
  if (!settings.good({style})) return;
  if (schedule.decay != DecayStyle::constant) {
    check_warmup(settings, schedule);
    if (settings.good({least, "run.lr", "run.optimizer.lr"}) && schedule.least > rate)
      settings.refuse(
          least,
          number_text(schedule.least) + " is above the learning rate, " + number_text(rate) + "; allowed: up to it",
          "lower it, or raise run.lr");
    return;
  }
  if (settings.given(end)) refuse_without_decay(settings, end, settings.text(end));
  if (schedule.least > 0) refuse_without_decay(settings, least, number_text(schedule.least));
}

void refuse_kfac_keys(Settings& settings, const std::string& optimizer) {
  if (optimizer == "kfac" || !settings.good({"run.optimizer.name"})) return;
  // The default damping is what the resolved scenario of any optimizer has.
  const bool damped = settings.number("run.optimizer.damping") != Optimizer{}.damping;
  for (const auto& [key, is_asked] :
       {std::pair{"run.optimizer.refresh_steps", true}, std::pair{"run.optimizer.damping", damped}})
    if (is_asked && settings.given(key))
      settings.refuse(key, "this is of K-FAC's inverses, but run.optimizer is " + optimizer + "; allowed: with kfac",
                      "remove it, or set run.optimizer.name to kfac");
}

void check_optimizer(Settings& settings, Optimizer& optimizer) {
  refuse_kfac_keys(settings, optimizer.name);
  check_rate(settings, optimizer.lr);
  check_rate_schedule(settings, optimizer.lr_schedule, optimizer.lr);
}

// The parts of `training` that are more than one field each. Guarded by tests/scenarios/growth_command_test.cpp.
void load_growth(const Settings& settings, GrowthChoice& growth) {
  growth.given = settings.given("training.growth");
  for (const char* key : {"training.loss.start", "training.loss.floor", "training.loss.offset",
                          "training.loss.exponent", "training.noise.scale", "training.noise.at_loss"})
    if (!settings.given(key)) growth.missing_dynamics.emplace_back(key);
  for (int i = 0; i < settings.length("training.growth.stages"); ++i) {
    const std::string path = "training.growth.stages." + std::to_string(i);
    if (!settings.good({path, path + ".from", path + ".batch"})) continue;
    growth.stages.push_back({static_cast<double>(settings.integer(path + ".from")), settings.integer(path + ".batch")});
  }
}

// Failures at known times. Guarded by tests/scenarios/goodput_command_test.cpp.
void load_failures(Settings& settings, const Cluster* cluster, std::vector<PlannedFailure>& failures) {
  for (int i = 0; i < settings.length("cluster.failures"); ++i) {
    const std::string path = "cluster.failures." + std::to_string(i);
    if (!settings.good({path, path + ".at", path + ".nodes"})) continue;
    const int nodes = settings.small_integer(path + ".nodes");
    if (cluster != nullptr && nodes > node_count(*cluster)) {
      settings.refuse(path + ".nodes",
                      std::to_string(nodes) + " nodes cannot fail at once: the cluster has " +
                          std::to_string(node_count(*cluster)) + " (cluster.spare_nodes wait beside it)",
                      "lower it, or raise the number of nodes");
      continue;
    }
    failures.push_back({settings.number(path + ".at"), nodes});
  }
  std::stable_sort(failures.begin(), failures.end(),
                   [](const PlannedFailure& a, const PlannedFailure& b) { return a.at < b.at; });
}

// After the cluster, whose machine chooses the constants.
void read_trainer(Settings& settings, const std::string& folder, Scenario& scenario) {
  const std::string key = "cluster.trainer", constants = "cluster.constants";
  Trainer trainer;
  if (settings.given(key)) {
    const auto named = load_trainer(settings.text(key), {settings.origin(key), key, folder}, settings.defects());
    if (!named) return;
    trainer = *named;
    scenario.names_trainer = true;
    scenario.trainer_version = trainer.version;
    if (built_in_trainer(settings.text(key)) == nullptr) scenario.trainer_file = settings.text(key);
  }
  scenario.trainer = trainer.facts;
  const bool known = scenario.names_trainer && !scenario.cluster.groups.empty();
  scenario.memory = constants_of(built_in_memory(), trainer.facts.name,
                                 known ? scenario.cluster.groups[0].machine.name : std::string(), trainer.memory);
  if (!settings.given(constants)) return;
  auto own =
      load_constants(settings.text(constants), {settings.origin(constants), constants, folder}, settings.defects());
  if (!own) return;
  scenario.constants_file = settings.text(constants);
  scenario.constants = std::make_shared<const PooledConstants>(std::move(*own));
}

// All keys that are bound to a field.
void read_bound_keys(const Settings& settings, Scenario& scenario) {
  for (const Key& key : scenario_keys())
    if (key.bound.read != nullptr && (!key.fallback.empty() || settings.given(key.path)))
      key.bound.read(settings, key.path, scenario);
}

// The folder in which a relative path of this key starts (anchor_paths).
std::string relative_to(const Settings& settings, const std::string& key) {
  return settings.origin(key).line == 0 ? "with --set it is relative to the current folder"
                                        : "it is relative to the scenario file";
}

// The actions of schedule.csv; check_scenario.cpp asks whether they are a whole step.
void read_actions(Settings& settings, const std::string& folder, Scenario& scenario) {
  if (!settings.given("schedule.csv")) return;
  const std::string path = resolve_path(folder, settings.text("schedule.csv"));
  if (const std::string reason = unreadable(path); !reason.empty()) {
    settings.refuse("schedule.csv",
                    "cannot read '" + path + "': " + reason + "; allowed: the path of a PyTorch schedule CSV",
                    "correct the path (" + relative_to(settings, "schedule.csv") + ")");
    return;
  }
  std::ifstream file(path);
  try {
    scenario.step.actions = std::make_shared<const ActionLists>(read_schedule_csv(file, path));
  } catch (const std::invalid_argument& reason) {
    settings.refuse("schedule.csv", reason.what(), "`slipway show --csv` writes one to start from");
  }
}

// The file that cannot be read, of a text file or of a pair of token files (exec/files/token_source.h); empty: none.
std::string unreadable_data(const std::string& path) {
  const auto readable = [](const std::string& name) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(name, ignored) && std::ifstream(name);
  };
  const bool named = path.ends_with(".bin") || path.ends_with(".idx");
  if (!named && readable(path)) return "";
  const std::string prefix = named ? path.substr(0, path.size() - 4) : path;
  for (const char* ending : {".bin", ".idx"})
    if (!readable(prefix + ending)) return named ? prefix + ending : path;
  return "";
}

// Absolute path; empty: not given.
std::string data_named(Settings& settings, const std::string& key, const std::string& folder) {
  if (!settings.given(key)) return "";
  const std::string path =
      std::filesystem::absolute(resolve_path(folder, settings.text(key))).lexically_normal().string();
  const std::string missing = unreadable_data(path);
  if (!missing.empty())
    settings.refuse(
        key,
        "cannot read '" + missing + "'; allowed: the path of a text file, or of Megatron token files (.bin and .idx)",
        "correct the path (" + relative_to(settings, key) + "), or leave " + key + " out to plan only");
  return path;
}

// Absolute path of the file that a key names; empty: none, or something built in.
std::string file_named(const Settings& settings, const std::string& key, const std::string& folder) {
  const std::string text = key == "cluster.trainer" ? trainer_name(settings.text(key)).name : settings.text(key);
  if (text.empty() || (key_of(scenario_keys(), key)->built_in && !looks_like_path(text))) return "";
  return std::filesystem::absolute(resolve_path(folder, text)).lexically_normal().string();
}

void note_files(const Settings& settings, const std::string& folder, Scenario& scenario) {
  const int groups = settings.length("cluster.groups");
  if (groups == 0) scenario.machine_files = {file_named(settings, "cluster.machine", folder)};
  for (int i = 0; i < groups; ++i)
    scenario.machine_files.push_back(file_named(settings, "cluster.groups." + std::to_string(i) + ".machine", folder));
  scenario.files = scenario.machine_files;
  for (const char* key : {"model.config", "cluster.trainer", "cluster.constants", "cluster.block_times", "run.data",
                          "run.evaluation_data", "schedule.csv"})
    scenario.files.push_back(file_named(settings, key, folder));
  scenario.files.push_back(scenario.path);
  std::erase(scenario.files, "");
}

// Everything that was derived or defaulted is written out, so that the text means the same for ever.
void write_resolved(Settings& settings, Scenario& scenario) {
  for (const Key& key : scenario_keys())
    if (key.writes_derived) settings.set(std::string(key.path), scalar(key.bound.write(scenario), {}));
  if (!settings.given("layout.split"))  // a list stays one
    settings.set("layout.split", scalar(std::string(name_in(split_names, scenario.step.layout.split)), {}));
  settings.set("model.sequence", scalar(std::to_string(scenario.step.model->sequence), {}));
  if (settings.given("cluster.machine") && !settings.given("cluster.nodes"))
    settings.set("cluster.nodes", scalar("1", {}));
  if (settings.given("cluster.collectives")) settings.set("cluster.collectives", algorithms_value(scenario.cluster));
  scenario.own_fabrics = settings.given("cluster.fabrics");
  Value fabrics;
  fabrics.kind = Value::Kind::list;
  for (const Fabric& fabric : scenario.cluster.fabrics)  // those inside GPUs follow from ranks_per_gpu
    if (fabric.scope != Fabric::Scope::gpu) fabrics.items.push_back(fabric_value(fabric));
  if (!fabrics.items.empty()) settings.set("cluster.fabrics", std::move(fabrics));
  if (scenario.step.own_schedule) settings.set("schedule.name", scalar(scenario.step.schedule, {}));
  const Value whole = settings.completed();
  scenario.resolved = to_yaml(whole);
  scenario.summary = to_one_line(whole);
}

enum class Text : bool { none, resolved };  // of the scenario: what write_resolved writes

// A caller's schedule stands in place of the file's. Whoever sets another name beside it means something else.
void leave_out_schedule_name(Value& document, const std::string& own, Defects& defects) {
  Value* const schedule = document.find("schedule");
  if (schedule == nullptr) return;
  for (const Entry& entry : schedule->entries)
    if (entry.key == "name" && entry.value.origin.line == 0 && entry.value.text != own)
      defects.push_back(
          {entry.value.origin.file, 0, "schedule.name",
           entry.value.text + " is set, but the caller gives the schedule " + own + "; allowed: one of both",
           "leave out one of them"});
  std::erase_if(schedule->entries, [](const Entry& entry) { return entry.key == "name"; });
}

LoadResult loaded(std::optional<Value> document, Defects defects, const ScenarioSource& source,
                  const DeriveSplit& derive_split, Text text) {
  LoadResult result;
  result.errors = std::move(defects);
  Scenario& scenario = result.scenario;
  scenario.path = source.path;
  scenario.name = std::filesystem::path(source.path).stem().string();
  if (!document) return result;
  for (const std::string& option : source.overrides) apply_override(option, scenario_keys(), *document, result.errors);
  expand_shorthands(*document, scenario_keys());
  use_canonical_names(*document);
  anchor_paths(*document, scenario_keys());
  if (source.schedule) leave_out_schedule_name(*document, source.schedule->name, result.errors);
  const std::string folder = std::filesystem::path(source.path).parent_path().string();
  Settings settings(std::move(*document), scenario_keys(), result.errors);
  std::optional<Model> model = load_model(settings, folder);
  std::optional<Cluster> cluster = load_cluster(settings, folder);
  if (model) scenario.step.model = std::move(*model);
  if (cluster) scenario.cluster = std::move(*cluster);
  read_trainer(settings, folder, scenario);
  read_bound_keys(settings, scenario);
  if (source.schedule) {
    scenario.step.own_schedule = source.schedule;
    set_schedule(scenario.step, *source.schedule);
  }
  if (settings.given("schedule.cuda_graphs"))
    scenario.trainer.cuda_graphs = scenario.step.levers.graphs.has(GraphScope::full);
  read_actions(settings, folder, scenario);
  check_optimizer(settings, scenario.step.optimizer);
  scenario.run.data = data_named(settings, "run.data", folder);
  scenario.run.evaluation_data = data_named(settings, "run.evaluation_data", folder);
  load_failures(settings, cluster ? &scenario.cluster : nullptr, scenario.faults.training.failures);
  load_growth(settings, scenario.growth);
  derive_and_check(settings, model.has_value(), cluster.has_value(), scenario);
  note_files(settings, folder, scenario);
  if (result.errors.empty() && derive_split) derive_split(settings, scenario);
  if (result.errors.empty() && text == Text::resolved) write_resolved(settings, scenario);
  return result;
}

}  // namespace

LoadResult read_scenario(const ScenarioSource& source, const DeriveSplit& derive_split) {
  Defects defects;
  std::optional<Value> document = source.text ? parse_document(*source.text, source.path, defects)
                                              : read_document(source.path, {source.path, 0}, "", defects);
  return loaded(std::move(document), std::move(defects), source, derive_split, Text::resolved);
}

ScenarioRefused::ScenarioRefused(std::vector<ScenarioError> errors)
    : UsageError("the scenario cannot be used:\n" + describe(errors)), errors_(std::move(errors)) {}

Scenario accepted(LoadResult loaded) {
  if (!loaded.errors.empty()) throw ScenarioRefused(std::move(loaded.errors));
  return std::move(loaded.scenario);
}

LoadResult read_run(const Value& document, const DeriveSplit& derive_split) {
  return loaded(document, {}, {}, derive_split, Text::none);
}

}  // namespace slipway::scenarios
