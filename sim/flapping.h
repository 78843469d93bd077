// Links that go down and come up again, on SimGrid's clock.
//
//   up for (1 − down)·period, then down for down·period, from date 0 on
//
// A link that is down keeps a trillionth of its bandwidth, because SimGrid requires bandwidth above 0. The state is a
// function of the date alone, so dates at which nothing is under way need no event.
// Guarded by tests/sim/degraded_step_test.cpp: the end of a flow is its closed form.
#pragma once

#include <vector>

namespace simgrid::s4u {
class Link;
}

namespace slipway::sim {

struct FlappingLink {
  simgrid::s4u::Link* link = nullptr;
  double bandwidth = 0;  // in SimGrid's unit, while it is up
  double period = 0, down = 0;
  bool is_up = true;
};

class Flapping {
 public:
  explicit Flapping(std::vector<FlappingLink> links) : links_(std::move(links)) {}

  bool empty() const { return links_.empty(); }
  // Gives every link the bandwidth that it has from now on.
  void settle(double now);
  // Gives every link its full bandwidth until settle() is called at the same date. SimGrid caps a flow for good at the
  // bandwidth that its links have when it is opened.
  void lift();
  // The first date after now at which a link changes; requires !empty().
  double next_date(double now) const;

 private:
  std::vector<FlappingLink> links_;
};

}  // namespace slipway::sim
