// The table of a machine profile: the fields of struct Machine, by their names.
#include "scenarios/language/keys.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "models/model/dtype.h"
#include "scenarios/language/binding.h"

namespace slipway::scenarios {

namespace {

using enum KeyType;

// One key, one or two lines.
// Zero peaks are of dtypes that the machine does not have.
template <Format format>
constexpr BindingTo<Machine> peak_field{[](const Settings& settings, std::string_view path, Machine& machine) {
                                          machine.peak_flops[static_cast<std::size_t>(format)] = settings.number(path);
                                        },
                                        [](const Machine& machine) {
                                          const double peak = machine.peak_flops[static_cast<std::size_t>(format)];
                                          return peak > 0 ? binding::written(peak) : std::string();
                                        }};

constexpr BindingTo<Machine> generation_field{
    [](const Settings& settings, std::string_view path, Machine& machine) {
      if (const int index = settings.choice(path); index >= 0) machine.generation = generation_names[index].value;
    },
    [](const Machine& machine) {
      return machine.generation == Generation::other ? std::string() : std::string(name_of(machine.generation));
    }};

// Empty links are not written.
template <Link Machine::*link, auto member>
constexpr BindingTo<Machine> link_field{machine_field<link, member>.read, [](const Machine& machine) {
                                          const Link& given = machine.*link;
                                          const bool is_empty =
                                              given.name.empty() && given.bandwidth == 0 && given.latency == 0;
                                          return is_empty ? std::string() : binding::written(given.*member);
                                        }};

// clang-format off
const Key machine_table[] = {
    {.path = "name", .type = text, .meaning = "name of the machine", .derived = "the file's name",
     .of_machine = machine_field<&Machine::name>},
    {.path = "memory_bytes", .type = number, .meaning = "capacity of one GPU, or of one rank's share",
     .required = true,
     .max = 1e18, .above_min = true, .unit = Unit::bytes,
     .of_machine = machine_field<&Machine::memory_bytes>},
    {.path = "generation", .type = choice, .meaning = "of the GPU: which attention kernels a trainer has for it",
     .fallback = "other", .choices = words_of<generation_names>,
     .of_machine = generation_field},
    {.path = "peak_flops", .type = section, .meaning = "dense FLOP/s per dtype; absent = not supported",
     .derived = "required of GPUs; cores: until calibrated"},
    {.path = "peak_flops.float64", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::float64>},
    {.path = "peak_flops.float32", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::float32>},
    {.path = "peak_flops.tf32", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::tf32>},
    {.path = "peak_flops.bfloat16", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::bfloat16>},
    {.path = "peak_flops.float16", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::float16>},
    {.path = "peak_flops.fp8", .type = number, .meaning = "peak, also of scales per block", .max = 1e21,
     .unit = Unit::flops,
     .of_machine = peak_field<Format::fp8>},
    {.path = "peak_flops.nvfp4", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::nvfp4>},
    {.path = "memory_bandwidth", .type = number, .meaning = "memory bandwidth of one GPU, or of one rank",
     .derived = "required of GPUs; cores: until calibrated", .max = 1e18, .above_min = true,
     .unit = Unit::bytes_per_second,
     .of_machine = machine_field<&Machine::memory_bandwidth>},
    {.path = "gemm_efficiency", .type = number, .meaning = "share of peak of a large GEMM",
     .fallback = "1", .max = 1,
     .above_min = true,
     .of_machine = machine_field<&Machine::gemm_efficiency>},
    {.path = "gemm_half", .type = number, .meaning = "smallest GEMM side that reaches half of gemm_efficiency",
     .fallback = "0", .max = 1e9,
     .of_machine = machine_field<&Machine::gemm_half>},
    {.path = "factorization_half", .type = number,
     .meaning = "side at which a Cholesky factorization and inversion reach half of gemm_efficiency",
     .fallback = "0", .max = 1e9,
     .of_machine = machine_field<&Machine::factorization_half>},
    {.path = "attention_efficiency", .type = number, .meaning = "share of peak of the attention kernel",
     .fallback = "1", .max = 1, .above_min = true,
     .of_machine = machine_field<&Machine::attention_efficiency>},
    {.path = "memory_efficiency", .type = number,
     .meaning = "share of memory_bandwidth of element-wise kernels",
     .fallback = "1", .max = 1, .above_min = true,
     .of_machine = machine_field<&Machine::memory_efficiency>},
    {.path = "launch_overhead", .type = number, .meaning = "time per kernel", .fallback = "0", .max = 10,
     .unit = Unit::seconds,
     .of_machine = machine_field<&Machine::launch_overhead>},
    {.path = "task_overhead", .type = number, .meaning = "time per graph task", .fallback = "0", .max = 10,
     .unit = Unit::seconds,
     .of_machine = machine_field<&Machine::task_overhead>},
    {.path = "overlap_slowdown", .type = number, .meaning = "compute time factor beside communication",
     .fallback = "1",
     .min = 1, .max = 100,
     .of_machine = machine_field<&Machine::overlap_slowdown>},
    {.path = "spread", .type = number,
     .meaning = "standard deviation of ln(duration) of work that the profile's fit had not seen, written by calibrate; 0: unknown, and predictions have no interval",
     .fallback = "0", .max = 10,
     .of_machine = machine_field<&Machine::spread>},
    {.path = "cores", .type = integer, .meaning = "cores that a node's ranks share; 0 = GPUs",
     .fallback = "0", .max = 1e6,
     .of_machine = machine_field<&Machine::cores>},
    {.path = "node_link", .type = section, .meaning = "between ranks of one node"},
    {.path = "node_link.name", .type = text, .meaning = "name of the link",
     .of_machine = link_field<&Machine::node_link, &Link::name>},
    {.path = "node_link.bandwidth", .type = number, .meaning = "per port and direction", .fallback = "0",
     .max = 1e18,
     .unit = Unit::bytes_per_second,
     .of_machine = link_field<&Machine::node_link, &Link::bandwidth>},
    {.path = "node_link.latency", .type = number, .meaning = "latency of one message", .fallback = "0", .max = 1e3,
     .unit = Unit::seconds,
     .of_machine = link_field<&Machine::node_link, &Link::latency>},
    {.path = "node_link.efficiency", .type = number,
     .meaning = "share of bandwidth that a large message reaches",
     .fallback = "1", .max = 1, .above_min = true,
     .of_machine = link_field<&Machine::node_link, &Link::efficiency>},
    {.path = "node_link.mesh", .type = integer,
     .meaning = "GPUs of a node that are joined pairwise, without a switch: a pair has bandwidth / (mesh - 1); 0 = a switch",
     .fallback = "0", .max = 1e3,
     .of_machine = link_field<&Machine::node_link, &Link::mesh>},
    {.path = "network_link", .type = section, .meaning = "between nodes"},
    {.path = "network_link.name", .type = text, .meaning = "name of the link",
     .of_machine = link_field<&Machine::network_link, &Link::name>},
    {.path = "network_link.bandwidth", .type = number, .meaning = "per port and direction",
     .fallback = "0", .max = 1e18,
     .unit = Unit::bytes_per_second,
     .of_machine = link_field<&Machine::network_link, &Link::bandwidth>},
    {.path = "network_link.latency", .type = number, .meaning = "latency of one message", .fallback = "0",
     .max = 1e3,
     .unit = Unit::seconds,
     .of_machine = link_field<&Machine::network_link, &Link::latency>},
    {.path = "network_link.efficiency", .type = number,
     .meaning = "share of bandwidth that a large message reaches",
     .fallback = "1", .max = 1, .above_min = true,
     .of_machine = link_field<&Machine::network_link, &Link::efficiency>},
    {.path = "host_to_device", .type = section,
     .meaning = "copies from pinned memory of the host to a GPU (schedule.offload)"},
    {.path = "host_to_device.name", .type = text, .meaning = "name of the link",
     .of_machine = link_field<&Machine::host_to_device, &Link::name>},
    {.path = "host_to_device.bandwidth", .type = number, .meaning = "bandwidth of one GPU while all GPUs of a node copy",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes_per_second,
     .of_machine = link_field<&Machine::host_to_device, &Link::bandwidth>},
    {.path = "host_to_device.latency", .type = number, .meaning = "latency of one copy",
     .fallback = "0", .max = 1e3, .unit = Unit::seconds,
     .of_machine = link_field<&Machine::host_to_device, &Link::latency>},
    {.path = "host_to_device.efficiency", .type = number,
     .meaning = "share of bandwidth that a large copy reaches", .fallback = "1", .max = 1, .above_min = true,
     .of_machine = link_field<&Machine::host_to_device, &Link::efficiency>},
    {.path = "device_to_host", .type = section,
     .meaning = "copies back"},
    {.path = "device_to_host.name", .type = text, .meaning = "name of the link",
     .of_machine = link_field<&Machine::device_to_host, &Link::name>},
    {.path = "device_to_host.bandwidth", .type = number, .meaning = "bandwidth of one GPU while all GPUs of a node copy",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes_per_second,
     .of_machine = link_field<&Machine::device_to_host, &Link::bandwidth>},
    {.path = "device_to_host.latency", .type = number, .meaning = "latency of one copy",
     .fallback = "0", .max = 1e3, .unit = Unit::seconds,
     .of_machine = link_field<&Machine::device_to_host, &Link::latency>},
    {.path = "device_to_host.efficiency", .type = number,
     .meaning = "share of bandwidth that a large copy reaches", .fallback = "1", .max = 1, .above_min = true,
     .of_machine = link_field<&Machine::device_to_host, &Link::efficiency>},
    {.path = "host_memory_bandwidth", .type = number,
     .meaning = "a GPU's share of the bandwidth of its host's memory, for states in it (run.optimizer.offload_fraction); 0 = unknown",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes_per_second,
     .of_machine = machine_field<&Machine::host_memory_bandwidth>},
    {.path = "reduce_bandwidth", .type = number, .meaning = "rate at which a rank adds incoming data; 0 = free",
     .fallback = "0", .max = unbounded, .unit = Unit::bytes_per_second,
     .of_machine = machine_field<&Machine::reduce_bandwidth>},
    {.path = "provenance", .type = section, .meaning = "where the numbers come from"},
    {.path = "provenance.source", .type = text, .meaning = "citation, data sheet or command",
     .of_machine = machine_field<&Machine::provenance, &Provenance::source>},
    {.path = "provenance.date", .type = text, .meaning = "ISO date of a measurement",
     .of_machine = machine_field<&Machine::provenance, &Provenance::date>},
    {.path = "provenance.machine", .type = text, .meaning = "host of a measurement",
     .of_machine = machine_field<&Machine::provenance, &Provenance::machine>},
};
// clang-format on

}  // namespace

std::span<const Key> machine_keys() { return machine_table; }

}  // namespace slipway::scenarios
