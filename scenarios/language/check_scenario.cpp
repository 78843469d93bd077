#include "scenarios/language/check_scenario.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "schedules/check/actions.h"
#include "schedules/draw/grid.h"
#include "schedules/rules/rules.h"
#include "schedules/step/action.h"

namespace slipway::scenarios {

std::vector<std::int64_t> rungs_between(const Step& step, std::int64_t first, std::int64_t largest) {
  const std::int64_t unit = step.micro_batch * step.layout.data;
  std::vector<std::int64_t> rungs;
  const std::int64_t last = std::min(largest / unit, most_micro_batches) * unit;
  for (std::int64_t batch = (first + unit - 1) / unit * unit; batch <= last; batch += unit)
    if (takes_batch(step, batch)) rungs.push_back(batch);
  return rungs;
}

bool runs_every_batch(const GrowthChoice& growth, const Step& step) {
  if (!growth.given) return true;
  if (growth.largest > 0 && !takes_batch(step, growth.largest)) return false;
  return std::all_of(growth.stages.begin(), growth.stages.end(),
                     [&](const BatchStage& stage) { return takes_batch(step, stage.batch); });
}

namespace {

std::string str(std::int64_t number) { return std::to_string(number); }

// Sets layout.data where it is unset: GPUs / (tensor·context·pipeline), or 0 where that is no whole number.
void derive_data(const Settings& settings, const Cluster& cluster, Layout& layout) {
  if (settings.given("layout.data")) return;
  if (!settings.good({"layout.tensor", "layout.context", "layout.pipeline", "layout.data"})) return;
  const std::int64_t others = std::int64_t{layout.tensor} * layout.context * layout.pipeline;
  const std::int64_t gpus = rank_capacity(cluster);
  layout.data = others > 0 && gpus % others == 0 ? static_cast<int>(gpus / others) : 0;
}

void derive_dtype(const Settings& settings, const Cluster& cluster, Dtype& dtype) {
  if (!settings.good({"run.dtype"}) || settings.given("run.dtype")) return;
  const bool gpus = std::all_of(cluster.groups.begin(), cluster.groups.end(),
                                [](const NodeGroup& group) { return group.machine.cores == 0; });
  dtype = gpus && computes_in(cluster, Dtype::bfloat16)  ? Dtype::bfloat16
          : gpus && computes_in(cluster, Dtype::float16) ? Dtype::float16
                                                         : Dtype::float32;
}

// The grid of the nearest larger shape that the schedule can run, for a picture of what is missing; empty when
// more micro-batches or ranks would not help.
std::string grid_of_nearest(const Step& step) {
  const Schedule& schedule = schedule_of(step);
  ScheduleShape shape = schedule_shape(step);
  if (!schedule.refuse(shape)) return "";
  // As many micro-batches as show the rule: their number modulo twice the ranks stays.
  const int whole = 2 * shape.pipeline;
  if (shape.micro_batches > 2 * whole) shape.micro_batches = whole + shape.micro_batches % whole;
  constexpr int most_rows = 16;
  if (shape.pipeline > most_rows || shape.chunks > most_rows) return "";
  ScheduleShape larger = shape;
  const auto refused = [&] { return schedule.refuse(larger).has_value(); };
  for (const int more_ranks : {0, 1}) {
    larger.pipeline = shape.pipeline + more_ranks;
    larger.micro_batches = shape.micro_batches;
    while (refused() && larger.micro_batches < shape.micro_batches + whole) ++larger.micro_batches;
    if (!refused()) break;
  }
  if (refused()) return "";
  const ActionLists lists = schedule.actions(larger);
  std::vector<GridCell> missing;
  for (int row = 0; row < larger.pipeline; ++row) {
    const auto& list = lists[row];
    for (int i = 0; i < static_cast<int>(list.size()); ++i)
      if (row >= shape.pipeline || list[i].micro_batch >= shape.micro_batches) missing.push_back({row, i});
  }
  return "\nwith what is missing marked:\n" + grid(lists, missing, {}, larger.pipeline * larger.chunks);
}

// Turns what the rule book refuses into errors with file and line.
void ask_the_rules(Settings& settings, bool has_model, bool has_cluster, const Scenario& scenario) {
  const KeyIsGood good = [&](std::string_view key) { return (key != "model" || has_model) && settings.good({key}); };
  const Step& step = scenario.step;
  for (const Refusal& refusal : has_cluster ? refusals(step, scenario.cluster, good) : refusals(step, good)) {
    const bool shape_is_known = settings.good({"schedule.global_batch", "schedule.micro_batch", "layout.data"});
    const std::string picture = shape_is_known && refusal.key == "schedule.name" ? grid_of_nearest(step) : "";
    settings.refuse(refusal.key, message_of(refusal), refusal.remedy + picture);
  }
}

// Checks of schedule.csv: it must be a whole step of the scenario's shape.

// Every micro-batch on half of the stages: what Chimera's rows look like to a schedule with one copy.
bool looks_bidirectional(const ActionLists& lists, const ScheduleShape& shape) {
  if (shape.copies > 1 || shape.chunks != 2) return false;
  std::map<int, std::set<int>> stages_of;  // of each micro-batch
  for (const auto& row : lists)
    for (const Action& action : row) stages_of[action.micro_batch].insert(action.stage);
  return std::all_of(stages_of.begin(), stages_of.end(),
                     [&](const auto& each) { return static_cast<int>(each.second.size()) == shape.pipeline; });
}

void check_csv(Settings& settings, const Scenario& scenario) {
  if (scenario.step.actions == nullptr ||
      !settings.good({"schedule.name", "schedule.slices", "schedule.global_batch", "schedule.micro_batch",
                      "layout.pipeline", "layout.chunks", "layout.data"}))
    return;
  const ScheduleShape shape = schedule_shape(scenario.step);
  constexpr std::size_t most = 3;
  const ActionLists& lists = *scenario.step.actions;
  const std::vector<ActionDefect> defects = check_actions(lists, shape);
  const std::string file = settings.text("schedule.csv");  // a refused key has none any more
  if (!defects.empty() && looks_bidirectional(lists, shape)) {
    settings.refuse("schedule.csv", "every micro-batch goes through half of the stages only",
                    "if that is one copy of the model for each direction, set schedule.name to " +
                        schedules_with([](const Schedule& each) { return each.copies > 1; }, " or ") +
                        "; otherwise correct " + file + "\n" + grid(lists, {}, {}, shape.pipeline * shape.chunks));
    return;
  }
  for (std::size_t i = 0; i < std::min(most, defects.size()); ++i) {
    const ActionDefect& defect = defects[i];
    const bool cut = i + 1 == most && defects.size() > most;
    settings.refuse("schedule.csv", defect.message,
                    "correct " + file + ", or leave schedule.csv out" +
                        (cut ? " (" + std::to_string(defects.size() - most) + " more)" : "") + "\n" +
                        grid(lists, defect.culprits, defect.missing, shape.pipeline * shape.chunks));
  }
}

int chunks_of(const ActionLists& lists, int copies) {
  std::set<int> seen;
  for (const auto& row : lists)
    for (const Action& action : row) seen.insert(action.stage);
  int stages = 0;
  while (seen.contains(stages)) ++stages;
  const int rows = std::max(1, static_cast<int>(lists.size())) * copies;
  return std::max(stages - 1, 0) / rows + 1;
}

void derive_fill(Settings& settings, Scenario& scenario) {
  if (!settings.good({"schedule.fill", "run.optimizer.name"})) return;
  Fill& fill = scenario.step.fill;
  if (!settings.given("schedule.fill")) fill = uses_kfac(scenario.step) ? Fill::kfac : Fill::none;
  if (fill == Fill::kfac && settings.given("run.optimizer.refresh_steps"))
    settings.refuse("run.optimizer.refresh_steps",
                    "in filled bubbles the refresh interval follows from what fits; allowed: with schedule.fill none",
                    "remove it, or set schedule.fill to none");
}

// Can every batch of `training.growth` be run by this layout and schedule, and do its numbers go together?
// Guarded by tests/scenarios/growth_errors_test.cpp.

// The rungs next to a batch that is none: "4096 or 4352".
std::string nearest_rungs(const std::vector<std::int64_t>& rungs, std::int64_t batch) {
  const auto above = std::lower_bound(rungs.begin(), rungs.end(), batch);
  std::string text = above == rungs.begin() ? "" : str(*(above - 1));
  if (above != rungs.end()) text += (text.empty() ? "" : " or ") + str(*above);
  return text;
}

void check_batch(Settings& settings, const Scenario& scenario, const std::string& key, std::int64_t batch) {
  const Step& step = scenario.step;
  const std::int64_t first = step.global_batch, unit = step.micro_batch * step.layout.data;
  if (batch < first) {
    settings.refuse(key,
                    "a batch does not shrink, and " + str(batch) + " is below schedule.global_batch = " + str(first) +
                        ", the first; allowed: from " + str(first) + " on",
                    "raise it, or lower schedule.global_batch");
    return;
  }
  if (batch / unit > most_micro_batches) {
    settings.refuse(
        key, "that is " + str(batch / unit) + " micro-batches per pipeline; allowed: up to " + str(most_micro_batches),
        "lower it, or raise schedule.micro_batch");
    return;
  }
  if (takes_batch(step, batch)) return;
  // As far around as a schedule that wants whole rounds of the pipeline has its next one.
  const std::int64_t round = unit * 4 * std::max(1, scenario.step.layout.pipeline);
  const std::vector<std::int64_t> rungs = rungs_between(step, std::max(first, batch - round), batch + round);
  settings.refuse(key,
                  str(batch) + " sequences cannot be a step of micro_batch " + str(scenario.step.micro_batch) +
                      " x data " + str(scenario.step.layout.data) + " = " + str(unit) + " in whole micro-batches of " +
                      scenario.step.schedule + "; allowed: such as " + nearest_rungs(rungs, batch),
                  "set it to " + nearest_rungs(rungs, batch));
}

void check_stages_of_growth(Settings& settings, const Scenario& scenario) {
  const std::vector<BatchStage>& stages = scenario.growth.stages;
  if (static_cast<int>(stages.size()) != settings.length("training.growth.stages")) return;  // reported already
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::string path = "training.growth.stages." + std::to_string(i);
    if (scenario.growth.largest > 0 && stages[i].batch > scenario.growth.largest)
      settings.refuse(path + ".batch",
                      str(stages[i].batch) + " is above training.growth.largest = " + str(scenario.growth.largest) +
                          "; allowed: up to that",
                      "lower it, or raise training.growth.largest");
    else
      check_batch(settings, scenario, path + ".batch", stages[i].batch);
    if (i == 0) continue;
    if (stages[i].from <= stages[i - 1].from || stages[i].batch < stages[i - 1].batch)
      settings.refuse(path,
                      "stages follow each other with larger batches; allowed: `from` above that of the stage before, "
                      "`batch` not below",
                      "put the stages in order");
  }
}

void check_rule(Settings& settings, const Scenario& scenario) {
  if (scenario.step.actions)
    settings.refuse("training.growth", "schedule.csv holds the actions of one batch; allowed: a named schedule",
                    "remove schedule.csv or training.growth");
  if (scenario.step.fill != Fill::none)
    settings.refuse("training.growth",
                    "work in the bubbles is placed for one batch; allowed: schedule.fill none and run.optimizer adamw",
                    "remove training.growth, or schedule.fill and run.optimizer");
}

void check_fitted(Settings& settings, const GrowthChoice& growth) {
  const std::vector<int>& batches = growth.fitted_batches;
  if (!settings.given("training.fitted.batches") || (batches.size() == 2 && batches[0] <= batches[1])) return;
  settings.refuse("training.fitted.batches",
                  "a range has two ends; allowed: two numbers, the least and the most sequences per step",
                  "write such as [2048, 6144]");
}

// The first mistake alone: the others may follow from it.
void check_losses(Settings& settings, const GrowthChoice& growth) {
  const LossDynamics& loss = growth.dynamics;
  const bool start = settings.given("training.loss.start"), floor = settings.given("training.loss.floor");
  const double target = growth.target_loss;
  if (floor && start && loss.floor >= loss.start)
    settings.refuse("training.loss.floor",
                    "a loss falls from its start, " + number_text(loss.start) + "; allowed: below that",
                    "lower training.loss.floor or raise training.loss.start");
  else if (target > 0 && floor && target <= loss.floor)
    settings.refuse("training.target_loss",
                    "no training gets to training.loss.floor = " + number_text(loss.floor) + "; allowed: above that",
                    "raise training.target_loss");
  else if (target > 0 && start && target >= loss.start)
    settings.refuse("training.target_loss",
                    "training starts at training.loss.start = " + number_text(loss.start) + "; allowed: below that",
                    "lower training.target_loss");
}

void check_noise(Settings& settings, const GrowthChoice& growth) {
  const double scale = growth.dynamics.noise_tokens;
  const bool above = growth.noise_least > scale, below = growth.noise_most > 0 && growth.noise_most < scale;
  if (scale <= 0 || (!above && !below)) return;
  settings.refuse("training.noise",
                  "least and most are around scale = " + number_text(scale) + "; allowed: least <= scale <= most",
                  "correct training.noise.least or training.noise.most");
}

void check_growth(Settings& settings, const Scenario& scenario, bool schedule_is_sound) {
  if (!settings.given("training")) return;
  check_losses(settings, scenario.growth);
  check_noise(settings, scenario.growth);
  check_fitted(settings, scenario.growth);
  if (!settings.given("training.growth")) return;
  check_rule(settings, scenario);
  // Batches are judged by a layout and schedule that can be.
  if (!schedule_is_sound || scenario.step.actions) return;
  if (settings.given("training.growth.largest"))
    check_batch(settings, scenario, "training.growth.largest", scenario.growth.largest);
  check_stages_of_growth(settings, scenario);
}

void derive_placement(const Settings& settings, Scenario& scenario) {
  if (!settings.given("layout.placement")) return;
  std::vector<int> sorted = scenario.step.layout.placement,
                   nodes(static_cast<std::size_t>(node_count(scenario.cluster)));
  std::sort(sorted.begin(), sorted.end());
  std::iota(nodes.begin(), nodes.end(), 0);
  if (sorted == nodes) scenario.cluster.gpu_of_rank = gpus_in_order(scenario.cluster, scenario.step.layout.placement);
}

// As the trainer does it.
void derive_habits(Settings& settings, Scenario& scenario) {
  Step& step = scenario.step;
  if (!settings.given("layout.context_exchange")) step.layout.context_exchange = usual_exchange(scenario);
  if (!settings.given("layout.split")) step.layout.split = usual_split(scenario);
  if (!settings.given("run.gradient_dtype")) {
    step.gradient_dtype = usual_gradient_dtype(scenario);
    return;
  }
  // A trainer that reduces what a run keeps keeps what it reduces; others keep their own dtype (aa-scaling: 16 bit).
  double& kept_bytes = scenario.memory.facts.gradient_bytes;
  if (kept_bytes > 0 && is_priced_by_trainer(scenario.cluster) && scenario.trainer.reduces_in == ReductionDtype::run)
    kept_bytes = bytes_of(step.gradient_dtype);
  if (!settings.good({"run.dtype", "run.gradient_dtype"}) || bytes_of(step.gradient_dtype) > bytes_of(step.dtype) ||
      step.gradient_dtype == step.dtype)
    return;
  settings.refuse("run.gradient_dtype",
                  name_of(step.gradient_dtype) + " holds no gradients of " + name_of(step.dtype) +
                      "; allowed: " + name_of(step.dtype) + " or a wider one",
                  "choose " + name_of(step.dtype) + " or float32, or leave it out");
}

// As the trainer does it. Both have an effect with run.fp8 alone.
void derive_narrow_gathers(const Settings& settings, Scenario& scenario) {
  if (!is_priced_by_trainer(scenario.cluster)) return;
  NarrowHabits& habits = scenario.step.narrow_habits;
  if (!settings.given("run.fp8_sequence_gather")) habits.gathers_inputs = scenario.trainer.gathers_narrow_inputs;
  if (!settings.given("run.fp8_param_gather"))
    habits.gathers_weights = scenario.trainer.narrow_weights.has(scenario.step.narrow);
}

// The added rows are of no token: they are computed, held and trained like any other, and never a target.
void pad_vocabulary(const Settings& settings, Scenario& scenario) {
  if (scenario.vocab_multiple == 0 || !settings.good({"layout.vocab_multiple", "layout.tensor"})) return;
  const std::int64_t unit = std::int64_t{scenario.vocab_multiple} * scenario.step.layout.tensor;
  Model model = scenario.step.model;
  for (BlockRun& run : model.runs) run.block.vocab = (run.block.vocab + unit - 1) / unit * unit;
  scenario.step.model = std::move(model);
}

// A router has a bias where the run moves it.
void give_routers_a_bias(Scenario& scenario) {
  if (scenario.step.optimizer.router_bias_speed == 0) return;
  Model model = scenario.step.model;
  for (BlockRun& run : model.runs) run.block.router_bias = run.block.experts > 0;
  scenario.step.model = std::move(model);
}

}  // namespace

void derive_and_check(Settings& settings, bool has_model, bool has_cluster, Scenario& scenario) {
  Layout& layout = scenario.step.layout;
  const Schedule* schedule = known_schedule(scenario.step);
  if (!settings.given("schedule.slices") && schedule != nullptr)  // the CSV format knows no slices
    scenario.step.slices = scenario.step.actions ? 1 : schedule->default_slices;
  if (!settings.given("layout.chunks") && schedule != nullptr)
    layout.chunks =
        scenario.step.actions ? chunks_of(*scenario.step.actions, schedule->copies) : schedule->default_chunks;
  if (has_model) pad_vocabulary(settings, scenario);
  if (has_model) give_routers_a_bias(scenario);
  const bool data_is_written = settings.given("layout.data");
  if (has_cluster) {
    derive_placement(settings, scenario);
    derive_data(settings, scenario.cluster, layout);
    derive_dtype(settings, scenario.cluster, scenario.step.dtype);
    derive_habits(settings, scenario);
    derive_narrow_gathers(settings, scenario);
    derive_step(scenario);
  }
  derive_fill(settings, scenario);
  ask_the_rules(settings, has_model, has_cluster, scenario);
  const bool has_data = data_is_written || (has_cluster && settings.good({"layout.data"}));
  if (has_data) check_csv(settings, scenario);
  check_growth(settings, scenario, has_data && settings.refused() == 0);
}

}  // namespace slipway::scenarios
