// Hardware as data. A Machine is one accelerator (or CPU rank) with its links; profiles are in
// models/machine/profiles/*.yaml, each number with its source. A Cluster places ranks on machines. Peaks, capacities
// and bandwidths are physics of the device. Efficiencies and overheads depend on software, and calibration fits them.
// Guarded by tests/models/machine_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/machine/block_times.h"
#include "models/machine/collectives.h"
#include "models/machine/degradation.h"
#include "models/machine/kernels.h"
#include "models/machine/step_constants.h"
#include "models/machine/trainer_facts.h"
#include "models/model/dtype.h"

namespace slipway::models {

struct Link {
  std::string name;       // "nvlink4", "infiniband-ndr", "loopback"
  double bandwidth = 0;   // bytes/s per port and direction, from the data sheet
  double latency = 0;     // seconds per message, software included
  double efficiency = 1;  // share of bandwidth that a large message reaches
  int mesh = 0;           // GPUs joined pairwise without a switch: each pair has a share of the port; 0: a switch
};

// Source and date of one number, kept beside the value in every profile.
struct Provenance {
  std::string source;   // citation, data sheet or command
  std::string date;     // ISO date; empty when not measured
  std::string machine;  // host on which a measurement was made
};

// The uncertainty of a fitted number of a profile. Each part belongs to one direction in which the whole fit may be
// off, in ln(value). The squares add up to the variance; products with another number's parts add up to the covariance.
struct FittedDeviation {
  std::string name;  // of the number, as in the profile: "gemm_efficiency", "node_link.latency"
  std::vector<double> parts;
};

struct Machine {
  std::string name;
  double memory_bytes = 0;                   // capacity of one GPU / of one rank's share
  std::array<double, formats> peak_flops{};  // dense FLOP/s by Format (Dtype is a part of it); 0: unknown
  double memory_bandwidth = 0;               // bytes/s
  // Efficiency of a GEMM: gemm_efficiency / (1 + gemm_half / min(m, n, k)), share of peak.
  double gemm_efficiency = 1, gemm_half = 0;
  // Efficiency of a Cholesky factorization and inversion (K-FAC): gemm_efficiency / (1 + factorization_half / side).
  double factorization_half = 0;
  double attention_efficiency = 1;  // share of peak that the attention kernel reaches
  double memory_efficiency = 1;     // share of memory_bandwidth that element-wise kernels reach
  double launch_overhead = 0;       // seconds per kernel
  double task_overhead = 0;         // seconds per graph task (executor)
  double overlap_slowdown = 1;      // compute time factor while a communication lane of the rank is busy
  // Standard deviation of the logarithm of durations that the fit of this profile had not seen (calibration.h); 0: unknown.
  double spread = 0;
  std::vector<FittedDeviation> deviations;  // of the numbers of that fit
  int cores = 0;                            // > 0: ranks of a node share this many cores (CPU machines)
  Link node_link;                           // between ranks of one node
  Link network_link;                        // between nodes
  double host_memory_bandwidth = 0;         // bytes/s: a GPU's share of its host's memory
  Link host_to_device, device_to_host;      // of a GPU, from and to pinned memory, while all GPUs of a node copy
  double reduce_bandwidth = 0;              // bytes/s at which a rank adds incoming data (0: free)
  Generation generation = Generation::other;
  MachineKernels kernels;   // empty: CPU ranks, and a user's machines
  bool trained = false;     // priced by kernels, constants and trainer (priced_cluster.h); else by the shares above
  StepConstants constants;  // of this machine and the scenario's trainer
  TrainerFacts trainer;
  Provenance provenance;
  BlockTable blocks;  // measured per Transformer block; empty: priced by operators
};

// A number of a profile that calibration fits, by its name there; nullptr for another name.
double* fitted_number(Machine& machine, std::string_view name);
// True for CPU ranks without any measurement: a profile that `slipway calibrate` starts from. It can be loaded, not
// priced.
bool awaits_calibration(const Machine& machine);

struct NodeGroup {
  Machine machine;
  int nodes = 1;
  int gpus_per_node = 1;
};

// Ranks on processors. They send through Gloo (Algorithm::gloo), and all ranks of a node through its one interface.
bool are_processors(const std::vector<NodeGroup>& groups);

struct Topology;  // models/machine/topology.h

// The value of one parameter of a topology: a number, a list of whole numbers or a word.
struct ParameterValue {
  double number = 0;
  std::vector<int> counts{};
  std::string word{};
  ParameterValue() = default;
  ParameterValue(double value) : number(value) {}
  ParameterValue(std::vector<int> values) : counts(std::move(values)) {}
  ParameterValue(std::initializer_list<int> values) : counts(values) {}
  ParameterValue(const char* value) : word(value) {}
};
// The given ones by name. Which there are, and the defaults of the others, the topology declares.
using ParameterValues = std::map<std::string, ParameterValue, std::less<>>;

// One network that connects GPUs. `scope` node: a separate copy inside every node; gpu: inside every GPU, for the ranks
// that share it.
struct Fabric {
  enum class Scope : std::uint8_t { gpu, node, cluster };
  std::string name;
  Scope scope = Scope::cluster;
  std::vector<int> groups;             // indices of member node groups
  double bandwidth = 0;                // bytes/s of one port, each direction
  double latency = 0;                  // seconds
  int gpus_per_port = 1;               // GPUs of a node that share one port
  const Topology* topology = nullptr;  // none: a star, in which nothing is shared but the ports
  ParameterValues parameters{};        // of the topology, as far as they are given
  bool own = false;                    // bandwidth and latency are the user's, not those of the machines' links
};

constexpr std::size_t message_axes = 10;  // by Axis (operators.h)

// Rings, except for what all ranks exchange (Axis::world): a few bytes for the gradient's norm. No library sends them
// round a ring of thousands. NCCL takes trees, Gloo and MPI recursive doubling: log₂ as many latencies.
constexpr std::array<Algorithm, message_axes> default_algorithms = [] {
  std::array<Algorithm, message_axes> algorithms{};
  algorithms[static_cast<std::size_t>(Axis::world)] = Algorithm::nccl;
  return algorithms;
}();

struct Cluster {
  std::string name;
  std::vector<NodeGroup> groups;
  std::vector<Fabric> fabrics;    // ranks use the first one that both are members of, the narrowest scope first
  int ranks_per_gpu = 1;          // more: they share its memory, and compute at a share of its speed (sim/compute.h)
  double price_per_gpu_hour = 0;  // currency of the user; 0 = unknown
  std::array<Algorithm, message_axes> algorithms = default_algorithms;  // of collectives, by Axis
  bool own_algorithms = false;                                          // they are the user's
  std::vector<int> gpu_of_rank;        // GPU of each rank; empty: rank r is on GPU r / ranks_per_gpu
  Degradation degradation{};           // slow GPUs and ports
  std::vector<WeakPair> weak_pairs{};  // nodes between which messages get less than the fabric's bandwidth
};

// The fabrics of a cluster that names none. Inside the nodes of each group it is node_link; between nodes, where there
// are several, one fabric of network_links. Bandwidth = bandwidth·efficiency of the link. Groups with different network
// links get the slower bandwidth and the longer latency of them. Ranks on processors share their node's port.
std::vector<Fabric> default_fabrics(const std::vector<NodeGroup>& groups);
// The cluster with other machines in its groups. Fabrics of the machines' own links follow them.
Cluster with_machines(Cluster cluster, const std::vector<Machine>& machines);
// Share of a GPU's port inside the node that a group of so many of its GPUs reaches. 1 with a switch, which every node of
// more than eight GPUs has. Without one, a GPU has a link to each other GPU of the group.
double node_share(const NodeGroup& nodes, int members);
// Fabrics between the ranks of one GPU of each group: copies in its memory, which read and write every byte. A message
// costs the launch of a kernel.
std::vector<Fabric> shared_gpu_fabrics(const std::vector<NodeGroup>& groups);

// The place of a rank. Ranks fill nodes in order, groups in order, unless gpu_of_rank is set.
struct Place {
  int group = 0, node = 0, gpu = 0;  // node is cluster-wide
};
// All machines have a peak for this type, or await their calibration.
bool computes_in(const Cluster& cluster, Dtype dtype);
int node_count(const Cluster& cluster);
// Throws std::invalid_argument when the cluster has no such node.
int group_of_node(const Cluster& cluster, int node);
// The gpu_of_rank of ranks that fill these nodes one after the other, ranks_per_gpu on each GPU.
std::vector<int> gpus_in_order(const Cluster& cluster, const std::vector<int>& nodes);
int gpu_count(const Cluster& cluster);
int rank_capacity(const Cluster& cluster);  // number of ranks that fit
// The number of a rank's GPU when all are counted node by node, and its place. Throw std::invalid_argument when the
// cluster has no such rank.
int gpu_of(const Cluster& cluster, int rank);
Place place_of(const Cluster& cluster, int rank);
bool has_member(const Fabric& fabric, int group);
bool connects(const Fabric& fabric, const Place& a, const Place& b);
// Index of the fabric that carries traffic between two ranks. Throws std::invalid_argument with both places when none
// connects them.
int fabric_between(const Cluster& cluster, int rank_a, int rank_b);
// The number of these ranks that follow one another on each node; empty where nodes have unequal numbers of them, or
// recur in the order.
std::optional<int> ranks_per_node(const Cluster& cluster, const std::vector<std::int32_t>& ranks);

}  // namespace slipway::models
