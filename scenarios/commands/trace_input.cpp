#include "scenarios/commands/trace_input.h"

#include <filesystem>
#include <fstream>

#include "scenarios/chrome_trace.h"
#include "scenarios/commands/command.h"

namespace slipway {

Trace trace_from(const std::string& path) {
  std::ifstream in(path);
  if (!in || std::filesystem::is_directory(path)) {
    throw UsageError("cannot read the trace " + path + "; give a file that simulate --trace or execute wrote");
  }
  try {
    Trace trace = read_chrome_trace(in, path);
    if (trace.records.empty()) {
      throw std::runtime_error(path + " has no tasks; give a file that simulate --trace or execute wrote");
    }
    return trace;
  } catch (const std::exception& error) {
    throw UsageError(error.what());
  }
}

}  // namespace slipway
