#include "scenarios/language/load_cluster.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "models/machine/topology.h"
#include "models/model/operators.h"

namespace slipway::scenarios {

namespace {

constexpr double most_ranks = 10'000'000;  // one engine's tables stay below 2^31 entries

// The paths under which the groups are written: "cluster" itself, or each item of the list.
std::vector<std::string> group_paths(Settings& settings) {
  const bool machine = settings.given("cluster.machine"), groups = settings.given("cluster.groups");
  if (!settings.good({"cluster.machine", "cluster.groups"})) return {};
  if (machine == groups) {
    settings.refuse("cluster",
                    machine ? "machine and groups are both given; allowed: one of them"
                            : "neither machine nor groups is given; allowed: one of them",
                    machine ? "keep machine for one kind of nodes, groups for several"
                            : "add 'machine:' (slipway list machines) and 'gpus_per_node:' to cluster");
    return {};
  }
  if (machine) {
    if (settings.good({"cluster.gpus_per_node"}) && !settings.given("cluster.gpus_per_node"))
      settings.refuse("cluster.gpus_per_node", "this key is missing; allowed: a whole number from 1 to 1024",
                      "add 'gpus_per_node:' to cluster");
    return {"cluster"};
  }
  for (const char* path : {"cluster.nodes", "cluster.gpus_per_node"})
    if (settings.given(path))
      settings.refuse(path, "it belongs to the short form with machine, but groups are given; allowed: inside a group",
                      "use cluster.groups.0." + std::string(leaf_of(path)));
  std::vector<std::string> paths;
  for (int i = 0; i < settings.length("cluster.groups"); ++i) paths.push_back("cluster.groups." + std::to_string(i));
  return paths;
}

std::optional<NodeGroup> load_group(Settings& settings, const std::string& path, const std::string& folder) {
  const std::string machine = path + ".machine", nodes = path + ".nodes", gpus = path + ".gpus_per_node";
  if (!settings.good({machine})) return std::nullopt;
  std::optional<Machine> profile =
      load_machine(settings.text(machine), {settings.origin(machine), machine, folder}, settings.defects());
  if (!profile || !settings.good({nodes, gpus})) return std::nullopt;
  return NodeGroup{std::move(*profile), settings.given(nodes) ? settings.small_integer(nodes) : 1,
                   settings.small_integer(gpus)};
}

// Several ranks on each GPU, with an equal share of its memory each; the profile of CPU ranks is a rank's already.
void share_gpus(Cluster& cluster) {
  if (cluster.ranks_per_gpu == 1) return;
  for (NodeGroup& group : cluster.groups)
    if (group.machine.cores == 0) group.machine.memory_bytes /= cluster.ranks_per_gpu;
  for (Fabric& fabric : shared_gpu_fabrics(cluster.groups)) cluster.fabrics.push_back(std::move(fabric));
}

// One table for all groups: a comparison of machines is one scenario each.
void load_block_times(Settings& settings, const std::string& folder, Cluster& cluster) {
  const std::string key = "cluster.block_times";
  if (!settings.given(key)) return;
  const std::optional<BlockTable> table =
      load_block_table(settings.text(key), {settings.origin(key), key, folder}, settings.defects());
  if (!table) return;
  for (NodeGroup& group : cluster.groups) group.machine.blocks = *table;
}

std::string name_of(const std::vector<NodeGroup>& groups) {
  std::string name;
  for (const NodeGroup& group : groups)
    name += (name.empty() ? "" : " + ") + std::to_string(group.nodes) + " x " + std::to_string(group.gpus_per_node) +
            " " + group.machine.name;
  return name;
}

constexpr Axis collective_axes[] = {Axis::tensor, Axis::context, Axis::data, Axis::embedding, Axis::world};

void load_algorithms(const Settings& settings, Cluster& cluster) {
  const auto chosen = [&](const std::string& key, Algorithm fallback) {
    const std::string path = "cluster.collectives." + key;
    return settings.given(path) ? static_cast<Algorithm>(settings.choice(path)) : fallback;
  };
  cluster.own_algorithms = settings.given("cluster.collectives");
  const bool gloo = are_processors(cluster.groups);
  if (gloo) cluster.algorithms.fill(chosen("all", Algorithm::gloo));
  for (const Axis axis : collective_axes) {
    const std::size_t at = static_cast<std::size_t>(axis);
    cluster.algorithms[at] = chosen(name_of(axis), chosen("all", gloo ? Algorithm::gloo : default_algorithms[at]));
  }
}

bool check_size(Settings& settings, const std::vector<NodeGroup>& groups) {
  double ranks = 0;
  for (const NodeGroup& group : groups) ranks += static_cast<double>(group.nodes) * group.gpus_per_node;
  if (ranks <= most_ranks) return true;
  settings.refuse("cluster",
                  "the cluster has " + number_text(ranks) + " GPUs; allowed: up to " + number_text(most_ranks),
                  "reduce nodes or gpus_per_node");
  return false;
}

bool check_members(Settings& settings, const std::string& path, const std::vector<int>& members, int groups) {
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (!twice && sorted.back() < groups) return true;
  settings.refuse(path,
                  (twice ? "a group is named twice" : "there is no group " + std::to_string(sorted.back())) +
                      std::string("; allowed: indices from 0 to ") + std::to_string(groups - 1) + ", each once",
                  "count the groups from 0");
  return false;
}

// The slowest of the members' own links of this scope.
Link own_link(const Fabric& fabric, const std::vector<NodeGroup>& groups) {
  Link slowest{"", std::numeric_limits<double>::infinity(), 0, 1};
  for (const int g : fabric.groups) {
    const Machine& machine = groups[g].machine;
    const Link& link = fabric.scope == Fabric::Scope::node ? machine.node_link : machine.network_link;
    slowest.bandwidth = std::min(slowest.bandwidth, link.bandwidth * link.efficiency);
    slowest.latency = std::max(slowest.latency, link.latency);
  }
  return slowest;
}

bool load_speed(Settings& settings, const std::string& path, const std::vector<NodeGroup>& groups, Fabric& fabric) {
  const std::string bandwidth = path + ".bandwidth", latency = path + ".latency";
  const Link own = own_link(fabric, groups);
  fabric.bandwidth = settings.given(bandwidth) ? settings.number(bandwidth) : own.bandwidth;
  fabric.latency = settings.given(latency) ? settings.number(latency) : own.latency;
  fabric.own = fabric.bandwidth != own.bandwidth || fabric.latency != own.latency;
  if (fabric.bandwidth > 0 || settings.given(bandwidth)) return true;
  settings.refuse(path,
                  "it has no bandwidth, and neither has the machines' own link of that scope; allowed: a number "
                  "above 0 bytes/s",
                  "add 'bandwidth:' and 'latency:' to it");
  return false;
}

std::string names_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// A parameter that the fabric's kind does not have. A star has nothing to say more of.
void refuse_parameter(Settings& settings, const std::string& key, const Topology* topology) {
  const std::string name(leaf_of(key));
  if (topology == nullptr)
    return settings.refuse(key,
                           "a star has nothing between its ports; allowed: with another kind (slipway list topologies)",
                           "name a kind, or leave it out");
  std::vector<std::string> allowed, kinds;
  for (const TopologyParameter& parameter : topology->parameters) allowed.push_back(parameter.name);
  for (const Topology& other : all_topologies())
    if (parameter_named(other, name) != nullptr) kinds.push_back(other.name);
  settings.refuse(key, "topology " + topology->name + " has no such parameter; allowed: kind, " + names_of(allowed),
                  "leave it out, or choose a kind that has it (" + names_of(kinds) + ")");
}

bool check_parameters(Settings& settings, const std::string& path, const Topology* topology) {
  for (const Key* key : keys_below(scenario_keys(), "cluster.fabrics.0.topology")) {
    const std::string name(leaf_of(key->path));
    if (name == "kind" || !settings.given(path + name)) continue;
    if (topology != nullptr && parameter_named(*topology, name) != nullptr) continue;
    refuse_parameter(settings, path + name, topology);
    return false;
  }
  return true;
}

ParameterValue read_parameter(const Settings& settings, const std::string& key, TopologyParameter::Kind kind) {
  switch (kind) {
    case TopologyParameter::Kind::number:
      return settings.number(key);
    case TopologyParameter::Kind::integer:
      return static_cast<double>(settings.integer(key));
    case TopologyParameter::Kind::integers:
      return settings.integers(key);
    case TopologyParameter::Kind::word:
      return settings.text(key).c_str();
  }
  return {};
}

bool fits(Settings& settings, const std::string& path, const Topology::Misfit& misfit) {
  if (misfit.message.empty()) return true;
  settings.refuse(path + misfit.key, misfit.message, misfit.remedy);
  return false;
}

bool load_topology(Settings& settings, const std::string& fabric_path, const Cluster& cluster, Fabric& fabric) {
  const std::string path = fabric_path + ".topology.";
  fabric.topology = topology_named(settings.text(path + "kind"));
  if (!check_parameters(settings, path, fabric.topology)) return false;
  if (fabric.topology == nullptr) return true;
  for (const TopologyParameter& parameter : fabric.topology->parameters)
    if (const std::string key = path + parameter.name; settings.given(key))
      fabric.parameters[parameter.name] = read_parameter(settings, key, parameter.kind);
  return fits(settings, path, fabric.topology->refuse(fabric, ports_of(cluster, fabric)));
}

bool all_good(const Settings& settings, const std::string& path) {
  const std::string topology = path + ".topology";
  if (!settings.good({path, path + ".name", path + ".scope", path + ".members", path + ".bandwidth", path + ".latency",
                      path + ".gpus_per_port", topology}))
    return false;
  const std::vector<const Key*> keys = keys_below(scenario_keys(), "cluster.fabrics.0.topology");
  return std::all_of(keys.begin(), keys.end(),
                     [&](const Key* key) { return settings.good({topology + "." + std::string(leaf_of(key->path))}); });
}

// Ranks on processors send to other nodes through their node's one interface.
int ports_shared(Settings& settings, const std::string& key, Fabric::Scope scope,
                 const std::vector<NodeGroup>& groups) {
  if (settings.given(key)) return settings.small_integer(key);
  int ranks = 1;
  if (scope == Fabric::Scope::cluster && are_processors(groups))
    for (const NodeGroup& group : groups) ranks = std::max(ranks, group.gpus_per_node);
  return ranks;
}

std::optional<Fabric> load_fabric(Settings& settings, const std::string& path, const Cluster& cluster) {
  if (!all_good(settings, path)) return std::nullopt;
  const int groups = static_cast<int>(cluster.groups.size());
  Fabric fabric;
  fabric.scope = settings.text(path + ".scope") == "node" ? Fabric::Scope::node : Fabric::Scope::cluster;
  fabric.name = settings.given(path + ".name") ? settings.text(path + ".name") : settings.text(path + ".scope");
  fabric.gpus_per_port = ports_shared(settings, path + ".gpus_per_port", fabric.scope, cluster.groups);
  fabric.groups = settings.integers(path + ".members");
  if (fabric.groups.empty()) {
    fabric.groups.resize(groups);
    std::iota(fabric.groups.begin(), fabric.groups.end(), 0);
  }
  if (!check_members(settings, path + ".members", fabric.groups, groups) ||
      !load_speed(settings, path, cluster.groups, fabric) || !load_topology(settings, path, cluster, fabric))
    return std::nullopt;
  return fabric;
}

Value list_of(const std::vector<int>& numbers) {
  Value list;
  list.kind = Value::Kind::list;
  for (const int number : numbers) list.items.push_back(scalar(std::to_string(number), {}));
  return list;
}

struct MapWriter {
  Value map;
  MapWriter() { map.kind = Value::Kind::map; }
  void add(const char* key, Value value) { map.entries.push_back({key, {}, std::move(value)}); }
  void add(const char* key, double number) { add(key, scalar(number_text(number), {})); }
  void add(const char* key, std::string text) { add(key, scalar(std::move(text), {})); }
};

Value topology_value(const Fabric& fabric) {
  MapWriter to;
  to.add("kind", fabric.topology->name);
  for (const TopologyParameter& parameter : fabric.topology->parameters) {
    const char* name = parameter.name.c_str();
    switch (parameter.kind) {
      case TopologyParameter::Kind::number:
      case TopologyParameter::Kind::integer:
        to.add(name, number_of(fabric, name));
        break;
      case TopologyParameter::Kind::integers:
        if (const std::vector<int>& counts = counts_of(fabric, name); !counts.empty()) to.add(name, list_of(counts));
        break;
      case TopologyParameter::Kind::word:
        to.add(name, std::string(word_of(fabric, name)));
        break;
    }
  }
  return to.map;
}

// The place of every GPU, in the order of their numbers.
std::vector<Place> all_gpus(const Cluster& cluster) {
  std::vector<Place> places;
  int node = 0;
  for (std::size_t g = 0; g < cluster.groups.size(); ++g)
    for (int i = 0; i < cluster.groups[g].nodes; ++i, ++node)
      for (int gpu = 0; gpu < cluster.groups[g].gpus_per_node; ++gpu)
        places.push_back({static_cast<int>(g), node, gpu});
  return places;
}

bool check_node(Settings& settings, const std::string& key, int node, const Cluster& cluster) {
  if (node < node_count(cluster)) return true;
  settings.refuse(
      key,
      "the cluster has no node " + std::to_string(node) + "; allowed: 0 to " + std::to_string(node_count(cluster) - 1),
      "count the nodes of all groups from 0");
  return false;
}

// node: −1 for all.
bool check_gpu(Settings& settings, const std::string& key, int node, int gpu, const std::vector<Place>& gpus) {
  const bool found = std::any_of(gpus.begin(), gpus.end(), [&](const Place& place) {
    return (node < 0 || place.node == node) && place.gpu == gpu;
  });
  if (found) return true;
  const auto size =
      std::count_if(gpus.begin(), gpus.end(), [&](const Place& place) { return place.node == std::max(0, node); });
  settings.refuse(key,
                  (node < 0 ? "no node has a GPU " : "node " + std::to_string(node) + " has no GPU ") +
                      std::to_string(gpu) + "; allowed: 0 to " + std::to_string(size - 1),
                  "count the GPUs of a node from 0");
  return false;
}

// −1 where the key is absent.
int number_or_all(const Settings& settings, const std::string& key) {
  return settings.given(key) ? settings.small_integer(key) : -1;
}

// The entry's node and GPU, checked; false after an error.
bool read_place(Settings& settings, const std::string& path, const Cluster& cluster, const std::vector<Place>& gpus,
                int& node, int& gpu) {
  if (!settings.good({path + ".node", path + ".gpu"})) return false;
  node = number_or_all(settings, path + ".node"), gpu = number_or_all(settings, path + ".gpu");
  if (node >= 0 && !check_node(settings, path + ".node", node, cluster)) return false;
  return gpu < 0 || check_gpu(settings, path + ".gpu", node, gpu, gpus);
}

void load_straggler(Settings& settings, const std::string& path, const std::vector<Place>& gpus, Cluster& cluster) {
  int node = 0, gpu = 0;
  if (!read_place(settings, path, cluster, gpus, node, gpu)) return;
  const double slowdown = settings.number(path + ".slowdown"), sigma = settings.number(path + ".sigma");
  const auto spread = static_cast<Spread>(std::max(0, settings.choice(path + ".distribution")));
  const auto seed =
      static_cast<std::uint64_t>(settings.integer(settings.given(path + ".seed") ? path + ".seed" : "run.seed"));
  std::vector<double>& factors = cluster.degradation.slowdown;
  factors.resize(gpus.size(), 1);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if ((node < 0 || gpus[i].node == node) && (gpu < 0 || gpus[i].gpu == gpu))
      factors[i] *= slowdown * spread_factor(spread, sigma, seed, i);
}

std::vector<int> fabrics_of(Settings& settings, const std::string& key, int node, const Cluster& cluster) {
  const int wanted = number_or_all(settings, key), count = static_cast<int>(cluster.fabrics.size());
  std::vector<int> found;
  for (int f = 0; f < count; ++f) {
    const Fabric& fabric = cluster.fabrics[f];
    if (has_member(fabric, group_of_node(cluster, node)) &&
        (wanted < 0 ? fabric.scope == Fabric::Scope::cluster : wanted == f))
      found.push_back(f);
  }
  if (found.empty() && count == 0)
    settings.refuse(key, "node " + std::to_string(node) + " has no port: this cluster has no fabric",
                    "leave out cluster.slow_links, or give the cluster more GPUs");
  else if (found.empty())
    settings.refuse(key,
                    "node " + std::to_string(node) + " has no port in " +
                        (wanted < 0 ? "a fabric of scope cluster" : "fabric " + std::to_string(wanted)) +
                        "; allowed: indices from 0 to " + std::to_string(count - 1) + " of fabrics with its group",
                    "`slipway simulate` with --trace writes the fabrics into the resolved scenario; count them from 0");
  return found;
}

// The dates of two periods have no common one.
bool flaps_already(const SlowPort& port, const Cluster& cluster) {
  const int shared_by = std::max(1, cluster.fabrics[port.fabric].gpus_per_port);
  return std::any_of(cluster.degradation.ports.begin(), cluster.degradation.ports.end(), [&](const SlowPort& other) {
    const bool same_port = other.gpu < 0 || port.gpu < 0 || other.gpu / shared_by == port.gpu / shared_by;
    return other.down > 0 && other.fabric == port.fabric && other.node == port.node && same_port;
  });
}

void load_slow_link(Settings& settings, const std::string& path, const std::vector<Place>& gpus, Cluster& cluster) {
  if (!settings.good({path + ".period", path + ".down", path + ".bandwidth", path + ".fabric"})) return;
  SlowPort port;
  if (!read_place(settings, path, cluster, gpus, port.node, port.gpu) || port.node < 0) return;
  port.share = settings.number(path + ".bandwidth");
  port.down = settings.number(path + ".down");
  port.period = settings.number(path + ".period");
  if ((port.down > 0) != settings.given(path + ".period")) {
    settings.refuse(path + (port.down > 0 ? ".period" : ".down"),
                    "period and down belong together; allowed: both, or none",
                    "give both, for example period: 2 s and down: 0.1");
    return;
  }
  for (const int fabric : fabrics_of(settings, path + ".fabric", port.node, cluster)) {
    port.fabric = fabric;
    if (port.down > 0 && flaps_already(port, cluster)) {
      settings.refuse(path + ".down",
                      "an earlier entry lets a port of node " + std::to_string(port.node) + " in fabric " +
                          std::to_string(fabric) + " flap already; allowed: one entry with period and down for a port",
                      "remove one of the two, or give each a gpu of its own port");
      return;
    }
    cluster.degradation.ports.push_back(port);
  }
}

void load_link_factor(Settings& settings, const std::string& path, Cluster& cluster) {
  if (!settings.good({path + ".nodes", path + ".factor"})) return;
  const std::vector<int> nodes = settings.integers(path + ".nodes");
  if (nodes.size() != 2 || nodes[0] == nodes[1]) {
    settings.refuse(path + ".nodes", "these are no two nodes; allowed: a list of two different node indices",
                    "write for example nodes: [0, 3]");
    return;
  }
  if (!check_node(settings, path + ".nodes", std::max(nodes[0], nodes[1]), cluster)) return;
  cluster.weak_pairs.push_back({nodes[0], nodes[1], settings.number(path + ".factor")});
}

}  // namespace

Value algorithms_value(const Cluster& cluster) {
  Value map;
  map.kind = Value::Kind::map;
  const auto add = [&](const char* key, Value value) { map.entries.push_back({key, {}, std::move(value)}); };
  for (const Axis axis : collective_axes)
    add(name_of(axis), scalar(name_of(cluster.algorithms[static_cast<std::size_t>(axis)]), {}));
  return map;
}

std::optional<Cluster> load_cluster(Settings& settings, const std::string& folder) {
  if (!settings.good({"cluster"})) return std::nullopt;
  const std::vector<std::string> paths = group_paths(settings);
  const std::size_t before = settings.refused();
  Cluster cluster;
  for (const std::string& path : paths)
    if (std::optional<NodeGroup> group = load_group(settings, path, folder))
      cluster.groups.push_back(std::move(*group));
  load_block_times(settings, folder, cluster);
  load_algorithms(settings, cluster);
  if (!settings.good({"cluster.ranks_per_gpu"})) return std::nullopt;
  cluster.ranks_per_gpu = settings.small_integer("cluster.ranks_per_gpu");
  const bool all = !paths.empty() && cluster.groups.size() == paths.size() && check_size(settings, cluster.groups);
  cluster.name = name_of(cluster.groups);
  cluster.price_per_gpu_hour = settings.number("cluster.price_per_gpu_hour");
  const int fabrics = settings.length("cluster.fabrics");
  if (all) load_fabrics(settings, cluster);
  const bool known = static_cast<int>(cluster.fabrics.size()) == fabrics && settings.good({"cluster.fabrics"});
  if (!all || !known || settings.refused() != before) return std::nullopt;
  if (fabrics == 0) cluster.fabrics = default_fabrics(cluster.groups);
  share_gpus(cluster);
  // A profile without a link makes no fabric; the rule of fabrics refuses the ranks that needed it.
  const bool unmeasured = std::any_of(cluster.groups.begin(), cluster.groups.end(),
                                      [](const NodeGroup& group) { return awaits_calibration(group.machine); });
  if (!unmeasured) std::erase_if(cluster.fabrics, [](const Fabric& fabric) { return fabric.bandwidth <= 0; });
  load_degradation(settings, cluster);
  if (settings.refused() != before) return std::nullopt;
  return cluster;
}

// cluster.fabrics: networks, and what they have between their ports.

void load_fabrics(Settings& settings, Cluster& cluster) {
  for (int i = 0; i < settings.length("cluster.fabrics"); ++i)
    if (std::optional<Fabric> fabric = load_fabric(settings, "cluster.fabrics." + std::to_string(i), cluster))
      cluster.fabrics.push_back(std::move(*fabric));
  if (std::ssize(cluster.fabrics) != settings.length("cluster.fabrics")) return;
  for (std::size_t f = 0; f < cluster.fabrics.size(); ++f)
    if (Fabric& fabric = cluster.fabrics[f]; fabric.topology != nullptr && fabric.topology->settle != nullptr)
      fits(settings, "cluster.fabrics." + std::to_string(f) + ".topology.", fabric.topology->settle(cluster, fabric));
}

Value fabric_value(const Fabric& fabric) {
  MapWriter to;
  to.add("name", fabric.name);
  to.add("scope", std::string(fabric.scope == Fabric::Scope::node ? "node" : "cluster"));
  to.add("members", list_of(fabric.groups));
  to.add("bandwidth", fabric.bandwidth);
  to.add("latency", fabric.latency);
  to.add("gpus_per_port", static_cast<double>(fabric.gpus_per_port));
  if (fabric.topology != nullptr) to.add("topology", topology_value(fabric));
  return to.map;
}

// cluster.stragglers, cluster.slow_links and cluster.link_factors. Guarded by
// tests/scenarios/scenario_fabrics_test.cpp.

void load_degradation(Settings& settings, Cluster& cluster) {
  const std::vector<Place> gpus = all_gpus(cluster);
  const auto each = [&](const std::string& list, const auto& load) {
    for (int i = 0; i < settings.length(list); ++i) {
      const std::string path = list + "." + std::to_string(i);
      if (settings.good({path})) load(path);
    }
  };
  each("cluster.stragglers", [&](const std::string& path) { load_straggler(settings, path, gpus, cluster); });
  each("cluster.slow_links", [&](const std::string& path) { load_slow_link(settings, path, gpus, cluster); });
  each("cluster.link_factors", [&](const std::string& path) { load_link_factor(settings, path, cluster); });
}

}  // namespace slipway::scenarios
