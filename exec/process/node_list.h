// Slurm's compressed host lists: comma-separated names, each with any number of [a-b,c] groups. Numbers keep their
// leading zeros.
// Guarded by tests/exec/arguments_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/namespaces.h"

namespace slipway::exec {

// "gpu[01-03,07]-a,login" → gpu01-a gpu02-a gpu03-a gpu07-a login. Throws std::runtime_error when malformed.
std::vector<std::string> hosts_of_node_list(std::string_view list);

}  // namespace slipway::exec
