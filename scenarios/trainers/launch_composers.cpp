// Arguments of a launch of Megatron-LM or torchtitan that take lists or arithmetic and can be refused: lengths of a
// training, groups of micro-batches, stages by name. All else is in the dictionaries (models/trainers/arguments).
// Schedulers as in Megatron-LM (megatron/core/optimizer_param_scheduler.py, whose warm-up must end before its decay)
// and torchtitan (torchtitan/components/lr_scheduler.py, in steps).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "scenarios/language/keys.h"
#include "scenarios/language/load_model.h"
#include "scenarios/language/quantity.h"
#include "scenarios/language/settings.h"
#include "scenarios/trainers/launch_composers.h"
#include "scenarios/trainers/launch_values.h"
#include "schedules/catalogue/interleaved_order.h"

namespace slipway::scenarios {

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

// Without a given end, the decay ends with the training, also for a constant rate.
void refuse_megatron_warmup(const LearningRateSchedule& schedule, std::int64_t train_samples, LaunchArguments& launch) {
  const bool own_end = schedule.decay_samples > 0;
  const std::int64_t end = own_end ? schedule.decay_samples : train_samples;
  if (end == 0 || schedule.warmup_samples < end) return;
  launch.refused_anyway.push_back(
      fmt::format("the warm-up of {} samples is not shorter than {} {}; lower run.optimizer.lr_warmup_samples",
                  schedule.warmup_samples, own_end ? "--lr-decay-samples" : "--train-samples", end));
}

// AdamW is the only group of parameters of the registry's configs.
const std::string torchtitan_optimizer = "--optimizer.param_groups.0.optimizer_kwargs.";

// In the trainer's steps, rounded up.
void torchtitan_warmup(const Scenario& s, LaunchArguments& launch) {
  const std::int64_t samples = s.step.optimizer.lr_schedule.warmup_samples, batch = s.step.global_batch;
  const std::int64_t steps = samples / batch + (samples % batch > 0), all = torchtitan_steps(s);
  launch.arguments.push_back(fmt::format("--lr_scheduler.warmup_steps {}", steps));
  if (samples % batch > 0)
    launch.missing.push_back(
        fmt::format("a warm-up of {} samples (run.optimizer.lr_warmup_samples): rounded up to steps of {}, {} samples",
                    samples, batch, steps * batch));
  if (steps > all)
    launch.missing.push_back(
        fmt::format("a warm-up of {} steps (run.optimizer.lr_warmup_samples): torchtitan cuts it to the training, "
                    "--training.steps {} ({})",
                    steps, all, s.tokens > 0 ? "of run.tokens" : "run.steps; set run.tokens to the training's length"));
}

// Are the blocks those of the built-in model of that name? A scenario may have laid other shapes or features over them.
bool is_built_in(const Model& model) {
  Defects defects;
  const std::string text = fmt::format("{{model: {{name: {}, sequence: {}}}}}", model.name, model.sequence);
  std::optional<Value> document = parse_document(text, "the built-in model", defects);
  if (!document) return false;
  Settings settings(std::move(*document), scenario_keys(), defects);
  const std::optional<Model> built_in = load_model(settings, "");
  return built_in && built_in->runs == model.runs;
}

// The registry's model and config of a built-in model of ours: the recipe that names its flavor.
const Recipe* config_of(const Dictionary& dictionary, std::string_view built_in) {
  for (const NamedModel& model : dictionary.models) {
    if (model.keys.size() != 1 || model.keys[0].first != "name" || model.keys[0].second != built_in) continue;
    for (const Recipe& recipe : dictionary.recipes) {
      const auto says = [&](const char* argument, const std::string& value) {
        return std::any_of(recipe.arguments.begin(), recipe.arguments.end(), [&](const auto& each) {
          return each.first == argument && each.second == std::vector<std::string>{value};
        });
      };
      if (says("model.name", model.module) && says("model.flavor", model.flavor)) return &recipe;
    }
  }
  return nullptr;
}

// A schedule's class of PyTorch; empty: it has none, and the order of passes is given as a CSV.
std::string class_of(const std::string& schedule) {
  for (const auto& [theirs, ours] : built_in_dictionary("torchtitan")->table("launched schedules"))
    if (ours == schedule) return theirs;
  return "";
}

// "tok_embeddings,layers.0,layers.1 layers.2,layers.3,norm,lm_head"
std::string module_names(const std::vector<int>& layers) {
  std::string names;
  int layer = 0;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    std::string part = stage == 0 ? ",tok_embeddings" : "";
    for (int i = 0; i < layers[stage]; ++i) part += ",layers." + std::to_string(layer++);
    if (stage + 1 == layers.size()) part += ",norm,lm_head";
    names += (stage == 0 ? "" : " ") + (part.empty() ? part : part.substr(1));
  }
  return names;
}

}  // namespace

// Lengths in samples require the training's length in samples.
void launch_megatron_length(const Scenario& s, LaunchArguments& launch) {
  const LearningRateSchedule& schedule = s.step.optimizer.lr_schedule;
  const bool in_samples = !schedule.is_constant();
  const std::string length = in_samples ? "--train-samples" : "--train-iters";
  const std::int64_t planned = s.tokens > 0 ? planned_steps(s) * (in_samples ? s.step.global_batch : 1) : 0;
  auto& list = launch.arguments;
  if (planned > 0)
    list.push_back(fmt::format("{} {}", length, planned));
  else
    launch.to_add.push_back(length + " (run.tokens says how many)");
  list.push_back(std::string("--lr-decay-style ") + name_of(schedule.decay));
  if (!in_samples) {
    launch.to_add.emplace_back(
        "your own schedule of the learning rate, if any: run.optimizer.lr_decay_style is constant, without "
        "warm-up");
    return;
  }
  list.push_back("--min-lr " + number_text(schedule.least));
  if (schedule.decay_samples > 0) list.push_back(fmt::format("--lr-decay-samples {}", schedule.decay_samples));
  if (schedule.warmup_samples == 0) return;
  list.push_back(fmt::format("--lr-warmup-samples {}", schedule.warmup_samples));
  launch.missing.emplace_back(
      "a warm-up that counts the step itself: Megatron-LM's is a step behind, its first step has rate 0");
  refuse_megatron_warmup(schedule, planned, launch);
}

// A decay ends with the training. With a ratio of 1, torchtitan cuts its beginning to the end of the warm-up.
void launch_torchtitan_rate(const Scenario& s, LaunchArguments& launch) {
  const Optimizer& own = s.step.optimizer;
  const LearningRateSchedule& schedule = own.lr_schedule;
  auto& list = launch.arguments;
  list.push_back(torchtitan_optimizer + "lr " + number_text(own.lr));
  torchtitan_warmup(s, launch);
  if (schedule.decay == DecayStyle::constant) {
    list.emplace_back("--lr_scheduler.decay_ratio 0");
    return;
  }
  list.emplace_back("--lr_scheduler.decay_ratio 1");
  list.push_back(std::string("--lr_scheduler.decay_type ") + name_of(schedule.decay));
  list.push_back("--lr_scheduler.min_lr_factor " + number_text(own.lr > 0 ? schedule.least / own.lr : 0));
  if (schedule.decay_samples > 0)
    launch.missing.emplace_back(
        "the end of the decay (run.optimizer.lr_decay_samples): torchtitan's is that of the training");
}

// Megatron-LM's groups have one size, and a shorter last one of no fewer micro-batches than there are pipeline ranks.
void launch_megatron_groups(const Scenario& s, LaunchArguments& launch) {
  if (s.step.layout.pipeline == 1 || s.step.actions != nullptr || !schedule_of(s.step).has_groups) return;
  const std::vector<int> groups = groups_of(schedule_shape(s.step));
  const int size = groups.front(), pipeline = s.step.layout.pipeline;
  if (s.step.layout.chunks == 1 || size == pipeline) return;
  launch.arguments.push_back("--microbatch-group-size-per-virtual-pipeline-stage " + text(size));
  const auto unlike = [&](int each) { return each != size; };
  if (groups.back() < pipeline || std::any_of(groups.begin(), groups.end() - 1, unlike))
    launch.refused.push_back("groups of micro-batches of several sizes; set schedule.group to a number from " +
                             text(pipeline) + " on that Megatron-LM takes");
}

// Changes of the model's config.json in numbers alone have separate arguments, if any.
void launch_megatron_config_fields(const Scenario& s, LaunchArguments& launch) {
  const Model& model = s.step.model;
  for (const std::string& field : model.only_predicted)
    if (!(scales_rotary_angles(model.name) && field.starts_with("rope_")))
      launch.missing.push_back("'" + field +
                               "' of the model's config: it changes numbers, and no argument is given for it");
}

// A config of the registry gives the model; overrides cannot.
void launch_torchtitan_model(const Scenario& s, LaunchArguments& launch) {
  const Model& model = s.step.model;
  const Recipe* config = is_built_in(model) ? config_of(*built_in_dictionary("torchtitan"), model.name) : nullptr;
  if (config == nullptr) {
    launch.to_add.push_back("--module and --config: no config of torchtitan's registry is known to have the model " +
                            model.name + "; write one");
    if (has_experts(model))
      launch.refused.emplace_back("experts: it is unknown which of torchtitan's models has the same experts");
    return;
  }
  for (const auto& [argument, values] : config->arguments)
    if (argument == "model.name") launch.arguments.push_back("--module " + values.at(0));
  launch.arguments.push_back("--config " + config->name);
}

void launch_torchtitan_pipeline(const Scenario& s, LaunchArguments& launch) {
  auto& list = launch.arguments;
  const std::vector<int> layers = layers_per_stage(s);
  const bool from_csv = s.step.actions != nullptr;
  const std::string name = from_csv ? "" : class_of(s.step.schedule);
  list.push_back("--parallelism.pipeline_parallel_schedule " + (name.empty() ? "PipelineScheduleMulti" : name));
  if (name.empty()) {
    list.emplace_back("--parallelism.pipeline_parallel_schedule_csv schedule.csv");
    launch.to_add.emplace_back("the file schedule.csv: `slipway show SCENARIO --csv` prints it");
  }
  if (schedule_of(s.step).copies > 1 || s.step.slices > 1)
    launch.refused.push_back("the schedule " + s.step.schedule +
                             ": it has two copies of the model, or slices of sequences");
  if (std::find(layers.begin() + 1, layers.end() - 1, 0) != layers.end() - 1)
    launch.refused.emplace_back("a stage without layers: its list of modules would be empty");
  list.push_back("--parallelism.module_fqns_per_model_part " + module_names(layers));
  list.push_back("--parallelism.pipeline_parallel_microbatch_size " + text(s.step.micro_batch));
}

}  // namespace slipway::scenarios
