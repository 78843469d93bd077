#include "sim/platform.h"

#include <csignal>
#include <map>
#include <simgrid/s4u.hpp>
#include <string>
#include <tuple>
#include <unordered_map>

#include "models/machine/topology.h"

namespace slipway::sim {
namespace {

namespace sg4 = simgrid::s4u;

// One fabric: its zone, and a host per rank, or per pair of ranks and one at which all ways end.
struct FabricZone {
  sg4::NetZone* zone = nullptr;
  std::map<std::pair<int, bool>, sg4::Host*> hosts;
  std::map<std::tuple<int, int, double>, sg4::Host*> ways;  // from, to, bandwidth of a weak pair
  std::map<double, sg4::Link*> pair_links;                  // by that bandwidth
  sg4::Host* end = nullptr;
};

// CM02 with these settings is latency + size/bandwidth and max-min sharing. The default model multiplies latencies by
// 13 and has a TCP window. SimGrid's dates agree within `surf/precision` seconds.
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
  for (const int signal : {SIGSEGV, SIGBUS}) std::signal(signal, SIG_DFL);  // SimGrid's print
  std::signal(SIGINT, SIG_IGN);  // the parent ends this process after it has read the progress
}

class Platform {
 public:
  explicit Platform(const Cluster& cluster)
      : cluster_(cluster), root_(sg4::create_empty_zone("root")), fabrics_(cluster.fabrics.size()) {}

  HostPair hosts_of(const Edge& edge) {
    const auto index = static_cast<std::size_t>(edge.fabric);
    FabricZone& fabric = fabrics_[index];
    if (fabric.zone == nullptr) {
      fabric.zone = sg4::create_star_zone("f" + std::to_string(edge.fabric));
      fabric.zone->set_parent(root_);
    }
    if (cluster_.fabrics[index].topology != nullptr || edge.weak < 1)
      return {way_of(fabric, edge), end_of(fabric), edge.share, edge.flows};
    return {port_host_of(fabric, edge, edge.from, false), port_host_of(fabric, edge, edge.to, edge.from == edge.to),
            edge.share, edge.flows};
  }

  const std::vector<FlappingLink>& flapping() const { return flapping_; }

  void seal() {
    for (FabricZone& fabric : fabrics_)
      if (fabric.zone != nullptr) fabric.zone->seal();
    root_->seal();
  }

 private:
  sg4::LinkInRoute link_of(FabricZone& fabric, const RouteLink& of) {
    sg4::Link*& link = links_[of.id];
    if (link == nullptr) {
      const double bandwidth = of.bandwidth * parts_per_byte;
      link = fabric.zone->create_link("l" + std::to_string(of.id), bandwidth)->set_latency(0)->seal();
      if (of.down > 0) flapping_.push_back({link, bandwidth, of.period, of.down, true});
    }
    return sg4::LinkInRoute(link);
  }

  // The most that each flow of a weak pair gets, however many there are.
  sg4::LinkInRoute pair_link_of(FabricZone& fabric, const Edge& edge) {
    sg4::Link*& link = fabric.pair_links[edge.weak];
    if (link == nullptr)
      link = fabric.zone
                 ->create_link(fabric.zone->get_name() + "pair" + std::to_string(fabric.pair_links.size()),
                               cluster_.fabrics[edge.fabric].bandwidth * edge.weak * parts_per_byte)
                 ->set_latency(0)
                 ->set_sharing_policy(sg4::Link::SharingPolicy::FATPIPE)
                 ->seal();
    return sg4::LinkInRoute(link);
  }

  // `twin`: a second host on the same port. A route of SimGrid from a host to itself touches no link.
  sg4::Host* port_host_of(FabricZone& fabric, const Edge& edge, int rank, bool twin) {
    sg4::Host*& host = fabric.hosts[{rank, twin}];
    if (host != nullptr) return host;
    find_route(cluster_, edge.fabric, rank, rank, route_);  // out of the port and in again
    host = add_host(fabric, "r" + std::to_string(rank) + (twin ? "t" : ""));
    auto* point = host->get_netpoint();
    fabric.zone->add_route(point, nullptr, nullptr, nullptr, {link_of(fabric, route_.links[0])}, false);
    fabric.zone->add_route(nullptr, point, nullptr, nullptr, {link_of(fabric, route_.links[1])}, false);
    return host;
  }

  sg4::Host* way_of(FabricZone& fabric, const Edge& edge) {
    sg4::Host*& host = fabric.ways[{edge.from, edge.to, edge.weak}];
    if (host != nullptr) return host;
    find_route(cluster_, edge.fabric, edge.from, edge.to, route_);
    std::vector<sg4::LinkInRoute> links;
    for (const RouteLink& link : route_.links) links.push_back(link_of(fabric, link));
    if (edge.weak < 1) links.push_back(pair_link_of(fabric, edge));
    host = add_host(fabric, "w" + std::to_string(fabric.ways.size()));
    fabric.zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, links, false);
    return host;
  }

  sg4::Host* end_of(FabricZone& fabric) {
    if (fabric.end != nullptr) return fabric.end;
    fabric.end = add_host(fabric, "end");
    fabric.zone->add_route(nullptr, fabric.end->get_netpoint(), nullptr, nullptr, std::vector<sg4::LinkInRoute>{},
                           false);
    return fabric.end;
  }

  static sg4::Host* add_host(FabricZone& fabric, const std::string& name) {
    return fabric.zone->create_host(fabric.zone->get_name() + name, 1.0)->seal();
  }

  std::vector<FlappingLink> flapping_;
  const Cluster& cluster_;
  sg4::NetZone* root_;
  std::vector<FabricZone> fabrics_;
  std::unordered_map<std::uint64_t, sg4::Link*> links_;  // by RouteLink::id
  Route route_;
};

}  // namespace

Network build_platform(const Cluster& cluster, const std::vector<Edge>& edges) {
  start_engine();
  Platform platform(cluster);
  Network network;
  network.pairs.reserve(edges.size());
  for (const Edge& edge : edges) network.pairs.push_back(platform.hosts_of(edge));
  platform.seal();
  network.flapping = platform.flapping();
  return network;
}

}  // namespace slipway::sim
