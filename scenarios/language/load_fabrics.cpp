// cluster.fabrics: networks, and what they have between their ports.
#include <algorithm>
#include <limits>
#include <numeric>

#include "models/topology.h"
#include "scenarios/language/load_cluster.h"

namespace slipway {
namespace {

bool check_members(Settings& settings, const std::string& path, const std::vector<int>& members,
                   int groups) {
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (!twice && sorted.back() < groups) return true;
  settings.refuse(
      path,
      (twice ? "a group is named twice" : "there is no group " + std::to_string(sorted.back())) +
          std::string("; allowed: indices from 0 to ") + std::to_string(groups - 1) + ", each once",
      "count the groups from 0");
  return false;
}

// The slowest of the members' own links of this scope.
Link own_link(const Fabric& fabric, const std::vector<NodeGroup>& groups) {
  Link slowest{"", std::numeric_limits<double>::infinity(), 0, 1};
  for (const int g : fabric.groups) {
    const Machine& machine = groups[static_cast<std::size_t>(g)].machine;
    const Link& link = fabric.scope == Fabric::Scope::node ? machine.node_link : machine.network_link;
    slowest.bandwidth = std::min(slowest.bandwidth, link.bandwidth * link.efficiency);
    slowest.latency = std::max(slowest.latency, link.latency);
  }
  return slowest;
}

bool load_speed(Settings& settings, const std::string& path, const std::vector<NodeGroup>& groups,
                Fabric& fabric) {
  const std::string bandwidth = path + ".bandwidth", latency = path + ".latency";
  const Link own = own_link(fabric, groups);
  fabric.bandwidth = settings.given(bandwidth) ? settings.number(bandwidth) : own.bandwidth;
  fabric.latency = settings.given(latency) ? settings.number(latency) : own.latency;
  if (fabric.bandwidth > 0 || settings.given(bandwidth)) return true;
  settings.refuse(
      path,
      "it has no bandwidth, and neither has the machines' own link of that scope; allowed: a number "
      "above 0 bytes/s",
      "add 'bandwidth:' and 'latency:' to it");
  return false;
}

// Where nobody says it, messages to other rails move inside the node if they can.
bool nodes_have_a_fabric(const Settings& settings) {
  for (int i = 0; i < settings.length("cluster.fabrics"); ++i)
    if (settings.text("cluster.fabrics." + std::to_string(i) + ".scope") == "node") return true;
  return false;
}

// A star has nothing to say more of.
bool is_plain(Settings& settings, const std::string& path) {
  for (const char* key :
       {"shape", "uplinks", "oversubscription", "link_bandwidth", "global_bandwidth", "hop_latency"}) {
    if (!settings.given(path + key)) continue;
    settings.refuse(
        path + key,
        "a star has nothing between its ports; allowed: with another kind (slipway list topologies)",
        "name a kind, or leave it out");
    return false;
  }
  return true;
}

bool load_topology(Settings& settings, const std::string& fabric_path, const Cluster& cluster,
                   Fabric& fabric) {
  const std::string path = fabric_path + ".topology.";
  const auto key = [&](const char* name) { return path + name; };
  fabric.topology = topology_named(settings.text(key("kind")));
  if (fabric.topology == nullptr) return is_plain(settings, path);
  TopologyShape& links = fabric.links;
  links.shape = settings.integers(key("shape"));
  links.uplinks = settings.integers(key("uplinks"));
  if (settings.given(key("oversubscription")))
    links.oversubscription = settings.number(key("oversubscription"));
  links.link_bandwidth = settings.number(key("link_bandwidth"));
  links.global_bandwidth = settings.number(key("global_bandwidth"));
  links.hop_latency = settings.number(key("hop_latency"));
  links.pinned = settings.text(key("routing")) == "static";
  links.moves_inside = settings.given(key("crossing")) ? settings.text(key("crossing")) == "node"
                                                       : nodes_have_a_fabric(settings);
  const Topology::Misfit misfit = fabric.topology->refuse(fabric, ports_of(cluster, fabric));
  if (misfit.message.empty()) return true;
  settings.refuse(path + misfit.key, misfit.message, misfit.remedy);
  return false;
}

// Data that moves inside the nodes first needs a fabric there.
void check_crossing(Settings& settings, const Cluster& cluster, std::size_t f) {
  const auto reaches = [&](int group) {
    return std::any_of(cluster.fabrics.begin(), cluster.fabrics.end(), [&](const Fabric& fabric) {
      return fabric.scope == Fabric::Scope::node &&
             std::find(fabric.groups.begin(), fabric.groups.end(), group) != fabric.groups.end();
    });
  };
  for (const int group : cluster.fabrics[f].groups) {
    if (cluster.groups[static_cast<std::size_t>(group)].gpus_per_node == 1 || reaches(group)) continue;
    settings.refuse("cluster.fabrics." + std::to_string(f) + ".topology.crossing",
                    "data shall move through the node, but the nodes of group " + std::to_string(group) +
                        " have no fabric; allowed: node with a fabric of scope node, or core",
                    "add '- scope: node' to fabrics, or write crossing: core");
    return;
  }
}

bool all_good(const Settings& settings, const std::string& path) {
  const std::string topology = path + ".topology";
  return settings.good({path, path + ".name", path + ".scope", path + ".members", path + ".bandwidth",
                        path + ".latency", path + ".gpus_per_port", topology, topology + ".kind",
                        topology + ".shape", topology + ".uplinks", topology + ".oversubscription",
                        topology + ".link_bandwidth", topology + ".global_bandwidth",
                        topology + ".hop_latency", topology + ".routing", topology + ".crossing"});
}

std::optional<Fabric> load_fabric(Settings& settings, const std::string& path, const Cluster& cluster) {
  if (!all_good(settings, path)) return std::nullopt;
  const int groups = static_cast<int>(cluster.groups.size());
  Fabric fabric;
  fabric.scope = settings.text(path + ".scope") == "node" ? Fabric::Scope::node : Fabric::Scope::cluster;
  fabric.name =
      settings.given(path + ".name") ? settings.text(path + ".name") : settings.text(path + ".scope");
  fabric.gpus_per_port = settings.small_integer(path + ".gpus_per_port");
  fabric.groups = settings.integers(path + ".members");
  if (fabric.groups.empty()) {
    fabric.groups.resize(static_cast<std::size_t>(groups));
    std::iota(fabric.groups.begin(), fabric.groups.end(), 0);
  }
  if (!check_members(settings, path + ".members", fabric.groups, groups) ||
      !load_speed(settings, path, cluster.groups, fabric) ||
      !load_topology(settings, path, cluster, fabric))
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
  const TopologyShape& links = fabric.links;
  MapWriter to;
  to.add("kind", fabric.topology->name);
  if (!links.shape.empty()) to.add("shape", list_of(links.shape));
  if (!links.uplinks.empty()) to.add("uplinks", list_of(links.uplinks));
  to.add("oversubscription", links.oversubscription);
  to.add("link_bandwidth", link_bandwidth(fabric));
  to.add("global_bandwidth", global_bandwidth(fabric));
  to.add("hop_latency", links.hop_latency);
  to.add("routing", std::string(links.pinned ? "static" : "adaptive"));
  to.add("crossing", std::string(links.moves_inside ? "node" : "core"));
  return to.map;
}

}  // namespace

void load_fabrics(Settings& settings, Cluster& cluster) {
  for (int i = 0; i < settings.length("cluster.fabrics"); ++i)
    if (std::optional<Fabric> fabric =
            load_fabric(settings, "cluster.fabrics." + std::to_string(i), cluster))
      cluster.fabrics.push_back(std::move(*fabric));
  for (std::size_t f = 0; f < cluster.fabrics.size(); ++f)
    if (cluster.fabrics[f].links.moves_inside) check_crossing(settings, cluster, f);
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

}  // namespace slipway
