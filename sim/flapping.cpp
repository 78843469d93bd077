#include "sim/flapping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <simgrid/s4u.hpp>

namespace slipway::sim {
namespace {

constexpr double rest_of_bandwidth = 1e-12;

double date_of_fall(const FlappingLink& link, double cycle) { return (cycle + (1 - link.down)) * link.period; }

// Number of the period in which `now` lies; its beginning belongs to it, however it was rounded.
double cycle_at(const FlappingLink& link, double now) {
  double cycle = std::floor(now / link.period);
  while ((cycle + 1) * link.period <= now) ++cycle;
  while (cycle > 0 && cycle * link.period > now) --cycle;
  return cycle;
}

void turn(FlappingLink& link, bool up) {
  if (up == link.is_up) return;
  link.is_up = up;
  link.link->set_bandwidth(up ? link.bandwidth : rest_of_bandwidth * link.bandwidth);
}

}  // namespace

void Flapping::settle(double now) {
  for (FlappingLink& link : links_) turn(link, now < date_of_fall(link, cycle_at(link, now)));
}

void Flapping::lift() {
  for (FlappingLink& link : links_) turn(link, true);
}

double Flapping::next_date(double now) const {
  double next = std::numeric_limits<double>::infinity();
  for (const FlappingLink& link : links_) {
    const double cycle = cycle_at(link, now), fall = date_of_fall(link, cycle);
    next = std::min(next, now < fall ? fall : (cycle + 1) * link.period);
  }
  return next;
}

}  // namespace slipway::sim
