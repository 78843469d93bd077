// The scenario's own table: keys of `cluster`, `layout` and `schedule`, and what topologies declare
// (models/machine/topology.h): one row for all that have a parameter of this name. With the other tables it is the whole
// language.
#include "scenarios/language/keys.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/machine/topology.h"
#include "scenarios/language/binding.h"
#include "scenarios/language/keys_fields.h"
#include "scenarios/language/nearest.h"
#include "schedules/step/action.h"

namespace slipway::scenarios {

namespace {

Names scopes() { return {"node", "cluster"}; }

// A schedule may go by the name of its paper: the first part of such a name is enough.
std::string meant_schedule(std::string_view word) {
  std::vector<std::string> meant;
  for (const Schedule& schedule : all_schedules())
    if (!schedule.also_called.empty() &&
        word.starts_with(schedule.also_called.substr(0, schedule.also_called.find('-'))))
      meant.push_back(schedule.name);
  return meant.empty() ? "" : did_you_mean(meant);
}

Names schedules() {
  Names names;
  for (const Schedule& schedule : all_schedules()) names.push_back(schedule.name);
  return names;
}

Names topologies() {
  Names names{"star"};
  for (const Topology& topology : all_topologies()) names.push_back(topology.name);
  return names;
}

using enum KeyType;

// One key, one or two lines.
// clang-format off
const Key cluster_table[] = {
    {.path = "cluster", .type = section, .meaning = "the hardware of the training", .required = true},
    {.path = "cluster.machine", .type = text,
     .meaning = "machine profile of the only group: a built-in name or the path of a profile.yaml",
     .derived = "or give groups", .names_file = true, .built_in = true},
    {.path = "cluster.nodes", .type = integer, .meaning = "nodes of the only group", .derived = "1",
     .min = 1, .max = 1e6},
    {.path = "cluster.gpus_per_node", .type = integer,
     .meaning = "GPUs (or CPU ranks) per node of the only group: those that the node link joins, so up to 72 of a GB200 NVL72",
     .derived = "required with machine", .min = 1, .max = 1024},
    {.path = "cluster.ranks_per_gpu", .type = integer,
     .meaning = "ranks that share one GPU: its memory, its speed, and one process of execute", .fallback = "1",
     .min = 1, .max = 64},
    {.path = "cluster.groups", .type = sections,
     .meaning = "node groups, for a cluster of several kinds of nodes",
     .derived = "one group of machine"},
    {.path = "cluster.groups.*.machine", .type = text,
     .meaning = "machine profile: a built-in name or a path",
     .required = true, .names_file = true, .built_in = true},
    {.path = "cluster.groups.*.nodes", .type = integer, .meaning = "nodes of the group", .fallback = "1",
     .min = 1, .max = 1e6},
    {.path = "cluster.groups.*.gpus_per_node", .type = integer, .meaning = "GPUs (or CPU ranks) per node",
     .required = true, .min = 1, .max = 1024},
    {.path = "cluster.fabrics", .type = sections,
     .meaning = "networks; two ranks use the first one that both are members of, node scope first",
     .derived = "the machines' own links"},
    {.path = "cluster.fabrics.*.name", .type = text, .meaning = "name in tables and traces",
     .derived = "its scope"},
    {.path = "cluster.fabrics.*.scope", .type = choice, .meaning = "node: one copy inside every node",
     .required = true,
     .choices = scopes},
    {.path = "cluster.fabrics.*.members", .type = integers, .meaning = "indices of the member groups",
     .derived = "all groups", .min = 0, .max = 1e6},
    {.path = "cluster.fabrics.*.bandwidth", .type = number,
     .meaning = "bandwidth of one port in each direction, as a large message reaches it",
     .derived = "the members' own link of that scope",
     .max = 1e18, .above_min = true, .unit = Unit::bytes_per_second},
    {.path = "cluster.fabrics.*.latency", .type = number, .meaning = "latency of one message",
     .derived = "the members' own link of that scope", .max = 1e3, .unit = Unit::seconds},
    {.path = "cluster.fabrics.*.gpus_per_port", .type = integer,
     .meaning = "GPUs of a node that share one port",
     .derived = "1; on processors, between nodes: all of the node", .min = 1, .max = 1024},
    {.path = "cluster.fabrics.*.topology", .type = section,
     .meaning = "the shared network between the ports", .derived = "star", .shorthand = "kind"},
    {.path = "cluster.fabrics.*.topology.kind", .type = choice,
     .meaning = "star: non-blocking, only ports are shared", .derived = "star", .choices = topologies},
    {.path = "cluster.collectives", .type = section,
     .meaning = "algorithm of collectives: ring (in rank order), multi-ring (one per member of a node, over all its ports), tree (all-reduces), hierarchical, nccl (multi-ring or tree, whichever takes less), gloo (all-reduces in rings, all-gathers and reduce-scatters between all pairs); the gradient norm over all ranks takes nccl unless it or all is named",
     .derived = "nccl where GPUs have measured kernels; gloo on processors; else ring", .shorthand = "all"},
    {.path = "cluster.collectives.all", .type = choice, .meaning = "algorithm of every communicator that is not named",
     .derived = "gloo on processors; else ring", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.tensor", .type = choice, .meaning = "algorithm of tensor parallel groups",
     .derived = "all's", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.context", .type = choice, .meaning = "algorithm of context parallel groups",
     .derived = "all's", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.data", .type = choice, .meaning = "algorithm of data parallel groups",
     .derived = "all's", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.embedding", .type = choice, .meaning = "algorithm between first and last stage, for tied embeddings",
     .derived = "all's", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.world", .type = choice, .meaning = "algorithm over all ranks, for the gradient norm",
     .derived = "all's, else gloo on processors and nccl on GPUs: it is a few bytes", .choices = words_of<algorithm_names>},
    {.path = "cluster.trainer", .type = text,
     .meaning = "the software that trains, as facts about its kernels, messages and memory: a built-in name or the path of a trainer.yaml, with a version behind an @ (megatron-core@0.12); without one, the last that is described",
     .derived = "generic", .names_file = true, .built_in = true},
    {.path = "cluster.constants", .type = text,
     .meaning = "path of the constants of a step that `slipway calibrate --runs` fitted to your runs",
     .derived = "fitted to published runs of all trainers", .names_file = true},
    {.path = "cluster.block_times", .type = text,
     .meaning = "path of a table of measured times per Transformer block, relative to the scenario; all other work is then free",
     .derived = "priced from the machine", .names_file = true},
    {.path = "cluster.price_per_gpu_hour", .type = number, .meaning = "price in your currency; 0 = unknown",
     .fallback = "0", .max = 1e9},
};

const Key work_table[] = {
    {.path = "layout", .type = section,
     .meaning = "how the work is divided; ranks = tensor x context x data x pipeline"},
    {.path = "layout.tensor", .type = integer, .meaning = "tensor parallel degree", .fallback = "1",
     .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::tensor>},
    {.path = "layout.sequence_parallel", .type = flag,
     .meaning = "norms and residual sharded over the sequence inside the tensor group", .fallback = "false",
     .bound = field<step, layout, &Layout::sequence_parallel>},
    {.path = "layout.pipeline", .type = integer, .meaning = "pipeline parallel degree", .fallback = "1",
     .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::pipeline>},
    {.path = "layout.chunks", .type = integer, .meaning = "stages per pipeline rank",
     .derived = "the schedule's own",
     .min = 1, .max = 1e5,
     .writes_derived = true, .bound = field<step, layout, &Layout::chunks>},
    {.path = "layout.context", .type = integer, .meaning = "context parallel degree", .fallback = "1",
     .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::context>},
    {.path = "layout.context_exchange", .type = choice,
     .meaning = "keys and values of the context group: gathered before attention, or sent around while it computes",
     .derived = "as cluster.trainer does it, else all-gather", .choices = words_of<exchange_names>,
     .writes_derived = true, .bound = choice_field<exchange_names, step, layout, &Layout::context_exchange>},
    {.path = "layout.data", .type = integer, .meaning = "data parallel degree",
     .derived = "GPUs / (tensor x context x pipeline)", .min = 1, .max = 1e6,
     .writes_derived = true, .bound = field<step, layout, &Layout::data>},
    {.path = "layout.expert", .type = integer,
     .meaning = "expert parallel degree: ranks that divide a layer's experts, out of tensor x context x data",
     .fallback = "1", .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::expert>},
    {.path = "layout.expert_tensor", .type = integer,
     .meaning = "ranks that cut each expert's matrices; 0: those of layout.tensor", .fallback = "0", .min = 0, .max = 1e6,
     .bound = field<step, layout, &Layout::expert_tensor>},
    {.path = "layout.dispatcher", .type = choice,
     .meaning = "how tokens get to the ranks of their experts; deepep and hybridep send each once to a node",
     .fallback = "alltoall", .choices = words_of<dispatcher_names>,
     .bound = choice_field<dispatcher_names, step, layout, &Layout::dispatcher>},
    {.path = "layout.zero", .type = integer, .meaning = "ZeRO stage over the data group", .fallback = "0",
     .min = 0, .max = 3,
     .bound = field<step, layout, &Layout::zero>},
    {.path = "layout.replicate", .type = integer,
     .meaning = "copies of what ZeRO shards, each on data / replicate ranks (hybrid sharding, HSDP; Megatron-Core's --num-distributed-optimizer-instances); of predictions",
     .fallback = "1", .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::replicate>},
    {.path = "layout.split", .type = split,
     .meaning = "layers per stage: even (early stages get one more), balanced (by FLOPs, head counted; by time where GPUs differ or ranks have several chunks), a list, or the layout of --pipeline-model-parallel-layout of Megatron-Core",
     .derived = "as cluster.trainer does it, else even", .min = 0, .max = 1e4, .choices = words_of<split_names>,
     .bound = split_field},
    {.path = "layout.vocab_multiple", .type = integer,
     .meaning = "the vocabulary is padded to a multiple of this x tensor, as Megatron-LM's --make-vocab-size-divisible-by (128) does; 0: as given",
     .fallback = "0", .min = 0, .max = 1e6,
     .bound = field<&Scenario::vocab_multiple>},
    {.path = "layout.placement", .type = integers,
     .meaning = "order in which ranks fill the nodes: a list of all node indices, counted from 0 over all groups",
     .derived = "0, 1, 2, ...", .max = 1e6,
     .bound = field<step, layout, &Layout::placement>},

    {.path = "schedule", .type = section, .meaning = "the order of micro-batches", .required = true,
     .shorthand = "name"},
    {.path = "schedule.name", .type = choice, .meaning = "the pipeline schedule",
     .choices = schedules, .hint = meant_schedule,
     .bound = field<step, &Step::schedule>},
    {.path = "schedule.csv", .type = text,
     .meaning = "path of a PyTorch schedule CSV whose actions replace the named schedule's, relative to the scenario",
     .names_file = true},
    {.path = "schedule.micro_batch", .type = integer, .meaning = "sequences per micro-batch",
     .fallback = "1", .min = 1,
     .max = 1e9,
     .bound = field<step, &Step::micro_batch>},
    {.path = "schedule.global_batch", .type = integer,
     .meaning = "sequences per step, over all data parallel replicas",
     .required = true, .min = 1, .max = 1e12,
     .bound = field<step, &Step::global_batch>},
    {.path = "schedule.recompute", .type = choice, .meaning = "activations recomputed in the backward pass",
     .fallback = "none", .choices = words_of<recompute_names>,
     .bound = choice_field<recompute_names, step, &Step::recompute>},
    {.path = "schedule.recompute_modules", .type = words,
     .meaning = "parts of layers that are recomputed in the backward pass, as Megatron-Core's --recompute-modules; stands in place of schedule.recompute",
     .derived = "none", .choices = words_of<recomputed_module_names>,
     .bound = words_field<recomputed_module_names, step, levers, &Levers::recomputed>},
    {.path = "schedule.offload", .type = words,
     .meaning = "inputs that are kept in the host's memory between the passes, by copy lanes, as Megatron-Core's --offload-modules; layer_inputs: of layers that are recomputed whole; of predictions",
     .derived = "none", .choices = words_of<offloaded_input_names>,
     .bound = words_field<offloaded_input_names, step, levers, &Levers::offloaded>},
    {.path = "schedule.offload_layers", .type = integer,
     .meaning = "of the first so many layers, everything that is kept for the backward pass is kept in the host's memory, as cpu_offloading_num_layers of Transformer Engine; of predictions",
     .fallback = "0", .min = 0, .max = 1e5,
     .bound = field<step, levers, &Levers::offloaded_layers>},
    {.path = "schedule.cuda_graphs", .type = words,
     .meaning = "parts of layers that CUDA graphs launch, as Megatron-Core's --cuda-graph-modules; full: the whole step",
     .derived = "as cluster.trainer does it", .choices = words_of<graph_scope_names>,
     .bound = words_field<graph_scope_names, step, levers, &Levers::graphs>},
    {.path = "schedule.kernels", .type = choice, .meaning = "attention and norm kernels",
     .fallback = "flash2_rmsnorm",
     .choices = words_of<kernels_names>,
     .bound = choice_field<kernels_names, step, &Step::kernels>},
    {.path = "schedule.slices", .type = integer, .meaning = "slices of a sequence (token-level pipelines)",
     .derived = "the schedule's own", .min = 1, .max = 1e5,
     .writes_derived = true, .bound = field<step, &Step::slices>},

    {.path = "schedule.group", .type = integer,
     .meaning = "micro-batches that an interleaved schedule runs through one chunk before the next one, as Megatron-Core's microbatch_group_size_per_vp_stage; 0: layout.pipeline, or a few more where the number of micro-batches is no multiple of it",
     .fallback = "0", .min = 0, .max = 1e6,
     .bound = field<step, &Step::group>},
    {.path = "schedule.overlap_tensor", .type = flag,
     .meaning = "gathers and scatters of sequence parallelism run beside their product, but for one piece of tensor (tp_comm_overlap of Transformer Engine)",
     .fallback = "false",
     .bound = field<step, &Step::overlap_tensor>},
    {.path = "schedule.delay_wgrad", .type = flag,
     .meaning = "in a schedule of pairs that hide exchanges of tokens, weight gradients run while the message of their input gradient is on its way, as --delay-wgrad-compute of Megatron-Core; of predictions",
     .fallback = "false",
     .bound = field<step, &Step::delay_weight_grads>},
    {.path = "schedule.fill", .type = choice,
     .meaning = "bubble work: K-FAC's curvature and inversions, or forward passes for evaluation",
     .derived = "kfac with run.optimizer kfac, else none", .choices = words_of<fill_names>,
     .writes_derived = true, .bound = choice_field<fill_names, step, &Step::fill>},
    {.path = "schedule.evaluation_micro_batches", .type = integer,
     .meaning = "micro-batches of schedule.fill evaluation, per replica and window",
     .fallback = "8", .min = 1, .max = 1e6,
     .bound = field<step, &Step::evaluation_micro_batches>},
};
// clang-format on

constexpr std::string_view topology_kind = "cluster.fabrics.*.topology.kind";

KeyType type_of(TopologyParameter::Kind kind) {
  switch (kind) {
    case TopologyParameter::Kind::number:
      return number;
    case TopologyParameter::Kind::integer:
      return integer;
    case TopologyParameter::Kind::integers:
      return integers;
    case TopologyParameter::Kind::word:
      return choice;
  }
  return text;
}

Unit unit_of(ParameterUnit unit) {
  switch (unit) {
    case ParameterUnit::pure:
      return Unit::pure;
    case ParameterUnit::bytes:
      return Unit::bytes;
    case ParameterUnit::bytes_per_second:
      return Unit::bytes_per_second;
    case ParameterUnit::seconds:
      return Unit::seconds;
  }
  return Unit::pure;
}

// Each different text with the topologies that have it. One that all topologies share stands alone.
std::string texts_of(std::string_view parameter, std::string TopologyParameter::*text) {
  std::vector<std::pair<std::string, std::vector<std::string>>> texts;
  for (const Topology& topology : all_topologies()) {
    const TopologyParameter* own = parameter_named(topology, parameter);
    if (own == nullptr) continue;
    auto at = std::find_if(texts.begin(), texts.end(), [&](const auto& each) { return each.first == own->*text; });
    if (at == texts.end()) at = texts.insert(at, {own->*text, {}});
    at->second.push_back(topology.name);
  }
  if (texts.size() == 1 && texts[0].second.size() == all_topologies().size()) return texts[0].first;
  std::string all;
  for (const auto& [each, kinds] : texts) {
    all += (all.empty() ? "" : "; ") + each + " (";
    for (const std::string& kind : kinds) all += (kind == kinds.front() ? "" : ", ") + kind;
    all += ")";
  }
  return all;
}

std::string defaults_of(std::string_view parameter) {
  std::set<std::string> defaults;
  for (const Topology& topology : all_topologies())
    if (const TopologyParameter* own = parameter_named(topology, parameter)) defaults.insert(own->otherwise);
  return defaults.size() == 1 ? *defaults.begin() : texts_of(parameter, &TopologyParameter::otherwise);
}

std::vector<Key> topology_rows() {
  static std::deque<std::string> texts;  // what the rows' views show
  const auto kept = [](std::string each) { return std::string_view(texts.emplace_back(std::move(each))); };
  std::vector<Key> rows;
  std::set<std::string> seen;
  for (const Topology& topology : all_topologies())
    for (const TopologyParameter& each : topology.parameters)
      if (seen.insert(each.name).second)
        rows.push_back({.path = kept("cluster.fabrics.*.topology." + each.name),
                        .type = type_of(each.kind),
                        .meaning = kept(texts_of(each.name, &TopologyParameter::meaning)),
                        .derived = kept(defaults_of(each.name)),
                        .min = each.min,
                        .max = each.max,
                        .above_min = each.above_min,
                        .unit = unit_of(each.unit),
                        .choices = each.words});
  return rows;
}

std::vector<Key> cluster_rows() {
  std::vector<Key> rows;
  for (const Key& key : cluster_table) {
    rows.push_back(key);
    if (key.path != topology_kind) continue;
    for (Key& row : topology_rows()) rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::span<const Key> scenario_keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> keys(model_keys().begin(), model_keys().end());
    const std::vector<Key> cluster = cluster_rows();
    keys.insert(keys.end(), cluster.begin(), cluster.end());
    keys.insert(keys.end(), degradation_keys().begin(), degradation_keys().end());
    keys.insert(keys.end(), std::begin(work_table), std::end(work_table));
    for (Key& key : keys)  // the catalogue's, which is whole only once main runs
      if (key.path == "schedule.name") key.fallback = default_schedule().name;
    keys.insert(keys.end(), run_keys().begin(), run_keys().end());
    keys.insert(keys.end(), training_keys().begin(), training_keys().end());
    return keys;
  }();
  return all;
}

}  // namespace slipway::scenarios
