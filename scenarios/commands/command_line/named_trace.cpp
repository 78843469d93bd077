#include "scenarios/commands/command_line/named_trace.h"

#include <exception>
#include <fstream>
#include <stdexcept>

#include "scenarios/files/files.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/chrome_trace.h"

namespace slipway::scenarios {

Trace trace_from(const std::string& path) {
  if (const std::string reason = unreadable(path); !reason.empty())
    throw UsageError("cannot read the trace " + path + ": " + reason +
                     "; give a file that simulate --trace or execute wrote");
  std::ifstream in(path);
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

}  // namespace slipway::scenarios
