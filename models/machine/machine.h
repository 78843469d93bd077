// What hardware can do, as data. A Machine is one accelerator (or CPU rank) with its links; profiles
// live in models/machine/profiles/*.yaml, each number with its source. A Cluster places ranks on machines.
// Peaks, capacities and bandwidths are physics of the device; efficiencies and overheads are what software
// makes of it, and are what calibration fits.
// Guarded by tests/models/machine_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/machine/block_times.h"
#include "models/machine/collectives.h"
#include "models/machine/degradation.h"
#include "models/model/dtype.h"

namespace slipway::models {

struct Link {
  std::string name;       // "nvlink4", "infiniband-ndr", "loopback"
  double bandwidth = 0;   // bytes/s per port and direction, as the data sheet says
  double latency = 0;     // seconds per message, software included
  double efficiency = 1;  // share of bandwidth that a large message reaches
};

// Sizes of one measured number: where it came from and when, kept beside the value in every profile.
struct Provenance {
  std::string source;   // citation, data sheet or command
  std::string date;     // ISO date; empty when not measured
  std::string machine;  // host on which a measurement was made
};

// How long work takes over what the operator count says: what is known of one trainer, shape and layout
// (models/trainers/stack.h). 1: as counted.
struct Pace {
  double forward = 1, backward = 1;
};

struct Machine {
  std::string name;
  double memory_bytes = 0;             // capacity of one GPU / of one rank's share
  std::array<double, 5> peak_flops{};  // dense FLOP/s indexed by Dtype; 0 = not supported / unknown
  double memory_bandwidth = 0;         // bytes/s
  // Efficiency of a GEMM: gemm_efficiency / (1 + gemm_half / min(m, n, k)), share of peak.
  double gemm_efficiency = 1, gemm_half = 0;
  // Of a Cholesky factorization and inversion: gemm_efficiency / (1 + factorization_half / side). K-FAC.
  double factorization_half = 0;
  double attention_efficiency = 1;      // share of peak that the attention kernel reaches
  double memory_efficiency = 1;         // share of memory_bandwidth that element-wise kernels reach
  double launch_overhead = 0;           // seconds per kernel
  double task_overhead = 0;             // seconds per graph task (executor)
  double overlap_slowdown = 1;          // compute time factor while a communication lane of the rank is busy
  int cores = 0;                        // > 0: ranks of a node share this many cores (CPU machines)
  Link node_link;                       // between ranks of one node
  Link network_link;                    // between nodes
  Link host_to_device, device_to_host;  // of a GPU, from and to pinned memory; measured only: no price reads them
  double reduce_bandwidth = 0;          // bytes/s at which a rank adds incoming data (0: free)
  Pace layer_pace, head_pace;           // of a layer's operators; of the vocabulary product and the loss
  double step_overhead = 0;             // seconds per step, spent with the update
  Provenance provenance;
  BlockTable blocks;  // measured per Transformer block; empty: priced by operators
};

// CPU ranks of which nothing has been measured yet: a profile that `slipway calibrate` starts from. It can be
// loaded, not priced.
bool awaits_calibration(const Machine& machine);

struct NodeGroup {
  Machine machine;
  int nodes = 1;
  int gpus_per_node = 1;
};

struct Topology;  // models/machine/topology.h

// What stands in a scenario about the links between a fabric's ports; each kind of topology says what it
// reads of it (models/topologies/).
struct TopologyShape {
  std::vector<int> shape{};     // what the kind counts, from the ports upward
  std::vector<int> uplinks{};   // of a switch, per level; empty: none is missing
  double oversubscription = 1;  // bandwidth below the first switches / above them
  double link_bandwidth = 0;    // bytes/s of one inner link and direction; 0: as one port's
  double global_bandwidth = 0;  // bytes/s of the longest links; 0: as link_bandwidth
  double hop_latency = 0;       // seconds more for every link between switches
  bool pinned = false;          // each message to one of the uplinks, by its destination; else to all of them
  bool moves_inside = false;    // to another rail: through the node first (NCCL's PXN)
};

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
  TopologyShape links;                 // of the topology
};

// What messages of one axis cost in a trainer's steps, whatever fabric carries them: each takes this latency (s) a
// round and its bytes at this bandwidth (bytes/s). Bandwidth 0: as the fabric says.
struct MessageCost {
  double latency = 0, bandwidth = 0;
};
constexpr std::size_t message_axes = 6;  // by Axis (operators.h)

// Rings, but for what all ranks exchange (Axis::world, the last): a few bytes for the gradient's norm, which no library
// sends round a ring of thousands. NCCL takes trees for them, Gloo and MPI recursive doubling: about log₂ as many latencies.
constexpr std::array<Algorithm, message_axes> default_algorithms = [] {
  std::array<Algorithm, message_axes> algorithms{};
  algorithms.back() = Algorithm::nccl;
  return algorithms;
}();

struct Cluster {
  std::string name;
  std::vector<NodeGroup> groups;
  std::vector<Fabric> fabrics;    // ranks use the first one that both are members of, the narrowest scope first
  int ranks_per_gpu = 1;          // more: they share its memory, and compute at a share of its speed (sim/compute.h)
  double price_per_gpu_hour = 0;  // currency of the user; 0 = unknown
  double all_reduce_test = 0;     // bus bandwidth (bytes/s) of the user's own test inside a node; 0 = not made
  std::array<MessageCost, message_axes> message_costs{};
  std::array<Algorithm, message_axes> algorithms = default_algorithms;  // of collectives, by Axis
  std::vector<int> gpu_of_rank;        // where the ranks sit; empty: rank r on GPU r / ranks_per_gpu
  Impairments impairments{};           // slow GPUs and ports
  std::vector<WeakPair> weak_pairs{};  // nodes between which messages get less than the fabric's bandwidth
};

// The fabrics of a cluster that names none: inside the nodes of each group its node_link; between nodes,
// where there are several, one fabric of network_links. Bandwidth = bandwidth·efficiency of the link;
// groups with different network links get the slower bandwidth and the longer latency of them.
std::vector<Fabric> default_fabrics(const std::vector<NodeGroup>& groups);
// Between the ranks of one GPU of each group: copies in its memory, in which every byte is read and written; a message
// costs the launch of a kernel.
std::vector<Fabric> shared_gpu_fabrics(const std::vector<NodeGroup>& groups);

// Where a rank sits: ranks fill nodes in order, groups in order, unless gpu_of_rank says otherwise.
struct Place {
  int group = 0, node = 0, gpu = 0;  // node is cluster-wide
};
int node_count(const Cluster& cluster);
// Throws std::invalid_argument when the cluster has no such node.
int group_of_node(const Cluster& cluster, int node);
// What gpu_of_rank is when ranks fill these nodes one after the other, ranks_per_gpu on each GPU.
std::vector<int> gpus_in_order(const Cluster& cluster, const std::vector<int>& nodes);
int gpu_count(const Cluster& cluster);
int rank_capacity(const Cluster& cluster);  // ranks that there is room for
// The number of a rank's GPU when all are counted node by node, and its place. Throw std::invalid_argument when the
// cluster has no such rank.
int gpu_of(const Cluster& cluster, int rank);
Place place_of(const Cluster& cluster, int rank);
bool has_member(const Fabric& fabric, int group);
bool connects(const Fabric& fabric, const Place& a, const Place& b);
// Index of the fabric that carries traffic between two ranks. Throws std::invalid_argument naming both
// places when none connects them.
int fabric_between(const Cluster& cluster, int rank_a, int rank_b);

}  // namespace slipway::models
