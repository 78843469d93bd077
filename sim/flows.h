// Flows under way on SimGrid's links, and the task of each.
//
// A flow is a detached host-to-host Comm: SimGrid keeps it alive until it ends, and only the address of its activity
// identifies it here. When time advances, the network model lists the actions that have just ended. They are looked up
// before SimGrid frees them. (Completion callbacks cost more, and dropping the last reference inside one crashes
// SimGrid 3.32.) A flow's largest rate and its weight are set on its action, the last started one: SimGrid 3.32 does not
// hand on those of a host-to-host Comm. An edge of n equal flows is one flow of weight n: max-min sharing gives it the
// bandwidth of n.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/flight_table.h"
#include "sim/platform.h"

namespace simgrid::kernel::resource {
class Model;
}

namespace slipway::sim {

class Flows {
 public:
  // `routes` of the edges of the tasks' forms; `tasks` per step. One instance of a task is under way at a time.
  Flows(std::vector<HostPair> routes, std::uint32_t tasks);

  // Opens one flow on each edge [first, last), with its share of `bytes`. None takes less than `least_s` seconds.
  void open(Instance instance, std::uint32_t first_edge, std::uint32_t last_edge, double bytes, double least_s);
  // Appends the instances whose last flow ended at the present date.
  void collect(std::vector<Instance>& ended);

  std::uint64_t opened() const { return opened_; }
  bool any() const { return !flying_.empty(); }

 private:
  std::vector<HostPair> routes_;
  std::vector<std::uint32_t> open_per_task_;
  FlightTable flying_;
  simgrid::kernel::resource::Model* network_ = nullptr;
  std::uint64_t opened_ = 0;
};

}  // namespace slipway::sim
