// The folder of the running program: the rank program and the demo's pages lie there.
// Guarded by tests/scenarios/demo_command_test.cpp.
#pragma once

#include <filesystem>

namespace slipway::scenarios {

// Throws std::filesystem::filesystem_error where /proc is not mounted.
inline std::filesystem::path program_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

}  // namespace slipway::scenarios
