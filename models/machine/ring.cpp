#include "models/machine/ring.h"

#include <stdexcept>
#include <string>

namespace slipway::models {

RingTraffic ring_traffic(Collective collective, int members, double bytes) {
  if (members < 1 || !(bytes >= 0))
    throw std::invalid_argument(std::string("a ring ") + name_of(collective) + " needs at least one member and " +
                                "no negative size; it was given " + std::to_string(members) + " members and " +
                                std::to_string(bytes) + " bytes");
  if (members == 1) return {};
  const int hops = members - 1;
  const double share = bytes * hops / members;
  switch (collective) {
    case Collective::none:
      return {};
    case Collective::all_reduce:
      return {2 * share, 2 * hops, share};
    case Collective::reduce_scatter:
      return {share, hops, share};
    case Collective::all_gather:
    case Collective::all_to_all:
      return {share, hops, 0};
    case Collective::broadcast:
      return {bytes, hops, 0};
    case Collective::send:
    case Collective::shift:
      return {bytes, 1, 0};
  }
  return {};
}

double ring_seconds(Collective collective, int members, double bytes, double latency, double bandwidth,
                    double reduce_bandwidth) {
  const RingTraffic traffic = ring_traffic(collective, members, bytes);
  if (traffic.rounds == 0) return 0;
  if (!(bandwidth > 0))
    throw std::invalid_argument(std::string("a ring ") + name_of(collective) + " of " + std::to_string(members) +
                                " members needs a link bandwidth above 0; set it in the machine profile or fabric");
  double seconds = traffic.rounds * latency + traffic.bytes_per_link / bandwidth;
  if (reduce_bandwidth > 0) seconds += traffic.reduced_bytes / reduce_bandwidth;
  return seconds;
}

}  // namespace slipway::models
