// cluster.stragglers, cluster.slow_links and cluster.link_factors. Guarded by tests/scenario_impairments_test.cpp.
#include <algorithm>

#include "scenarios/language/load_cluster.h"

namespace slipway {
namespace {

// The place of every GPU, in the order of their numbers.
std::vector<Place> all_gpus(const Cluster& cluster) {
  std::vector<Place> places;
  int node = 0;
  for (std::size_t g = 0; g < cluster.groups.size(); ++g)
    for (int i = 0; i < cluster.groups[g].nodes; ++i, ++node)
      for (int gpu = 0; gpu < cluster.groups[g].gpus_per_node; ++gpu) places.push_back({static_cast<int>(g), node, gpu});
  return places;
}

bool check_node(Settings& settings, const std::string& key, int node, const Cluster& cluster) {
  if (node < node_count(cluster)) return true;
  settings.refuse(key,
                  "the cluster has no node " + std::to_string(node) + "; allowed: 0 to " +
                      std::to_string(node_count(cluster) - 1),
                  "count the nodes of all groups from 0");
  return false;
}

// node: −1 for all.
bool check_gpu(Settings& settings, const std::string& key, int node, int gpu, const std::vector<Place>& gpus) {
  const bool found = std::any_of(gpus.begin(), gpus.end(), [&](const Place& place) {
    return (node < 0 || place.node == node) && place.gpu == gpu;
  });
  if (found) return true;
  const auto size = std::count_if(gpus.begin(), gpus.end(), [&](const Place& place) {
    return place.node == std::max(0, node);
  });
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
  std::vector<double>& factors = cluster.impairments.slowdown;
  factors.resize(gpus.size(), 1);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if ((node < 0 || gpus[i].node == node) && (gpu < 0 || gpus[i].gpu == gpu))
      factors[i] *= slowdown * spread_factor(spread, sigma, seed, i);
}

std::vector<int> fabrics_of(Settings& settings, const std::string& key, int node, const Cluster& cluster) {
  const int wanted = number_or_all(settings, key), count = static_cast<int>(cluster.fabrics.size());
  std::vector<int> found;
  for (int f = 0; f < count; ++f) {
    const Fabric& fabric = cluster.fabrics[static_cast<std::size_t>(f)];
    if (has_member(fabric, group_of_node(cluster, node)) && (wanted < 0 ? fabric.scope == Fabric::Scope::cluster : wanted == f))
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
  const int shared_by = std::max(1, cluster.fabrics[static_cast<std::size_t>(port.fabric)].gpus_per_port);
  return std::any_of(cluster.impairments.ports.begin(), cluster.impairments.ports.end(), [&](const SlowPort& other) {
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
      settings.refuse(path + ".down", "an earlier entry lets a port of node " + std::to_string(port.node) + " in fabric " +
                                          std::to_string(fabric) + " flap already; allowed: one entry with period and down for a port",
                      "remove one of the two, or give each a gpu of its own port");
      return;
    }
    cluster.impairments.ports.push_back(port);
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

void load_impairments(Settings& settings, Cluster& cluster) {
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

}  // namespace slipway
