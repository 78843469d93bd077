#include "scenarios/language/load_cluster.h"

#include <algorithm>

#include "models/operators.h"

namespace slipway {
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
      settings.refuse("cluster.gpus_per_node",
                      "this key is missing; allowed: a whole number from 1 to 1024",
                      "add 'gpus_per_node:' to cluster");
    return {"cluster"};
  }
  for (const char* path : {"cluster.nodes", "cluster.gpus_per_node"})
    if (settings.given(path))
      settings.refuse(
          path, "it belongs to the short form with machine, but groups are given; allowed: inside a group",
          "use cluster.groups.0." + std::string(leaf_of(path)));
  std::vector<std::string> paths;
  for (int i = 0; i < settings.length("cluster.groups"); ++i)
    paths.push_back("cluster.groups." + std::to_string(i));
  return paths;
}

std::optional<NodeGroup> load_group(Settings& settings, const std::string& path,
                                    const std::string& folder) {
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
    name += (name.empty() ? "" : " + ") + std::to_string(group.nodes) + " x " +
            std::to_string(group.gpus_per_node) + " " + group.machine.name;
  return name;
}

constexpr Axis collective_axes[] = {Axis::tensor, Axis::context, Axis::data, Axis::embedding, Axis::world};

void load_algorithms(const Settings& settings, Cluster& cluster) {
  const auto chosen = [&](const std::string& key, Algorithm fallback) {
    const std::string path = "cluster.collectives." + key;
    return settings.given(path) ? static_cast<Algorithm>(settings.choice(path)) : fallback;
  };
  for (const Axis axis : collective_axes) {
    const std::size_t at = static_cast<std::size_t>(axis);
    cluster.algorithms[at] = chosen(name_of(axis), chosen("all", default_algorithms[at]));
  }
}

bool check_size(Settings& settings, const std::vector<NodeGroup>& groups) {
  double ranks = 0;
  for (const NodeGroup& group : groups) ranks += static_cast<double>(group.nodes) * group.gpus_per_node;
  if (ranks <= most_ranks) return true;
  settings.refuse(
      "cluster",
      "the cluster has " + number_text(ranks) + " GPUs; allowed: up to " + number_text(most_ranks),
      "reduce nodes or gpus_per_node");
  return false;
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
  const bool all =
      !paths.empty() && cluster.groups.size() == paths.size() && check_size(settings, cluster.groups);
  cluster.name = name_of(cluster.groups);
  cluster.price_per_gpu_hour = settings.number("cluster.price_per_gpu_hour");
  const int fabrics = settings.length("cluster.fabrics");
  if (all) load_fabrics(settings, cluster);
  const bool known =
      static_cast<int>(cluster.fabrics.size()) == fabrics && settings.good({"cluster.fabrics"});
  if (!all || !known || settings.refused() != before) return std::nullopt;
  if (fabrics == 0) cluster.fabrics = default_fabrics(cluster.groups);
  share_gpus(cluster);
  // A profile without a link makes no fabric; who needed it is told by check_fabrics.
  const bool unmeasured =
      std::any_of(cluster.groups.begin(), cluster.groups.end(),
                  [](const NodeGroup& group) { return awaits_calibration(group.machine); });
  if (!unmeasured)
    std::erase_if(cluster.fabrics, [](const Fabric& fabric) { return fabric.bandwidth <= 0; });
  load_impairments(settings, cluster);
  if (settings.refused() != before) return std::nullopt;
  return cluster;
}

}  // namespace slipway
