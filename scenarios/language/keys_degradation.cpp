// Keys of `cluster` for what is slow or fails: a part of the scenario's table.
#include "scenarios/language/keys.h"

#include <span>
#include <string_view>
#include <vector>

#include "scenarios/language/binding.h"
#include "scenarios/language/keys_fields.h"

namespace slipway::scenarios {

namespace {

std::vector<std::string_view> spreads() { return {"half-normal", "lognormal"}; }

using enum KeyType;

// clang-format off
const Key degradation_table[] = {
    {.path = "cluster.stragglers", .type = sections,
     .meaning = "slow GPUs; several entries of one GPU multiply", .derived = "none"},
    {.path = "cluster.stragglers.*.node", .type = integer, .meaning = "node, counted from 0 over all groups",
     .derived = "every node", .max = 1e6},
    {.path = "cluster.stragglers.*.gpu", .type = integer, .meaning = "GPU of the node, counted from 0",
     .derived = "every GPU", .max = 1023},
    {.path = "cluster.stragglers.*.slowdown", .type = number,
     .meaning = "its compute takes this many times as long", .fallback = "1", .min = 1, .max = 1e6},
    {.path = "cluster.stragglers.*.sigma", .type = number,
     .meaning = "spread: each GPU gets one more factor, drawn once", .fallback = "0", .max = 10},
    {.path = "cluster.stragglers.*.distribution", .type = choice,
     .meaning = "distribution of that factor, z standard normal: half-normal 1 + sigma |z|, lognormal exp(sigma z)",
     .fallback = "half-normal", .choices = spreads},
    {.path = "cluster.stragglers.*.seed", .type = integer, .meaning = "seed of the draw", .derived = "run.seed",
     .max = largest_int64},
    {.path = "cluster.slow_links", .type = sections,
     .meaning = "slow or flapping ports, both directions; several entries of one port multiply",
     .derived = "none"},
    {.path = "cluster.slow_links.*.node", .type = integer, .meaning = "node, counted from 0 over all groups",
     .required = true, .max = 1e6},
    {.path = "cluster.slow_links.*.gpu", .type = integer, .meaning = "the port of this GPU of the node",
     .derived = "all its ports", .max = 1023},
    {.path = "cluster.slow_links.*.fabric", .type = integer, .meaning = "index of the fabric",
     .derived = "all of scope cluster", .max = 1e6},
    {.path = "cluster.slow_links.*.bandwidth", .type = number, .meaning = "remaining share of the bandwidth",
     .fallback = "1", .max = 1, .above_min = true},
    {.path = "cluster.slow_links.*.period", .type = number,
     .meaning = "period of a flapping link from 0 s on: up, then down for the share `down` of it",
     .derived = "does not flap", .max = 1e6, .above_min = true, .unit = Unit::seconds},
    {.path = "cluster.slow_links.*.down", .type = number, .meaning = "share of each period in which the link is down",
     .fallback = "0", .max = 0.999},
    {.path = "cluster.link_factors", .type = sections,
     .meaning = "pairs of nodes between which messages get less than the fabrics' bandwidth", .derived = "none"},
    {.path = "cluster.link_factors.*.nodes", .type = integers, .meaning = "the two nodes, counted from 0",
     .required = true, .max = 1e6},
    {.path = "cluster.link_factors.*.factor", .type = number,
     .meaning = "largest share of the bandwidth for one message, both directions", .required = true,
     .max = 1, .above_min = true},
    {.path = "cluster.mtbf_per_node", .type = number,
     .meaning = "mean time between failures of one node, drawn from an exponential distribution",
     .derived = "nodes do not fail", .max = 1e12, .above_min = true, .unit = Unit::seconds, .wants_unit = true,
     .bound = field<faults, training, &FaultyTraining::node_mtbf_s>},
    {.path = "cluster.failures", .type = sections, .meaning = "failures at known times, for `slipway goodput`",
     .derived = "none"},
    {.path = "cluster.failures.*.at", .type = number, .meaning = "time from the beginning of training",
     .required = true, .max = 1e12, .unit = Unit::seconds},
    {.path = "cluster.failures.*.nodes", .type = integer, .meaning = "nodes that fail together", .fallback = "1",
     .min = 1, .max = 1e6},
    {.path = "cluster.restart", .type = number,
     .meaning = "time from the replacement of a failed node to the first step: start, load the checkpoint",
     .fallback = "0", .max = 1e9, .unit = Unit::seconds,
     .bound = field<faults, training, &FaultyTraining::restart_s>},
    {.path = "cluster.repair", .type = number, .meaning = "time from the failure of a node until it can be used again",
     .fallback = "0", .max = 1e12, .unit = Unit::seconds,
     .bound = field<faults, training, &FaultyTraining::repair_s>},
    {.path = "cluster.spare_nodes", .type = integer,
     .meaning = "nodes that wait to take a failed one's place; 0: training waits for the repair",
     .fallback = "0", .max = 1e6,
     .bound = field<faults, training, &FaultyTraining::spare_nodes>},
};
// clang-format on

}  // namespace

std::span<const Key> degradation_keys() { return degradation_table; }

}  // namespace slipway::scenarios
