#include "scenarios/language/load_scenario.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "scenarios/files/files.h"
#include "scenarios/language/check_scenario.h"
#include "scenarios/language/load_cluster.h"
#include "scenarios/language/load_model.h"
#include "scenarios/language/load_stack.h"
#include "scenarios/language/quantity.h"
#include "scenarios/language/scenario.h"
#include "schedules/catalogue/schedule_csv.h"
#include "schedules/time/stack_pace.h"

namespace slipway::scenarios {

namespace {

constexpr const char* style = "run.optimizer.lr_decay_style";
constexpr const char* warmup = "run.optimizer.lr_warmup_samples";
constexpr const char* end = "run.optimizer.lr_decay_samples";
constexpr const char* least = "run.optimizer.min_lr";

double read_rate(Settings& settings) {
  const bool outside = settings.given("run.lr"), inside = settings.given("run.optimizer.lr");
  const double rate = outside  ? settings.number("run.lr")
                      : inside ? settings.number("run.optimizer.lr")
                               : Optimizer{}.lr;
  if (outside && inside && settings.number("run.optimizer.lr") != rate)
    settings.refuse("run.optimizer.lr",
                    "run.lr = " + settings.text("run.lr") + " says otherwise; allowed: one learning rate",
                    "remove one of the two");
  return rate;
}

void refuse_without_decay(Settings& settings, const char* key, const std::string& value) {
  settings.refuse(key,
                  value +
                      " is for a learning rate that decays, but lr_decay_style is constant; allowed: with "
                      "linear, cosine",
                  std::string("remove it, or set ") + style + " to linear or cosine");
}

// Where the decay ends with the training, `execute` knows when that is (scenarios/execute/bundle.h).
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

LearningRateSchedule read_rate_schedule(Settings& settings, double rate) {
  LearningRateSchedule schedule;
  schedule.warmup_samples = settings.integer(warmup);
  schedule.decay = static_cast<DecayStyle>(std::max(0, settings.choice(style)));
  if (settings.given(end)) schedule.decay_samples = settings.integer(end);
  schedule.least = settings.number(least);
  if (!settings.good({style})) return schedule;
  if (schedule.decay != DecayStyle::constant) {
    check_warmup(settings, schedule);
    if (settings.good({least, "run.lr", "run.optimizer.lr"}) && schedule.least > rate)
      settings.refuse(
          least,
          number_text(schedule.least) + " is above the learning rate, " + number_text(rate) + "; allowed: up to it",
          "lower it, or raise run.lr");
    return schedule;
  }
  if (settings.given(end)) refuse_without_decay(settings, end, settings.text(end));
  if (schedule.least > 0) refuse_without_decay(settings, least, number_text(schedule.least));
  return schedule;
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

}  // namespace

Optimizer load_optimizer(Settings& settings) {
  Optimizer optimizer;
  optimizer.name = settings.text("run.optimizer.name");
  refuse_kfac_keys(settings, optimizer.name);
  if (settings.given("run.optimizer.refresh_steps"))
    optimizer.refresh_steps = settings.small_integer("run.optimizer.refresh_steps");
  optimizer.damping = settings.number("run.optimizer.damping");
  optimizer.beta1 = settings.number("run.optimizer.beta1");
  optimizer.beta2 = settings.number("run.optimizer.beta2");
  optimizer.epsilon = settings.number("run.optimizer.epsilon");
  optimizer.weight_decay = settings.number("run.optimizer.weight_decay");
  optimizer.lr = read_rate(settings);
  optimizer.lr_schedule = read_rate_schedule(settings, optimizer.lr);
  return optimizer;
}

// How the batch grows and the loss falls: keys of `training`. Guarded by tests/scenarios/growth_command_test.cpp.

namespace {

// Whether the key holds a value; noted as missing where it does not.
bool has(const Settings& settings, const char* key, GrowthChoice& growth) {
  if (settings.given(key)) return true;
  growth.missing_dynamics.emplace_back(key);
  return false;
}

void load_dynamics(const Settings& settings, GrowthChoice& growth) {
  LossDynamics& dynamics = growth.dynamics;
  const std::pair<const char*, double*> values[] = {
      {"training.loss.start", &dynamics.start},         {"training.loss.floor", &dynamics.floor},
      {"training.loss.offset", &dynamics.offset},       {"training.loss.exponent", &dynamics.exponent},
      {"training.noise.scale", &dynamics.noise_tokens}, {"training.noise.at_loss", &dynamics.noise_loss}};
  for (const auto& [key, value] : values)
    if (has(settings, key, growth)) *value = settings.number(key);
  if (settings.given("training.noise.exponent")) dynamics.noise_exponent = settings.number("training.noise.exponent");
  growth.noise_least = settings.number("training.noise.least");
  growth.noise_most = settings.number("training.noise.most");
}

}  // namespace

void load_growth(const Settings& settings, GrowthChoice& growth) {
  growth.given = settings.given("training.growth");
  if (settings.given("training.growth.rule"))
    growth.rule = static_cast<BatchRule>(settings.choice("training.growth.rule"));
  growth.largest = settings.integer("training.growth.largest");
  growth.sizes = static_cast<int>(settings.integer("training.growth.sizes"));
  growth.eta = settings.number("training.growth.eta");
  if (settings.given("training.growth.test_every")) growth.test_every = settings.integer("training.growth.test_every");
  growth.warmup = static_cast<double>(settings.integer("training.growth.warmup"));
  for (int i = 0; i < settings.length("training.growth.stages"); ++i) {
    const std::string path = "training.growth.stages." + std::to_string(i);
    if (!settings.good({path, path + ".from", path + ".batch"})) continue;
    growth.stages.push_back({static_cast<double>(settings.integer(path + ".from")), settings.integer(path + ".batch")});
  }
  growth.target_loss = settings.number("training.target_loss");
  growth.source = settings.text("training.source");
  growth.fitted_batches = settings.integers("training.fitted.batches");
  growth.fitted_loss = settings.number("training.fitted.lowest_loss");
  load_dynamics(settings, growth);
}

// How nodes fail and training recovers: keys of `cluster` and `run`. Guarded by tests/scenarios/goodput_command_test.cpp.

void load_faults(Settings& settings, const Cluster* cluster, FaultModel& faults) {
  FaultyTraining& training = faults.training;
  training.node_mtbf_s = settings.number("cluster.mtbf_per_node");
  training.restart_s = settings.number("cluster.restart");
  training.repair_s = settings.number("cluster.repair");
  training.spare_nodes = settings.small_integer("cluster.spare_nodes");
  faults.checkpoint_interval = settings.number("run.checkpoint_interval");
  if (settings.given("run.checkpoint_cost")) faults.checkpoint_cost = settings.number("run.checkpoint_cost");
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
    training.failures.push_back({settings.number(path + ".at"), nodes});
  }
  std::stable_sort(training.failures.begin(), training.failures.end(),
                   [](const PlannedFailure& a, const PlannedFailure& b) { return a.at < b.at; });
}

namespace {

// After the cluster, whose machine chooses the constants.
void read_stack(Settings& settings, const std::string& folder, Scenario& scenario) {
  const std::string key = "cluster.stack";
  if (!settings.given(key)) return;
  scenario.stack = load_stack(settings.text(key), {settings.origin(key), key, folder}, settings.defects());
  if (has_experts(scenario.step.model))
    settings.refuse(
        key,
        "no trainer's formula of step time has a term for experts; allowed with model.experts: without cluster.stack",
        "leave cluster.stack out");
  if (!built_in_stack(settings.text(key))) scenario.stack_file = settings.text(key);
  if (!scenario.stack || scenario.cluster.groups.empty()) return;
  scenario.trainer = memory_constants(*scenario.stack, scenario.cluster.groups[0].machine.name);
  if (has_pace(scenario) && settings.given("cluster.collectives"))
    settings.refuse("cluster.collectives",
                    "the stack's trainer was timed with its own collectives, which say what messages cost; "
                    "allowed: without cluster.stack",
                    "leave one of the two out");
}

void read_layout(const Settings& settings, Layout& layout) {
  layout.tensor = settings.small_integer("layout.tensor");
  layout.pipeline = settings.small_integer("layout.pipeline");
  layout.context = settings.small_integer("layout.context");
  layout.context_exchange = static_cast<ContextExchange>(std::max(0, settings.choice("layout.context_exchange")));
  layout.expert = settings.small_integer("layout.expert");
  layout.zero = settings.small_integer("layout.zero");
  layout.sequence_parallel = settings.flag("layout.sequence_parallel");
  if (settings.given("layout.chunks")) layout.chunks = settings.small_integer("layout.chunks");
  if (settings.given("layout.data")) layout.data = settings.small_integer("layout.data");
  layout.split_list = settings.integers("layout.split");
  layout.split = !layout.split_list.empty()                    ? SplitKind::list
                 : settings.text("layout.split") == "balanced" ? SplitKind::balanced
                                                               : SplitKind::even;
}

void read_schedule(const Settings& settings, Scenario& scenario) {
  Step& step = scenario.step;
  step.schedule = settings.text("schedule.name");
  step.micro_batch = settings.integer("schedule.micro_batch");
  step.global_batch = settings.integer("schedule.global_batch");
  step.slices = settings.small_integer("schedule.slices");
  // The table lists the choices in the order of the enumerations.
  step.recompute = static_cast<Recompute>(std::max(0, settings.choice("schedule.recompute")));
  scenario.step.evaluation_micro_batches = settings.small_integer("schedule.evaluation_micro_batches");
  step.kernels = static_cast<Kernels>(std::max(0, settings.choice("schedule.kernels")));
}

// Where a relative path of this key starts (anchor_paths).
std::string relative_to(const Settings& settings, const std::string& key) {
  return settings.origin(key).line == 0 ? "with --set it is relative to the current folder"
                                        : "it is relative to the scenario file";
}

// The actions of schedule.csv; whether they are a whole step is asked by check_schedule.
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

void read_run(Settings& settings, const std::string& folder, Scenario& scenario) {
  Run& run = scenario.run;
  run.steps = settings.small_integer("run.steps");
  run.seed = static_cast<std::uint64_t>(settings.integer("run.seed"));
  scenario.step.clip_norm = settings.number("run.clip_norm");
  run.checkpoint_steps = settings.small_integer("run.checkpoint_steps");
  run.checkpoints_kept = settings.small_integer("run.checkpoints_kept");
  scenario.tokens = settings.number("run.tokens");
  if (settings.given("run.dtype"))
    scenario.step.dtype = dtype_named(settings.text("run.dtype")).value_or(Dtype::bfloat16);
  scenario.step.optimizer = load_optimizer(settings);
  run.data = data_named(settings, "run.data", folder);
  run.evaluation_data = data_named(settings, "run.evaluation_data", folder);
}

// Absolute path of the file that a key names; empty: none, or something built in.
std::string file_named(const Settings& settings, const std::string& key, const std::string& folder) {
  const std::string text = settings.text(key);
  if (text.empty() || (key_of(scenario_keys(), key)->built_in && !looks_like_path(text))) return "";
  return std::filesystem::absolute(resolve_path(folder, text)).lexically_normal().string();
}

void note_files(const Settings& settings, const std::string& folder, Scenario& scenario) {
  const int groups = settings.length("cluster.groups");
  if (groups == 0) scenario.machine_files = {file_named(settings, "cluster.machine", folder)};
  for (int i = 0; i < groups; ++i)
    scenario.machine_files.push_back(file_named(settings, "cluster.groups." + std::to_string(i) + ".machine", folder));
  scenario.files = scenario.machine_files;
  for (const char* key :
       {"model.config", "cluster.stack", "cluster.block_times", "run.data", "run.evaluation_data", "schedule.csv"})
    scenario.files.push_back(file_named(settings, key, folder));
  scenario.files.push_back(scenario.path);
  std::erase(scenario.files, "");
}

// Everything that was derived or defaulted is written out, so that the text means the same for ever.
void write_resolved(Settings& settings, Scenario& scenario) {
  settings.set("layout.data", scalar(std::to_string(scenario.step.layout.data), {}));
  settings.set("layout.chunks", scalar(std::to_string(scenario.step.layout.chunks), {}));
  settings.set("schedule.slices", scalar(std::to_string(scenario.step.slices), {}));
  settings.set("run.dtype", scalar(name_of(scenario.step.dtype), {}));
  constexpr const char* fills[] = {"none", "kfac", "evaluation"};
  settings.set("schedule.fill", scalar(fills[static_cast<std::size_t>(scenario.step.fill)], {}));
  settings.set("run.lr", scalar(number_text(scenario.step.optimizer.lr), {}));
  settings.set("model.sequence", scalar(std::to_string(scenario.step.model->sequence), {}));
  if (settings.given("cluster.machine") && !settings.given("cluster.nodes"))
    settings.set("cluster.nodes", scalar("1", {}));
  if (settings.given("cluster.collectives")) settings.set("cluster.collectives", algorithms_value(scenario.cluster));
  scenario.own_fabrics = settings.given("cluster.fabrics");
  Value fabrics;
  fabrics.kind = Value::Kind::list;
  for (const Fabric& fabric : scenario.cluster.fabrics)  // inside GPUs: ranks_per_gpu says it
    if (fabric.scope != Fabric::Scope::gpu) fabrics.items.push_back(fabric_value(fabric));
  if (!fabrics.items.empty()) settings.set("cluster.fabrics", std::move(fabrics));
  const Value whole = settings.completed();
  scenario.resolved = to_yaml(whole);
  scenario.summary = to_one_line(whole);
}

}  // namespace

LoadResult load_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  LoadResult result;
  Scenario& scenario = result.scenario;
  scenario.path = path;
  scenario.name = std::filesystem::path(path).stem().string();
  std::optional<Value> document = read_document(path, {path, 0}, "", result.errors);
  if (!document) return result;
  for (const std::string& option : overrides) apply_override(option, scenario_keys(), *document, result.errors);
  expand_shorthands(*document, scenario_keys());
  anchor_paths(*document, scenario_keys());
  const std::string folder = std::filesystem::path(path).parent_path().string();
  Settings settings(std::move(*document), scenario_keys(), result.errors);
  std::optional<Model> model = load_model(settings, folder);
  std::optional<Cluster> cluster = load_cluster(settings, folder);
  if (model) scenario.step.model = std::move(*model);
  if (cluster) scenario.cluster = std::move(*cluster);
  read_stack(settings, folder, scenario);
  read_layout(settings, scenario.step.layout);
  read_schedule(settings, scenario);
  read_actions(settings, folder, scenario);
  read_run(settings, folder, scenario);
  load_faults(settings, cluster ? &scenario.cluster : nullptr, scenario.faults);
  load_growth(settings, scenario.growth);
  derive_and_check(settings, model.has_value(), cluster.has_value(), scenario);
  note_files(settings, folder, scenario);
  if (result.errors.empty()) derive_split(settings, scenario);
  if (result.errors.empty()) write_resolved(settings, scenario);
  return result;
}

std::string describe(const std::vector<ScenarioError>& errors) {
  std::string out;
  for (const ScenarioError& error : errors) {
    out += error.file;
    if (error.line > 0) out += ":" + std::to_string(error.line);
    if (!error.key.empty()) out += ": " + error.key;
    out += ": " + error.message + "; " + error.remedy + "\n";
  }
  return out;
}

bool has_pace(const Scenario& scenario) {
  const auto timed = [&](const NodeGroup& group) { return time_on(*scenario.stack, group.machine.name) != nullptr; };
  const std::vector<NodeGroup>& groups = scenario.cluster.groups;
  return scenario.stack && scenario.stack->model != nullptr && std::all_of(groups.begin(), groups.end(), timed);
}

void derive_step(Scenario& scenario) {
  Step& step = scenario.step;
  step.worker_norms = scenario.growth.given && scenario.growth.rule == BatchRule::norm_test;
  // Gradients are accumulated in at least float32; float64 runs stay float64 throughout.
  step.gradient_dtype = step.dtype == Dtype::float64 ? Dtype::float64 : Dtype::float32;
  step.blocking_transfers = has_pace(scenario);
  step.overlap_grad_reduce = !has_pace(scenario) || scenario.stack->model->overlaps_reduction;
  if (scenario.stack && scenario.trainer.gradient_bytes > 0 && scenario.trainer.gradient_bytes <= bytes_of(step.dtype))
    step.gradient_dtype = step.dtype;
}

void set_pace(Scenario& scenario) {
  if (!has_pace(scenario)) return;
  scenario.cluster = at_pace(std::move(scenario.cluster), *scenario.stack, scenario.step);
}

}  // namespace slipway::scenarios
