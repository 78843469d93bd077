#include "sim/platform.h"

#include <csignal>
#include <map>
#include <simgrid/s4u.hpp>
#include <string>

namespace slipway {
namespace {

namespace sg4 = simgrid::s4u;

struct Port {
  sg4::Link* up = nullptr;
  sg4::Link* down = nullptr;
};

// One fabric: its zone, its ports by (node, port of the node), and a host per rank.
struct FabricZone {
  sg4::NetZone* zone = nullptr;
  std::map<std::pair<int, int>, Port> ports;
  std::map<std::pair<int, bool>, sg4::Host*> hosts;
};

// CM02 with these settings is latency + size/bandwidth and max-min sharing; the default model multiplies
// latencies by 13 and has a TCP window. SimGrid's dates agree within `surf/precision` seconds.
void start_engine() {
  std::vector<std::string> words{"slipway",
                                 "--log=root.threshold:critical",
                                 "--cfg=network/model:CM02",
                                 "--cfg=network/crosstraffic:0",
                                 "--cfg=network/TCP-gamma:1e30",
                                 "--cfg=surf/precision:1e-12"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  static sg4::Engine engine(&count, arguments.data());
  for (const int signal : {SIGINT, SIGSEGV, SIGBUS}) std::signal(signal, SIG_DFL);  // SimGrid's print
}

Port& port_of(FabricZone& fabric, const Cluster& cluster, int fabric_index, const Place& place) {
  const Fabric& shape = cluster.fabrics[static_cast<std::size_t>(fabric_index)];
  const int number = place.gpu / std::max(1, shape.gpus_per_port);
  Port& port = fabric.ports[{place.node, number}];
  if (port.up != nullptr) return port;
  const std::string name =
      "f" + std::to_string(fabric_index) + "." + std::to_string(place.node) + "." + std::to_string(number);
  const double bandwidth = shape.bandwidth * parts_per_byte;
  port.up = fabric.zone->create_link(name + ".up", bandwidth)->set_latency(0)->seal();
  port.down = fabric.zone->create_link(name + ".down", bandwidth)->set_latency(0)->seal();
  return port;
}

// `twin`: a second host on the same port. A route of SimGrid from a host to itself touches no link.
sg4::Host* host_of(FabricZone& fabric, const Cluster& cluster, int fabric_index, int rank, bool twin) {
  sg4::Host*& host = fabric.hosts[{rank, twin}];
  if (host != nullptr) return host;
  const Port& port = port_of(fabric, cluster, fabric_index, place_of(cluster, rank));
  host = fabric.zone
             ->create_host(
                 "f" + std::to_string(fabric_index) + "r" + std::to_string(rank) + (twin ? "t" : ""), 1.0)
             ->seal();
  auto* point = host->get_netpoint();
  fabric.zone->add_route(point, nullptr, nullptr, nullptr, {sg4::LinkInRoute(port.up)}, false);
  fabric.zone->add_route(nullptr, point, nullptr, nullptr, {sg4::LinkInRoute(port.down)}, false);
  return host;
}

}  // namespace

std::vector<Route> build_platform(const Cluster& cluster, const std::vector<Edge>& edges) {
  start_engine();
  sg4::NetZone* root = sg4::create_empty_zone("root");
  std::vector<FabricZone> fabrics(cluster.fabrics.size());
  std::vector<Route> routes;
  routes.reserve(edges.size());
  for (const Edge& edge : edges) {
    FabricZone& fabric = fabrics[static_cast<std::size_t>(edge.fabric)];
    if (fabric.zone == nullptr) {
      fabric.zone = sg4::create_star_zone("f" + std::to_string(edge.fabric));
      fabric.zone->set_parent(root);
    }
    routes.push_back({host_of(fabric, cluster, edge.fabric, edge.from, false),
                      host_of(fabric, cluster, edge.fabric, edge.to, edge.from == edge.to)});
  }
  for (FabricZone& fabric : fabrics)
    if (fabric.zone != nullptr) fabric.zone->seal();
  root->seal();
  return routes;
}

}  // namespace slipway
