#include "scenarios/language/check_scenario.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "models/token_ranges.h"
#include "schedules/action.h"

namespace slipway {
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

void check_divides(Settings& settings, const std::string& degree_key, std::int64_t degree,
                   const std::string& name, std::int64_t size) {
  if (size % degree == 0) return;
  const std::int64_t next = (size / degree + 1) * degree;
  settings.refuse(degree_key,
                  degree_key + " = " + str(degree) + " does not divide " + name + " = " + str(size) +
                      "; allowed: " + divisors_of(size),
                  name == "model.vocab" ? "pad the vocabulary: set model.vocab to " + str(next)
                                        : "choose one of these, or change " + name);
}

namespace {

// Each rank of a context group has one piece of the sequence, or two if it is causal (models/token_ranges.h).
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
  if (scenario.layout.context_exchange != ContextExchange::ring || !writes_scores(scenario.schedule.kernels)) return;
  if (!settings.good({"layout.context_exchange", "schedule.kernels"})) return;
  settings.refuse("layout.context_exchange",
                  "ring attention merges partial results by their log-sum-exp, which unfused kernels do not "
                  "make; allowed: all-gather",
                  "set schedule.kernels to flash1, flash2 or flash2_rmsnorm, or layout.context_exchange to all-gather");
}

void check_shards(Settings& settings, const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  const Block* block = first_block(scenario.model, BlockKind::transformer);
  const Block* head = first_block(scenario.model, BlockKind::head);
  const std::int64_t sequence = scenario.model.sequence;
  if (settings.good({"layout.tensor"}) && block != nullptr && head != nullptr) {
    const std::pair<std::string, std::int64_t> sizes[] = {{"model.heads", block->heads},
                                                          {"model.kv_heads", block->kv_heads},
                                                          {"model.ffn", block->ffn},
                                                          {"model.vocab", head->vocab}};
    for (const auto& [name, size] : sizes) {
      if (name == "model.kv_heads" &&
          (block->kv_heads == block->heads || block->heads % layout.tensor != 0))
        continue;
      check_divides(settings, "layout.tensor", layout.tensor, name, size);
    }
  }
  if (!settings.good({"layout.context"})) return;
  if (block != nullptr) check_pieces(settings, layout.context, block->causal, sequence);
  if (sequence % layout.context != 0 || !layout.sequence_parallel || layout.tensor == 1) return;
  if (const std::int64_t local = sequence / layout.context; local % layout.tensor != 0)
    settings.refuse("layout.sequence_parallel",
                    "tensor = " + str(layout.tensor) + " does not divide the " + str(local) +
                        " tokens of a context rank, which sequence_parallel shards; allowed tensor: " +
                        divisors_of(local),
                    "choose one of these, turn sequence_parallel off, or change model.sequence");
}

void check_layout_alone(Settings& settings, const Layout& layout) {
  if (settings.good({"layout.expert"}) && layout.expert > 1)
    settings.refuse("layout.expert", "expert parallelism is reserved and not modelled yet; allowed: 1",
                    "set layout.expert to 1");
  if (settings.good({"layout.sequence_parallel", "layout.tensor"}) && layout.sequence_parallel &&
      layout.tensor == 1)
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
  const std::string product = "tensor " + str(layout.tensor) + " x context " + str(layout.context) +
                              " x pipeline " + str(layout.pipeline);
  const bool whole = share >= 1 && share == static_cast<double>(static_cast<std::int64_t>(share));
  if (!settings.given("layout.data") && whole) {
    layout.data = static_cast<int>(share);
    return;
  }
  if (settings.given("layout.data") && others * layout.data == gpus) return;
  const std::string ranks =
      settings.given("layout.data") ? product + " x data " + str(layout.data) : product;
  const double made = settings.given("layout.data") ? others * layout.data : others;
  settings.refuse(
      "layout.data",
      ranks + " = " + whole_text(made) + " ranks do not " +
          (settings.given("layout.data") ? "equal" : "divide") + " the cluster's " + whole_text(gpus) +
          " GPUs; allowed: a product of tensor, context, data and pipeline of " + whole_text(gpus),
      whole ? "set layout.data to " + whole_text(share) + ", or leave it out"
            : "change layout.tensor, context or pipeline, or cluster.nodes and gpus_per_node");
}

void check_stages(Settings& settings, const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  if (!settings.good({"layout.pipeline", "layout.chunks"})) return;
  const std::int64_t layers = layer_count(scenario.model);
  const std::int64_t stages = static_cast<std::int64_t>(layout.pipeline) * layout.chunks;
  if (stages > layers) {
    settings.refuse(settings.given("layout.pipeline") ? "layout.pipeline" : "layout.chunks",
                    "pipeline " + str(layout.pipeline) + " x chunks " + str(layout.chunks) + " = " +
                        str(stages) + " stages are more than the model's " + str(layers) +
                        " transformer blocks; allowed: up to " + str(layers),
                    "lower layout.pipeline or layout.chunks");
    return;
  }
  if (layout.split != SplitKind::list || !settings.good({"layout.split"})) return;
  const std::int64_t entries = static_cast<std::int64_t>(layout.split_list.size());
  const std::int64_t sum =
      std::accumulate(layout.split_list.begin(), layout.split_list.end(), std::int64_t{0});
  const std::string allowed = "; allowed: " + str(stages) + " numbers that add up to " + str(layers);
  if (entries != stages) {
    settings.refuse("layout.split",
                    "the list has " + str(entries) + " numbers for " + str(stages) + " stages" + allowed,
                    "give one number of layers for each of pipeline x chunks stages");
  } else if (sum != layers) {
    settings.refuse("layout.split",
                    "the list adds up to " + str(sum) + " of " + str(layers) + " layers" + allowed,
                    "change the list so that it adds up");
  } else {
    try {
      split_blocks(scenario.model, layout);
    } catch (const std::invalid_argument& reason) {
      settings.refuse("layout.split", reason.what() + allowed, "change the list");
    }
  }
}

bool has_peak(const Cluster& cluster, Dtype dtype) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
    return awaits_calibration(group.machine) ||
           group.machine.peak_flops[static_cast<std::size_t>(dtype)] > 0;
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
  settings.refuse(
      "run.dtype",
      "a machine profile of the cluster gives no peak FLOP/s for " + name_of(dtype) + "; allowed: " +
          (allowed.empty() ? "none of float64, float32, bfloat16, float16 in all profiles" : allowed),
      "choose one of these, or add peak_flops." + name_of(dtype) + " with its source to the profile");
}

}  // namespace

void derive_and_check(Settings& settings, bool has_model, bool has_cluster, Scenario& scenario) {
  Layout& layout = scenario.layout;
  const Schedule* schedule = schedule_named(scenario.schedule.name);
  if (!settings.given("schedule.slices") && schedule != nullptr)  // the CSV format knows no slices
    scenario.schedule.slices = scenario.schedule.actions ? 1 : schedule->default_slices;
  if (!settings.given("layout.chunks") && schedule != nullptr)
    layout.chunks =
        scenario.schedule.actions ? chunks_of(*scenario.schedule.actions, schedule->copies) : schedule->default_chunks;
  check_layout_alone(settings, layout);
  const bool data_is_written = settings.given("layout.data");
  if (has_cluster) {
    derive_placement(settings, scenario);
    derive_data(settings, scenario.cluster, layout);
    derive_dtype(settings, scenario.cluster, scenario.dtype);
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

}  // namespace slipway
