#include "scenarios/predict/scenario_of_trace.h"

#include <filesystem>

#include "scenarios/predict/load_scenario.h"

namespace slipway::scenarios {

LoadResult scenario_of_trace(const Trace& trace, const std::string& beside) {
  const std::filesystem::path folder = std::filesystem::path(beside).parent_path();
  return load_scenario_text(trace.summary, (folder / (trace.scenario + ".yaml")).string());
}

}  // namespace slipway::scenarios
