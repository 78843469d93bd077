#include "scenarios/language/check_scenario.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "models/model/token_ranges.h"
#include "schedules/check/actions.h"
#include "schedules/draw/grid.h"
#include "schedules/lower/lowering.h"
#include "schedules/step/action.h"

namespace slipway::scenarios {

StepCut step_cut(const Scenario& scenario) {
  return {schedule_named(scenario.step.schedule), scenario.step.model, scenario.step.layout, scenario.step.micro_batch,
          scenario.step.slices};
}

namespace {

// Of the smallest step: a schedule does it or does not.
bool splits_backward(const StepCut& cut) {
  const Layout& layout = cut.layout;
  for (int count = 1; count <= 8 * layout.pipeline; ++count) {
    const ScheduleShape shape{layout.pipeline, layout.chunks, count, cut.slices, cut.schedule->copies};
    if (cut.schedule->refuse == nullptr || cut.schedule->refuse(shape).empty())
      return splits_backward(cut.schedule->actions(shape));
  }
  return false;  // it runs no step
}

}  // namespace

std::string why_no_norm_test(const StepCut& cut) {
  return why_no_worker_norms(cut.model, cut.layout, cut.schedule->copies, cut.slices, splits_backward(cut));
}

bool is_rung(const StepCut& cut, std::int64_t batch) {
  const std::int64_t count = batch / cut.unit();
  if (count < 1 || batch % cut.unit() != 0 || count > most_micro_batches) return false;
  const ScheduleShape shape{cut.layout.pipeline, cut.layout.chunks, static_cast<int>(count), cut.slices,
                            cut.schedule->copies};
  return cut.schedule->refuse == nullptr || cut.schedule->refuse(shape).empty();
}

std::vector<std::int64_t> rungs_between(const StepCut& cut, std::int64_t first, std::int64_t largest) {
  std::vector<std::int64_t> rungs;
  const std::int64_t last = std::min(largest / cut.unit(), most_micro_batches) * cut.unit();
  for (std::int64_t batch = (first + cut.unit() - 1) / cut.unit() * cut.unit(); batch <= last; batch += cut.unit())
    if (is_rung(cut, batch)) rungs.push_back(batch);
  return rungs;
}

bool runs_every_batch(const GrowthChoice& growth, const StepCut& cut) {
  if (!growth.given) return true;
  if (growth.rule == BatchRule::norm_test && !why_no_norm_test(cut).empty()) return false;
  if (growth.largest > 0 && !is_rung(cut, growth.largest)) return false;
  return std::all_of(growth.stages.begin(), growth.stages.end(),
                     [&](const BatchStage& stage) { return is_rung(cut, stage.batch); });
}

namespace {

std::string str(std::int64_t number) { return std::to_string(number); }

// Digits, not 8e+06, as far as a double has them all.
std::string whole_text(double number) {
  constexpr double exact = 9e15;
  return number < exact ? str(static_cast<std::int64_t>(number)) : number_text(number);
}

// "1, 2, 4, 8": the divisors of `number` up to 1024, for "allowed".
std::string divisors_of(std::int64_t number) {
  std::string out;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(number, 1024); ++d)
    if (number % d == 0) out += (out.empty() ? "" : ", ") + str(d);
  return out;
}

}  // namespace

const Block* first_block(const Model& model, BlockKind kind) {
  for (const BlockRun& run : model.runs)
    if (run.block.kind == kind) return &run.block;
  return nullptr;
}

void check_divides(Settings& settings, const std::string& degree_key, std::int64_t degree, const std::string& name,
                   std::int64_t size) {
  if (size % degree == 0) return;
  const std::int64_t next = (size / degree + 1) * degree;
  settings.refuse(degree_key,
                  degree_key + " = " + str(degree) + " does not divide " + name + " = " + str(size) +
                      "; allowed: " + divisors_of(size),
                  name == "model.vocab" ? "pad the vocabulary: set model.vocab to " + str(next)
                                        : "choose one of these, or change " + name);
}

namespace {

// Each rank of a context group has one piece of the sequence, or two if it is causal (models/model/token_ranges.h).
void check_pieces(Settings& settings, int context, bool causal, std::int64_t sequence) {
  if (context == 1) return;
  check_divides(settings, "layout.context", context, "model.sequence", sequence);
  if (sequence % context != 0 || sequence % pieces_of(causal, context) == 0) return;
  settings.refuse("layout.context",
                  "a causal sequence is cut into two pieces for each context rank, and " +
                      str(pieces_of(causal, context)) + " does not divide model.sequence = " + str(sequence) +
                      "; allowed: " + divisors_of(sequence / 2),
                  "choose one of these, or change model.sequence");
}

// The scores that unfused kernels write are of whole rows; only fused ones hand out a log-sum-exp to merge by.
void check_exchange(Settings& settings, const Scenario& scenario) {
  if (scenario.step.layout.context_exchange != ContextExchange::ring || !writes_scores(scenario.step.kernels)) return;
  if (!settings.good({"layout.context_exchange", "schedule.kernels"})) return;
  settings.refuse("layout.context_exchange",
                  "ring attention merges partial results by their log-sum-exp, which unfused kernels do not "
                  "make; allowed: all-gather",
                  "set schedule.kernels to flash1, flash2 or flash2_rmsnorm, or layout.context_exchange to all-gather");
}

void check_shards(Settings& settings, const Scenario& scenario) {
  const Layout& layout = scenario.step.layout;
  const Block* block = first_block(scenario.step.model, BlockKind::transformer);
  const Block* head = first_block(scenario.step.model, BlockKind::head);
  const std::int64_t sequence = scenario.step.model->sequence;
  if (settings.good({"layout.tensor"}) && block != nullptr && head != nullptr) {
    const std::pair<std::string, std::int64_t> sizes[] = {{"model.heads", block->heads},
                                                          {"model.kv_heads", block->kv_heads},
                                                          {"model.ffn", block->ffn},
                                                          {"model.vocab", head->vocab}};
    for (const auto& [name, size] : sizes) {
      if (name == "model.kv_heads" && (block->kv_heads == block->heads || block->heads % layout.tensor != 0)) continue;
      check_divides(settings, "layout.tensor", layout.tensor, name, size);
    }
  }
  if (!settings.good({"layout.context"})) return;
  if (block != nullptr) check_pieces(settings, layout.context, block->causal, sequence);
  if (sequence % layout.context != 0 || !layout.sequence_parallel || layout.tensor == 1) return;
  if (const std::int64_t local = sequence / layout.context; local % layout.tensor != 0)
    settings.refuse(
        "layout.sequence_parallel",
        "tensor = " + str(layout.tensor) + " does not divide the " + str(local) +
            " tokens of a context rank, which sequence_parallel shards; allowed tensor: " + divisors_of(local),
        "choose one of these, turn sequence_parallel off, or change model.sequence");
}

void check_layout_alone(Settings& settings, const Layout& layout) {
  if (settings.good({"layout.expert"}) && layout.expert > 1)
    settings.refuse("layout.expert", "expert parallelism is reserved and not modelled yet; allowed: 1",
                    "set layout.expert to 1");
  if (settings.good({"layout.sequence_parallel", "layout.tensor"}) && layout.sequence_parallel && layout.tensor == 1)
    settings.refuse("layout.sequence_parallel",
                    "sequence_parallel shards over the tensor group, but layout.tensor is 1; "
                    "allowed: with tensor of 2 or more",
                    "turn sequence_parallel off or raise layout.tensor");
}

// Sets layout.data where it is unset; then ranks = tensor·context·data·pipeline must be the cluster's GPUs.
void derive_data(Settings& settings, const Cluster& cluster, Layout& layout) {
  if (!settings.good({"layout.tensor", "layout.context", "layout.pipeline", "layout.data"})) return;
  // In double: each degree is at most 1e6, the product of them need not fit an integer.
  const double others = static_cast<double>(layout.tensor) * layout.context * layout.pipeline;
  const double gpus = rank_capacity(cluster);
  const double share = gpus / others;
  const std::string product =
      "tensor " + str(layout.tensor) + " x context " + str(layout.context) + " x pipeline " + str(layout.pipeline);
  const bool whole = share >= 1 && share == static_cast<double>(static_cast<std::int64_t>(share));
  if (!settings.given("layout.data") && whole) {
    layout.data = static_cast<int>(share);
    return;
  }
  if (settings.given("layout.data") && others * layout.data == gpus) return;
  const std::string ranks = settings.given("layout.data") ? product + " x data " + str(layout.data) : product;
  const double made = settings.given("layout.data") ? others * layout.data : others;
  settings.refuse("layout.data",
                  ranks + " = " + whole_text(made) + " ranks do not " +
                      (settings.given("layout.data") ? "equal" : "divide") + " the cluster's " + whole_text(gpus) +
                      " GPUs; allowed: a product of tensor, context, data and pipeline of " + whole_text(gpus),
                  whole ? "set layout.data to " + whole_text(share) + ", or leave it out"
                        : "change layout.tensor, context or pipeline, or cluster.nodes and gpus_per_node");
}

void check_stages(Settings& settings, const Scenario& scenario) {
  const Layout& layout = scenario.step.layout;
  if (!settings.good({"layout.pipeline", "layout.chunks"})) return;
  const std::int64_t layers = layer_count(scenario.step.model);
  const std::int64_t stages = static_cast<std::int64_t>(layout.pipeline) * layout.chunks;
  if (stages > layers) {
    settings.refuse(settings.given("layout.pipeline") ? "layout.pipeline" : "layout.chunks",
                    "pipeline " + str(layout.pipeline) + " x chunks " + str(layout.chunks) + " = " + str(stages) +
                        " stages are more than the model's " + str(layers) + " transformer blocks; allowed: up to " +
                        str(layers),
                    "lower layout.pipeline or layout.chunks");
    return;
  }
  if (layout.split != SplitKind::list || !settings.good({"layout.split"})) return;
  const std::int64_t entries = static_cast<std::int64_t>(layout.split_list.size());
  const std::int64_t sum = std::accumulate(layout.split_list.begin(), layout.split_list.end(), std::int64_t{0});
  const std::string allowed = "; allowed: " + str(stages) + " numbers that add up to " + str(layers);
  if (entries != stages) {
    settings.refuse("layout.split",
                    "the list has " + str(entries) + " numbers for " + str(stages) + " stages" + allowed,
                    "give one number of layers for each of pipeline x chunks stages");
  } else if (sum != layers) {
    settings.refuse("layout.split", "the list adds up to " + str(sum) + " of " + str(layers) + " layers" + allowed,
                    "change the list so that it adds up");
  } else {
    try {
      split_blocks(scenario.step.model, layout);
    } catch (const std::invalid_argument& reason) {
      settings.refuse("layout.split", reason.what() + allowed, "change the list");
    }
  }
}

bool has_peak(const Cluster& cluster, Dtype dtype) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
    return awaits_calibration(group.machine) || group.machine.peak_flops[static_cast<std::size_t>(dtype)] > 0;
  });
}

void derive_dtype(Settings& settings, const Cluster& cluster, Dtype& dtype) {
  if (!settings.good({"run.dtype"})) return;
  std::string allowed;
  for (const Dtype each : {Dtype::float64, Dtype::float32, Dtype::bfloat16, Dtype::float16})
    if (has_peak(cluster, each)) allowed += (allowed.empty() ? "" : ", ") + name_of(each);
  const bool gpus = std::all_of(cluster.groups.begin(), cluster.groups.end(),
                                [](const NodeGroup& group) { return group.machine.cores == 0; });
  if (!settings.given("run.dtype"))
    dtype = gpus && has_peak(cluster, Dtype::bfloat16)  ? Dtype::bfloat16
            : gpus && has_peak(cluster, Dtype::float16) ? Dtype::float16
                                                        : Dtype::float32;
  if (has_peak(cluster, dtype)) return;
  settings.refuse("run.dtype",
                  "a machine profile of the cluster gives no peak FLOP/s for " + name_of(dtype) + "; allowed: " +
                      (allowed.empty() ? "none of float64, float32, bfloat16, float16 in all profiles" : allowed),
                  "choose one of these, or add peak_flops." + name_of(dtype) + " with its source to the profile");
}

}  // namespace

void derive_and_check(Settings& settings, bool has_model, bool has_cluster, Scenario& scenario) {
  Layout& layout = scenario.step.layout;
  const Schedule* schedule = schedule_named(scenario.step.schedule);
  if (!settings.given("schedule.slices") && schedule != nullptr)  // the CSV format knows no slices
    scenario.step.slices = scenario.step.actions ? 1 : schedule->default_slices;
  if (!settings.given("layout.chunks") && schedule != nullptr)
    layout.chunks =
        scenario.step.actions ? chunks_of(*scenario.step.actions, schedule->copies) : schedule->default_chunks;
  check_layout_alone(settings, layout);
  const bool data_is_written = settings.given("layout.data");
  if (has_cluster) {
    derive_placement(settings, scenario);
    derive_data(settings, scenario.cluster, layout);
    derive_dtype(settings, scenario.cluster, scenario.step.dtype);
    derive_step(scenario);
  }
  derive_fill(settings, scenario);
  if (has_model && has_cluster) check_block_times(settings, scenario);
  if (has_model) {
    check_shards(settings, scenario);
    check_exchange(settings, scenario);
    check_stages(settings, scenario);
  }
  const bool has_data = data_is_written || (has_cluster && settings.good({"layout.data"}));
  check_schedule(settings, scenario, has_model, has_data);
  if (has_cluster && settings.good({"cluster", "layout", "layout.data"})) check_fabrics(settings, scenario);
  check_growth(settings, scenario, has_data && settings.refused() == 0);
}

// What a scenario's schedule.csv must be: a whole step of the scenario's shape.

namespace {

// Every micro-batch on half of the stages: what Chimera's rows look like to a schedule with one copy.
bool looks_bidirectional(const ActionLists& lists, const ScheduleShape& shape) {
  if (shape.copies > 1 || shape.chunks != 2) return false;
  std::map<int, std::set<int>> stages_of;  // of each micro-batch
  for (const auto& row : lists)
    for (const Action& action : row) stages_of[action.micro_batch].insert(action.stage);
  return std::all_of(stages_of.begin(), stages_of.end(),
                     [&](const auto& each) { return static_cast<int>(each.second.size()) == shape.pipeline; });
}

}  // namespace

void check_csv(Settings& settings, const Scenario& scenario, const ScheduleShape& shape) {
  constexpr std::size_t most = 3;
  const ActionLists& lists = *scenario.step.actions;
  const std::vector<ActionDefect> defects = check_actions(lists, shape);
  const std::string file = settings.text("schedule.csv");  // a refused key has none any more
  if (!defects.empty() && looks_bidirectional(lists, shape)) {
    settings.refuse("schedule.csv", "every micro-batch goes through half of the stages only",
                    "if that is one copy of the model for each direction, set schedule.name to chimera; otherwise "
                    "correct " +
                        file + "\n" + grid(lists, {}, {}, shape.pipeline * shape.chunks));
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

// Can the ranks that must talk to each other do so? Walks the neighbours of every group of the layout.

namespace {

bool connected(const Cluster& cluster, const Place& a, const Place& b) {
  return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(),
                     [&](const Fabric& fabric) { return connects(fabric, a, b); });
}

std::string in_words(const Place& place) {
  return "GPU " + std::to_string(place.gpu) + " of node " + std::to_string(place.node) + " (group " +
         std::to_string(place.group) + ")";
}

struct AxisOfLayout {
  const char* name;
  int degree;
  int Coordinates::*position;
};

// The first pair of neighbours along an axis that no fabric connects is one error.
bool check_axis(Settings& settings, const Scenario& scenario, const AxisOfLayout& axis) {
  const int ranks = rank_count(scenario.step.layout);
  for (int rank = 0; rank < ranks && axis.degree > 1; ++rank) {
    Coordinates at = coordinates_of(scenario.step.layout, rank);
    at.*axis.position = (at.*axis.position + 1) % axis.degree;
    const int peer = rank_of(scenario.step.layout, at);
    const Place here = place_of(scenario.cluster, rank), there = place_of(scenario.cluster, peer);
    if (connected(scenario.cluster, here, there)) continue;
    settings.refuse("cluster.fabrics",
                    "ranks " + std::to_string(rank) + " and " + std::to_string(peer) + " of a " + axis.name +
                        " group have no common fabric: " + in_words(here) + " and " + in_words(there) +
                        "; allowed: clusters in which all members of a group are connected",
                    "add a fabric with both groups as members (scope cluster between nodes), or give the machine "
                    "profile a " +
                        std::string(here.node == there.node ? "node_link" : "network_link"));
    return false;
  }
  return true;
}

}  // namespace

void check_fabrics(Settings& settings, const Scenario& scenario) {
  const Layout& layout = scenario.step.layout;
  const AxisOfLayout axes[] = {{"tensor", layout.tensor, &Coordinates::tensor},
                               {"context", layout.context, &Coordinates::context},
                               {"data", layout.data, &Coordinates::data},
                               {"pipeline", layout.pipeline, &Coordinates::pipeline}};
  for (const AxisOfLayout& axis : axes)
    if (!check_axis(settings, scenario, axis)) return;
}

// What K-FAC, filled bubbles and block tables cannot be combined with.

namespace {

void check_kfac(Settings& settings, const Scenario& scenario) {
  if (scenario.step.optimizer.name != "kfac") return;
  const Layout& layout = scenario.step.layout;
  if (has_experts(scenario.step.model))
    settings.refuse(
        "run.optimizer",
        "K-FAC of experts is not modelled: each has few tokens for factors of its own; allowed with model.experts: "
        "adamw",
        "choose adamw, or a model without experts");
  if (settings.good({"layout.tensor"}) && layout.tensor > 1)
    settings.refuse("layout.tensor",
                    "K-FAC's factors belong to whole layers, which tensor parallelism splits; allowed with "
                    "run.optimizer kfac: 1",
                    "set layout.tensor to 1, or choose another optimizer");
  if (settings.good({"layout.zero"}) && layout.zero > 0)
    settings.refuse("layout.zero",
                    "K-FAC preconditions the gradient of a whole layer, which ZeRO shards; allowed with "
                    "run.optimizer kfac: 0",
                    "set layout.zero to 0, or choose another optimizer");
}

void check_evaluation(Settings& settings, const Layout& layout) {
  for (const auto& [key, degree] :
       {std::pair{"layout.tensor", layout.tensor}, std::pair{"layout.context", layout.context}})
    if (settings.good({key}) && degree > 1)
      settings.refuse(
          key,
          "evaluation in the bubbles passes whole layers on a rank, because sharded ones communicate; allowed with "
          "schedule.fill evaluation: 1",
          std::string("set ") + key + " to 1, or leave schedule.fill out");
}

}  // namespace

void derive_fill(Settings& settings, Scenario& scenario) {
  check_kfac(settings, scenario);
  if (!settings.good({"schedule.fill", "run.optimizer.name"})) return;
  const bool kfac = scenario.step.optimizer.name == "kfac";
  FillChoice& fill = scenario.fill;
  fill = settings.given("schedule.fill") ? static_cast<FillChoice>(settings.choice("schedule.fill"))
         : kfac                          ? FillChoice::kfac
                                         : FillChoice::none;
  if (fill == FillChoice::kfac && !kfac)
    settings.refuse("schedule.fill",
                    "there is no K-FAC work: run.optimizer is " + scenario.step.optimizer.name +
                        "; allowed with it: none, evaluation",
                    "set run.optimizer to kfac");
  if (fill == FillChoice::evaluation) check_evaluation(settings, scenario.step.layout);
  if (fill == FillChoice::evaluation && kfac)
    settings.refuse("schedule.fill",
                    "the bubbles take one kind of work, and run.optimizer kfac brings its own; allowed with it: "
                    "none, kfac",
                    "leave schedule.fill out, or choose another optimizer");
  if (fill == FillChoice::kfac && settings.given("run.optimizer.refresh_steps"))
    settings.refuse("run.optimizer.refresh_steps",
                    "in filled bubbles the refresh interval follows from what fits; allowed: with schedule.fill none",
                    "remove it, or set schedule.fill to none");
}

void check_block_times(Settings& settings, const Scenario& scenario) {
  if (!settings.given("cluster.block_times") ||
      !settings.good({"model", "schedule.name", "schedule.slices", "schedule.micro_batch", "layout.tensor",
                      "layout.context", "run.dtype"}))
    return;
  const BlockTable& table = scenario.cluster.groups.front().machine.blocks;
  WorkShape shape;
  shape.micro_batch = scenario.step.micro_batch;
  shape.sequence = scenario.step.model->sequence / scenario.step.slices;
  shape.sharding = sharding_of(scenario.step.layout);
  shape.dtype = scenario.step.dtype;
  for (const BlockRun& run : scenario.step.model->runs) {
    if (run.block.kind != BlockKind::transformer) continue;
    const std::string reason = mismatch(table, run.block, shape);
    if (reason.empty()) continue;
    settings.refuse("cluster.block_times", reason + "; allowed: what was measured",
                    "change the scenario, or leave cluster.block_times out to price from the machine");
    return;
  }
}

// Can every batch of `training.growth` be run by this layout and schedule, and do its numbers go together?
// Guarded by tests/scenarios/growth_errors_test.cpp.

namespace {

// The rungs next to a batch that is none: "4096 or 4352".
std::string nearest_rungs(const std::vector<std::int64_t>& rungs, std::int64_t batch) {
  const auto above = std::lower_bound(rungs.begin(), rungs.end(), batch);
  std::string text = above == rungs.begin() ? "" : str(*(above - 1));
  if (above != rungs.end()) text += (text.empty() ? "" : " or ") + str(*above);
  return text;
}

void check_batch(Settings& settings, const Scenario& scenario, const std::string& key, std::int64_t batch) {
  const std::int64_t first = scenario.step.global_batch, unit = step_cut(scenario).unit();
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
  const StepCut cut = step_cut(scenario);
  if (is_rung(cut, batch)) return;
  // As far around as a schedule that wants whole rounds of the pipeline has its next one.
  const std::int64_t round = unit * 4 * std::max(1, scenario.step.layout.pipeline);
  const std::vector<std::int64_t> rungs = rungs_between(cut, std::max(first, batch - round), batch + round);
  settings.refuse(key,
                  str(batch) + " sequences cannot be a step of micro_batch " + str(scenario.step.micro_batch) +
                      " x data " + str(scenario.step.layout.data) + " = " + str(unit) + " in whole micro-batches of " +
                      scenario.step.schedule + "; allowed: such as " + nearest_rungs(rungs, batch),
                  "set it to " + nearest_rungs(rungs, batch));
}

void check_stages_of_growth(Settings& settings, const Scenario& scenario) {
  const std::vector<BatchStage>& stages = scenario.growth.stages;
  if (static_cast<int>(stages.size()) != settings.length("training.growth.stages")) return;  // told already
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
  if (scenario.fill != FillChoice::none)
    settings.refuse("training.growth",
                    "work in the bubbles is placed for one batch; allowed: schedule.fill none and run.optimizer adamw",
                    "remove training.growth, or schedule.fill and run.optimizer");
}

// What the layout does with gradients is known when the schedule is.
void check_norm_test(Settings& settings, const Scenario& scenario) {
  if (scenario.growth.rule != BatchRule::norm_test) return;
  const std::string reason = why_no_norm_test(step_cut(scenario));
  if (reason.empty()) return;
  const std::size_t remedy = reason.rfind("; ");
  settings.refuse("training.growth.rule",
                  "the norm test compares the gradients of data parallel workers, but " + reason.substr(0, remedy) +
                      "; allowed then: constant, linear, stages",
                  "choose one of these, or " + reason.substr(remedy + 2));
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

}  // namespace

void check_growth(Settings& settings, const Scenario& scenario, bool schedule_is_sound) {
  if (!settings.given("training")) return;
  check_losses(settings, scenario.growth);
  check_noise(settings, scenario.growth);
  check_fitted(settings, scenario.growth);
  if (!settings.given("training.growth")) return;
  check_rule(settings, scenario);
  // Batches are judged by a layout and schedule that can be.
  if (!schedule_is_sound || scenario.step.actions) return;
  check_norm_test(settings, scenario);
  if (settings.given("training.growth.largest"))
    check_batch(settings, scenario, "training.growth.largest", scenario.growth.largest);
  check_stages_of_growth(settings, scenario);
}

void derive_placement(Settings& settings, Scenario& scenario) {
  if (!settings.given("layout.placement")) return;
  scenario.step.layout.placement = settings.integers("layout.placement");
  std::vector<int> sorted = scenario.step.layout.placement,
                   nodes(static_cast<std::size_t>(node_count(scenario.cluster)));
  std::sort(sorted.begin(), sorted.end());
  std::iota(nodes.begin(), nodes.end(), 0);
  if (sorted == nodes) {
    scenario.cluster.gpu_of_rank = gpus_in_order(scenario.cluster, scenario.step.layout.placement);
    return;
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  const std::string wrong = twice != sorted.end()           ? "node " + std::to_string(*twice) + " is named twice"
                            : sorted.size() != nodes.size() ? "it names " + std::to_string(sorted.size()) + " of " +
                                                                  std::to_string(nodes.size()) + " nodes"
                                                            : "there is no node " + std::to_string(sorted.back());
  settings.refuse("layout.placement",
                  wrong + "; allowed: each of 0 to " + std::to_string(nodes.size() - 1) + " once, in any order",
                  "list every node, or leave layout.placement out");
}

// Does the schedule run on this layout, model and number of micro-batches?

namespace {

// The grid of the nearest larger shape that the schedule can run, for a picture of what is missing; empty when
// more micro-batches or ranks would not help.
std::string grid_of_nearest(const Schedule& schedule, ScheduleShape shape) {
  // As many micro-batches as show the rule: their number modulo twice the ranks stays.
  const int whole = 2 * shape.pipeline;
  if (shape.micro_batches > 2 * whole) shape.micro_batches = whole + shape.micro_batches % whole;
  constexpr int most_rows = 16;
  if (shape.pipeline > most_rows || shape.chunks > most_rows) return "";
  ScheduleShape larger = shape;
  const auto refused = [&] { return !schedule.refuse(larger).empty(); };
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

// Number of micro-batches per pipeline, 0 after an error. `has_data`: layout.data is known as a number. That
// holds also where it was refused because of the product of ranks: the batch is then judged by what is
// written, and where no degree is known by micro_batch alone, so that both mistakes are told at once.
std::int64_t micro_batches(Settings& settings, const Scenario& scenario, bool has_data) {
  if (!settings.good({"schedule.global_batch", "schedule.micro_batch"})) return 0;
  const std::int64_t batch = scenario.step.global_batch;
  const std::int64_t unit = scenario.step.micro_batch * (has_data ? scenario.step.layout.data : 1);
  if (batch % unit != 0) {
    const std::int64_t below = batch / unit * unit;
    settings.refuse("schedule.global_batch",
                    "global_batch = " + str(batch) + " is not divisible by micro_batch " +
                        str(scenario.step.micro_batch) +
                        (has_data ? " x data " + str(scenario.step.layout.data) + " = " + str(unit) : "") +
                        "; allowed: multiples of " + str(unit),
                    "set it to " + (below > 0 ? str(below) + " or " : "") + str(below + unit));
    return 0;
  }
  if (!has_data || !settings.good({"layout.data"})) return 0;
  if (batch / unit > 1'000'000) {
    settings.refuse("schedule.global_batch",
                    "that is " + str(batch / unit) + " micro-batches per pipeline; allowed: up to 1000000",
                    "raise schedule.micro_batch or lower schedule.global_batch");
    return 0;
  }
  return batch / unit;
}

std::int64_t rows_of(const Block& block) { return std::max<std::int64_t>(1, block.experts_per_token); }

// Numbers of a layer's widest tensor are counted as 64-bit integers, with factors below a hundred on them.
bool is_countable(Settings& settings, const Scenario& scenario) {
  if (!settings.good({"model.sequence", "schedule.micro_batch"})) return true;
  constexpr double most = 9e16;
  const Model& model = scenario.step.model;
  std::int64_t widest = 0;
  for (const BlockRun& run : model.runs)
    widest = std::max(
        {widest, rows_of(run.block) * std::max(run.block.hidden, run.block.ffn), run.block.experts, run.block.vocab});
  const double tokens = static_cast<double>(scenario.step.micro_batch) * static_cast<double>(model.sequence);
  if (tokens * static_cast<double>(widest) <= most) return true;
  settings.refuse("schedule.micro_batch",
                  "micro_batch " + str(scenario.step.micro_batch) + " x model.sequence " + str(model.sequence) + " x " +
                      str(widest) +
                      " (the largest of hidden, ffn and vocab, with experts those of a token together) is more than "
                      "can be counted; allowed: "
                      "products up to 9e16",
                  "lower schedule.micro_batch or model.sequence");
  return false;
}

// What the lowering would refuse because of how the schedule runs, whatever its shape.
void check_combinations(Settings& settings, const Scenario& scenario, const Schedule& schedule) {
  const Layout& layout = scenario.step.layout;
  if (schedule.copies > 1 && layout.zero >= 2 && settings.good({"layout.zero"}))
    settings.refuse("layout.zero",
                    "layout.zero " + str(layout.zero) + " reduces the gradients of every micro-batch, but " +
                        schedule.name + " sends them through different copies of the model; allowed: 0, 1",
                    "set layout.zero to 0 or 1, or choose another schedule");
  if (scenario.step.slices == 1) return;
  if (layout.context > 1 && settings.good({"layout.context"}))
    settings.refuse("layout.context",
                    "context parallelism and slices both cut the sequence; allowed with schedule.slices " +
                        str(scenario.step.slices) + ": 1",
                    "set layout.context to 1 or schedule.slices to 1");
  if (scenario.step.recompute == Recompute::full && settings.good({"schedule.recompute"}))
    settings.refuse("schedule.recompute",
                    "a slice attends to the keys and values of the slices before it, which full recomputation "
                    "would have to make again for each of them; allowed with slices: none, selective",
                    "set schedule.recompute to selective or schedule.slices to 1");
}

}  // namespace

void check_schedule(Settings& settings, const Scenario& scenario, bool has_model, bool has_data) {
  if (has_model && !is_countable(settings, scenario)) return;
  const std::int64_t count = micro_batches(settings, scenario, has_data);
  const Schedule* schedule = schedule_named(scenario.step.schedule);
  if (!settings.good({"schedule.name", "schedule.slices", "layout.pipeline", "layout.chunks"}) || schedule == nullptr)
    return;
  const Block* block = has_model ? first_block(scenario.step.model, BlockKind::transformer) : nullptr;
  if (schedule->needs_causal && !scenario.step.actions && block != nullptr && !block->causal)
    settings.refuse("schedule.name",
                    schedule->name + " needs causal attention, which " + scenario.step.model->name +
                        " does not have; allowed: schedules without slices",
                    "choose another schedule (slipway list schedules)");
  if (has_model && scenario.step.model->sequence % scenario.step.slices != 0) {
    check_divides(settings, "schedule.slices", scenario.step.slices, "model.sequence", scenario.step.model->sequence);
    return;
  }
  check_combinations(settings, scenario, *schedule);
  if (count == 0) return;
  const ScheduleShape shape{scenario.step.layout.pipeline, scenario.step.layout.chunks, static_cast<int>(count),
                            scenario.step.slices, schedule->copies};
  if (scenario.step.actions) return check_csv(settings, scenario, shape);
  if (schedule->refuse == nullptr) return;
  const std::string reason = schedule->refuse(shape);
  if (reason.empty()) return;
  const std::size_t cut = reason.find("; ");
  settings.refuse("schedule.name",
                  reason.substr(0, cut) + "; allowed: shapes that the schedule can run (slipway list schedules)",
                  (cut == std::string::npos ? "change the layout or choose another schedule" : reason.substr(cut + 2)) +
                      grid_of_nearest(*schedule, shape));
}

}  // namespace slipway::scenarios
