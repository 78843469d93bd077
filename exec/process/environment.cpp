#include "exec/process/environment.h"

#include <unistd.h>

#include <charconv>
#include <stdexcept>

#include "exec/process/node_list.h"
#include "exec/run/launchers.h"

namespace slipway::exec {

namespace {

constexpr int default_port = 29500;  // c10d's own default

const std::string* find(const EnvironmentMap& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

int integer(const EnvironmentMap& environment, const char* name, int smallest, int largest) {
  const std::string* text = find(environment, name);
  if (!text) {
    throw std::runtime_error(std::string(name) +
                             " is not set although other variables of the same launcher are; set it, or start "
                             "the ranks with `slipway execute`, torchrun, srun or mpirun");
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < smallest || value > largest) {
    throw std::runtime_error(std::string(name) + "=" + *text + " is not an integer from " + std::to_string(smallest) +
                             " to " + std::to_string(largest));
  }
  return value;
}

void read_ranks(const EnvironmentMap& environment, const Launcher& names, RankEnvironment& result) {
  constexpr int most_ranks = 1 << 24;
  result.launcher = names.name;
  result.world = integer(environment, names.world, 1, most_ranks);
  result.rank = integer(environment, names.rank, 0, most_ranks);
  if (result.rank >= result.world) {
    throw std::runtime_error(std::string(names.rank) + "=" + std::to_string(result.rank) + " must be smaller than " +
                             names.world + "=" + std::to_string(result.world));
  }
  const bool given = find(environment, names.local_rank) != nullptr;
  result.local_rank = given ? integer(environment, names.local_rank, 0, most_ranks) : result.rank;
}

std::string default_host(const EnvironmentMap& environment, const RankEnvironment& ranks) {
  if (ranks.launcher == "srun") {
    const std::string* nodes = find(environment, "SLURM_NODELIST");
    if (!nodes) nodes = find(environment, "SLURM_JOB_NODELIST");
    if (nodes) return hosts_of_node_list(*nodes).front();
  }
  const std::string* local_size = find(environment, "OMPI_COMM_WORLD_LOCAL_SIZE");
  const bool one_host = ranks.launcher == "mpirun" && local_size && *local_size == std::to_string(ranks.world);
  if (ranks.world == 1 || one_host) return "127.0.0.1";
  throw std::runtime_error(
      "MASTER_ADDR is not set: set it to the host of rank 0 (and MASTER_PORT to a free port there)");
}

int default_port_of(const EnvironmentMap& environment, const RankEnvironment& ranks) {
  if (ranks.world == 1) return 0;
  if (ranks.launcher == "torchrun") {
    throw std::runtime_error("MASTER_PORT is not set: set it to a free port on the host of rank 0 (MASTER_ADDR)");
  }
  // Two Slurm jobs on one node should not meet on one port.
  const bool job = find(environment, "SLURM_JOB_ID") != nullptr;
  return default_port + (job ? integer(environment, "SLURM_JOB_ID", 0, 2147483647) % 1000 : 0);
}

std::string prefix_of(const EnvironmentMap& environment) {
  std::string prefix = "slipway";
  for (const char* name :
       {"SLIPWAY_RUN_ID", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "TORCHELASTIC_RESTART_COUNT"}) {
    if (const std::string* value = find(environment, name)) prefix += "/" + *value;
  }
  return prefix;
}

}  // namespace

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

EnvironmentMap process_environment() {
  EnvironmentMap result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) result[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return result;
}

RankEnvironment hosting(RankEnvironment process, int ranks) {
  process.hosted = ranks;
  process.rank *= ranks;
  process.world *= ranks;
  return process;
}

RankEnvironment rank_environment(const EnvironmentMap& environment) {
  RankEnvironment result;
  const Launcher* launcher = launcher_in([&](const char* name) {
    const std::string* text = find(environment, name);
    return text ? text->c_str() : nullptr;
  });
  // WORLD_SIZE alone is a half-set torchrun environment; SLURM_NTASKS alone is just an allocation's shell.
  const Launcher& torchrun = launchers[0];
  if (!launcher && find(environment, torchrun.world)) launcher = &torchrun;
  if (launcher) read_ranks(environment, *launcher, result);
  const std::string* host = find(environment, "MASTER_ADDR");
  result.store_host = host ? *host : default_host(environment, result);
  result.store_port = find(environment, "MASTER_PORT") ? integer(environment, "MASTER_PORT", 1, 65535)
                                                       : default_port_of(environment, result);
  const std::string* agent = find(environment, "TORCHELASTIC_USE_AGENT_STORE");
  result.agent_store = agent && (*agent == "True" || *agent == "true" || *agent == "1");
  result.store_prefix = prefix_of(environment);
  if (const std::string* token = find(environment, "SLIPWAY_TOKEN")) result.token = *token;
  return result;
}

}  // namespace slipway::exec
