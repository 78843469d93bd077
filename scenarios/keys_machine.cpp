// The table of a machine profile: the fields of struct Machine, by their names.
#include "scenarios/keys.h"

namespace slipway {
namespace {

using enum KeyType;

// One key, one or two lines.
// clang-format off
const Key table[] = {
    {.path = "name", .type = text, .meaning = "of the machine", .derived = "the file's name"},
    {.path = "memory_bytes", .type = number, .meaning = "capacity of one GPU, or of one rank's share",
     .required = true,
     .max = 1e18, .above_min = true, .unit = Unit::bytes},
    {.path = "peak_flops", .type = section, .meaning = "dense FLOP/s per dtype; absent = not supported",
     .derived = "required of GPUs; cores: until calibrated"},
    {.path = "peak_flops.float64", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops},
    {.path = "peak_flops.float32", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops},
    {.path = "peak_flops.tf32", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops},
    {.path = "peak_flops.bfloat16", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops},
    {.path = "peak_flops.float16", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops},
    {.path = "memory_bandwidth", .type = number, .meaning = "of one GPU, or of one rank",
     .derived = "required of GPUs; cores: until calibrated", .max = 1e18, .above_min = true,
     .unit = Unit::bytes_per_second},
    {.path = "gemm_efficiency", .type = number, .meaning = "share of peak of a large GEMM",
     .fallback = "1", .max = 1,
     .above_min = true},
    {.path = "gemm_half", .type = number, .meaning = "smallest GEMM side at which half of that is reached",
     .fallback = "0", .max = 1e9},
    {.path = "factorization_half", .type = number,
     .meaning = "side at which a Cholesky factorization and inversion reach half of gemm_efficiency",
     .fallback = "0", .max = 1e9},
    {.path = "attention_efficiency", .type = number, .meaning = "share of peak of the attention kernel",
     .fallback = "1", .max = 1, .above_min = true},
    {.path = "memory_efficiency", .type = number,
     .meaning = "share of memory_bandwidth of element-wise kernels",
     .fallback = "1", .max = 1, .above_min = true},
    {.path = "launch_overhead", .type = number, .meaning = "per kernel", .fallback = "0", .max = 10,
     .unit = Unit::seconds},
    {.path = "task_overhead", .type = number, .meaning = "per graph task", .fallback = "0", .max = 10,
     .unit = Unit::seconds},
    {.path = "overlap_slowdown", .type = number, .meaning = "compute time factor beside communication",
     .fallback = "1",
     .min = 1, .max = 100},
    {.path = "cores", .type = integer, .meaning = "cores that a node's ranks share; 0 = GPUs",
     .fallback = "0", .max = 1e6},
    {.path = "node_link", .type = section, .meaning = "between ranks of one node"},
    {.path = "node_link.name", .type = text, .meaning = "of the link"},
    {.path = "node_link.bandwidth", .type = number, .meaning = "per port and direction", .fallback = "0",
     .max = 1e18,
     .unit = Unit::bytes_per_second},
    {.path = "node_link.latency", .type = number, .meaning = "of one message", .fallback = "0", .max = 1e3,
     .unit = Unit::seconds},
    {.path = "node_link.efficiency", .type = number,
     .meaning = "share of bandwidth that a large message reaches",
     .fallback = "1", .max = 1, .above_min = true},
    {.path = "network_link", .type = section, .meaning = "between nodes"},
    {.path = "network_link.name", .type = text, .meaning = "of the link"},
    {.path = "network_link.bandwidth", .type = number, .meaning = "per port and direction",
     .fallback = "0", .max = 1e18,
     .unit = Unit::bytes_per_second},
    {.path = "network_link.latency", .type = number, .meaning = "of one message", .fallback = "0",
     .max = 1e3,
     .unit = Unit::seconds},
    {.path = "network_link.efficiency", .type = number,
     .meaning = "share of bandwidth that a large message reaches",
     .fallback = "1", .max = 1, .above_min = true},
    {.path = "reduce_bandwidth", .type = number, .meaning = "at which a rank adds incoming data; 0 = free",
     .fallback = "0", .max = unbounded, .unit = Unit::bytes_per_second},
    {.path = "provenance", .type = section, .meaning = "where the numbers come from"},
    {.path = "provenance.source", .type = text, .meaning = "citation, data sheet or command"},
    {.path = "provenance.date", .type = text, .meaning = "ISO date of a measurement"},
    {.path = "provenance.machine", .type = text, .meaning = "host of a measurement"},
};
// clang-format on

}  // namespace

std::span<const Key> machine_keys() { return table; }

}  // namespace slipway
