// The scenario's own table, with its parts in keys_model.cpp, keys_troubles.cpp, keys_run.cpp and keys_growth.cpp: the whole
// language.
#include "models/topology.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/nearest.h"
#include "schedules/action.h"

namespace slipway {
namespace {

using Names = std::vector<std::string_view>;

Names algorithms() { return {"ring", "multi-ring", "tree", "hierarchical", "nccl"}; }
Names routings() { return {"adaptive", "static"}; }
Names crossings() { return {"core", "node"}; }
Names scopes() { return {"node", "cluster"}; }
Names splits() { return {"even", "balanced"}; }
Names exchanges() { return {"all-gather", "ring"}; }
Names recomputes() { return {"none", "selective", "full"}; }
Names kernels() { return {"torch", "fused_softmax", "flash1", "flash2", "flash2_rmsnorm"}; }
Names fillers() { return {"none", "kfac", "evaluation"}; }

// The family goes by the name of its paper, its members by that of their memory.
std::string meant_schedule(std::string_view word) {
  return word.starts_with("zero") ? did_you_mean({"zb-h1", "zb-h2", "zb-v"}) : "";
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
    {.path = "cluster", .type = section, .meaning = "what it is trained on", .required = true},
    {.path = "cluster.machine", .type = text,
     .meaning = "machine profile of the only group: a built-in name or the path of a profile.yaml",
     .derived = "or give groups", .names_file = true, .built_in = true},
    {.path = "cluster.nodes", .type = integer, .meaning = "nodes of the only group", .derived = "1",
     .min = 1, .max = 1e6},
    {.path = "cluster.gpus_per_node", .type = integer,
     .meaning = "GPUs (or CPU ranks) per node of the only group",
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
     .meaning = "of one port, each direction, that a large message reaches",
     .derived = "the members' own link of that scope",
     .max = 1e18, .above_min = true, .unit = Unit::bytes_per_second},
    {.path = "cluster.fabrics.*.latency", .type = number, .meaning = "of one message",
     .derived = "the members' own link of that scope", .max = 1e3, .unit = Unit::seconds},
    {.path = "cluster.fabrics.*.gpus_per_port", .type = integer,
     .meaning = "GPUs of a node that share one port",
     .fallback = "1", .min = 1, .max = 1024},
    {.path = "cluster.fabrics.*.topology", .type = section,
     .meaning = "what is between the ports, and shared", .derived = "star", .shorthand = "kind"},
    {.path = "cluster.fabrics.*.topology.kind", .type = choice,
     .meaning = "star: non-blocking, only ports are shared", .derived = "star", .choices = topologies},
    {.path = "cluster.fabrics.*.topology.shape", .type = integers,
     .meaning = "counts from the ports upward; what they count: slipway list topologies",
     .derived = "none", .min = 1, .max = 1e6},
    {.path = "cluster.fabrics.*.topology.uplinks", .type = integers,
     .meaning = "links upward of one switch, per level (fat-tree, rail-optimised)",
     .derived = "by oversubscription", .min = 1, .max = 1e6},
    {.path = "cluster.fabrics.*.topology.oversubscription", .type = number,
     .meaning = "bandwidth below the leaf switches / above them (fat-tree, rail-optimised)",
     .derived = "1", .min = 1, .max = 1e6},
    {.path = "cluster.fabrics.*.topology.link_bandwidth", .type = number,
     .meaning = "of one link between switches, each direction", .derived = "bandwidth of a port", .max = 1e18,
     .above_min = true, .unit = Unit::bytes_per_second},
    {.path = "cluster.fabrics.*.topology.global_bandwidth", .type = number,
     .meaning = "of one link between groups (dragonfly) or processors (pcie)", .derived = "link_bandwidth",
     .max = 1e18, .above_min = true, .unit = Unit::bytes_per_second},
    {.path = "cluster.fabrics.*.topology.hop_latency", .type = number,
     .meaning = "of a message, for each link between switches", .derived = "0", .max = 1e3, .unit = Unit::seconds},
    {.path = "cluster.fabrics.*.topology.routing", .type = choice,
     .meaning = "adaptive: over all uplinks at once; static: over one, by the destination (fat-tree)",
     .derived = "adaptive", .choices = routings},
    {.path = "cluster.fabrics.*.topology.crossing", .type = choice,
     .meaning = "to another rail over the core, or through the node first (rail-optimised)",
     .derived = "node where nodes have a fabric, else core", .choices = crossings},
    {.path = "cluster.collectives", .type = section,
     .meaning = "by which algorithm collectives run: ring (in rank order), multi-ring (one per member of a node, over all its ports), tree (all-reduces), hierarchical, nccl (multi-ring or tree, whichever takes less); the gradient norm over all ranks takes nccl unless it or all is named; not with cluster.stack, whose trainer was timed with its own",
     .derived = "ring", .shorthand = "all"},
    {.path = "cluster.collectives.all", .type = choice, .meaning = "of every communicator that is not named",
     .derived = "ring", .choices = algorithms},
    {.path = "cluster.collectives.tensor", .type = choice, .meaning = "of tensor parallel groups",
     .derived = "all's", .choices = algorithms},
    {.path = "cluster.collectives.context", .type = choice, .meaning = "of context parallel groups",
     .derived = "all's", .choices = algorithms},
    {.path = "cluster.collectives.data", .type = choice, .meaning = "of data parallel groups",
     .derived = "all's", .choices = algorithms},
    {.path = "cluster.collectives.embedding", .type = choice, .meaning = "of first and last stage, of tied embeddings",
     .derived = "all's", .choices = algorithms},
    {.path = "cluster.collectives.world", .type = choice, .meaning = "of all ranks, of the gradient norm",
     .derived = "all's, else nccl: it is a few bytes", .choices = algorithms},
    {.path = "cluster.stack", .type = text,
     .meaning = "stack profile, what the trainer makes of time and memory: a built-in name or the path of a stack.yaml",
     .derived = "none: the count alone", .names_file = true, .built_in = true},
    {.path = "cluster.block_times", .type = text,
     .meaning = "path of a table of measured times per Transformer block, relative to the scenario; what is no such block is free then",
     .derived = "priced from the machine", .names_file = true},
    {.path = "cluster.price_per_gpu_hour", .type = number, .meaning = "price in your currency; 0 = unknown",
     .fallback = "0", .max = 1e9},
};

const Key work_table[] = {
    {.path = "layout", .type = section,
     .meaning = "how the work is shared out; ranks = tensor x context x data x pipeline"},
    {.path = "layout.tensor", .type = integer, .meaning = "tensor parallel degree", .fallback = "1",
     .min = 1, .max = 1e6},
    {.path = "layout.sequence_parallel", .type = flag,
     .meaning = "norms and residual sharded over the sequence inside the tensor group", .fallback = "false"},
    {.path = "layout.pipeline", .type = integer, .meaning = "pipeline parallel degree", .fallback = "1",
     .min = 1, .max = 1e6},
    {.path = "layout.chunks", .type = integer, .meaning = "stages per pipeline rank",
     .derived = "the schedule's own",
     .min = 1, .max = 1e5},
    {.path = "layout.context", .type = integer, .meaning = "context parallel degree", .fallback = "1",
     .min = 1, .max = 1e6},
    {.path = "layout.context_exchange", .type = choice,
     .meaning = "keys and values of the context group: gathered before attention, or sent around while it computes",
     .fallback = "all-gather", .choices = exchanges},
    {.path = "layout.data", .type = integer, .meaning = "data parallel degree",
     .derived = "GPUs / (tensor x context x pipeline)", .min = 1, .max = 1e6},
    {.path = "layout.expert", .type = integer,
     .meaning = "expert parallel degree (experts of a layer on different data ranks); reserved: only 1 exists yet",
     .fallback = "1", .min = 1, .max = 1e6},
    {.path = "layout.zero", .type = integer, .meaning = "ZeRO stage over the data group", .fallback = "0",
     .min = 0, .max = 3},
    {.path = "layout.split", .type = split,
     .meaning = "layers per stage: even (early stages get one more), balanced (by FLOPs, head counted; by time where GPUs differ or ranks have several chunks), or a list",
     .fallback = "even", .min = 0, .max = 1e4, .choices = splits},
    {.path = "layout.placement", .type = integers,
     .meaning = "order in which ranks fill the nodes: a list of all node indices, counted from 0 over all groups",
     .derived = "0, 1, 2, ...", .max = 1e6},

    {.path = "schedule", .type = section, .meaning = "in which order micro-batches run", .required = true,
     .shorthand = "name"},
    {.path = "schedule.name", .type = choice, .meaning = "the pipeline schedule", .fallback = "1f1b",
     .choices = schedules, .hint = meant_schedule},
    {.path = "schedule.csv", .type = text,
     .meaning = "path of a PyTorch schedule CSV whose actions replace the named schedule's, relative to the scenario",
     .names_file = true},
    {.path = "schedule.micro_batch", .type = integer, .meaning = "sequences per micro-batch",
     .fallback = "1", .min = 1,
     .max = 1e9},
    {.path = "schedule.global_batch", .type = integer,
     .meaning = "sequences per step, over all data parallel replicas",
     .required = true, .min = 1, .max = 1e12},
    {.path = "schedule.recompute", .type = choice, .meaning = "activations made again in the backward pass",
     .fallback = "none", .choices = recomputes},
    {.path = "schedule.kernels", .type = choice, .meaning = "attention and norm kernels",
     .fallback = "flash2_rmsnorm",
     .choices = kernels},
    {.path = "schedule.slices", .type = integer, .meaning = "slices of a sequence (token-level pipelines)",
     .derived = "the schedule's own", .min = 1, .max = 1e5},

    {.path = "schedule.fill", .type = choice,
     .meaning = "what runs in the bubbles: K-FAC's curvature and inversions, or forward passes for evaluation",
     .derived = "kfac with run.optimizer kfac, else none", .choices = fillers},
    {.path = "schedule.evaluation_micro_batches", .type = integer,
     .meaning = "that schedule.fill evaluation runs through the pipeline, per replica and window",
     .fallback = "8", .min = 1, .max = 1e6},
};
// clang-format on

}  // namespace

std::span<const Key> scenario_keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> keys(model_keys().begin(), model_keys().end());
    keys.insert(keys.end(), std::begin(cluster_table), std::end(cluster_table));
    keys.insert(keys.end(), trouble_keys().begin(), trouble_keys().end());
    keys.insert(keys.end(), std::begin(work_table), std::end(work_table));
    keys.insert(keys.end(), run_keys().begin(), run_keys().end());
    keys.insert(keys.end(), training_keys().begin(), training_keys().end());
    return keys;
  }();
  return all;
}

}  // namespace slipway
