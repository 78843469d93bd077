#include "scenarios/commands/execute/cores.h"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace slipway::scenarios {

std::vector<int> usable_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error(std::string("cannot read which cores may be used: ") + std::strerror(errno));
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<int> cores_of_rank(const std::vector<int>& usable, int rank, int ranks) {
  const int share = static_cast<int>(usable.size()) / ranks;
  const auto first = usable.begin() + rank * share;
  return {first, first + share};
}

}  // namespace slipway::scenarios
