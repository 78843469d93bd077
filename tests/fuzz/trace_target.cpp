// A trace of Slipway: what is read is written and read again, and is split into phases.
#include <algorithm>
#include <sstream>

#include "scenarios/commands/kineto/step_phases.h"
#include "scenarios/predict/chrome_trace.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

std::string written(const models::Trace& trace) {
  std::ostringstream out;
  scenarios::write_chrome_trace(out, trace);
  return out.str();
}

void try_input(std::string_view input) {
  std::istringstream in{std::string(input)};
  const models::Trace trace = scenarios::read_chrome_trace(in, "t.json");
  const std::string text = written(trace);
  std::istringstream again(text);
  try {
    promise(written(scenarios::read_chrome_trace(again, "t.json")) == text, "a written trace reads as another one");
  } catch (const std::runtime_error& refused) {
    throw BrokenPromise(std::string("a written trace is refused: ") + refused.what());
  }
  try {
    for (int rank = 0; rank < std::min(trace.ranks, 2); ++rank) scenarios::phases_of(trace, rank);
  } catch (const std::invalid_argument&) {  // a rank without compute tasks
  }
}

std::vector<std::string> seeds() {
  models::Trace trace;
  trace.engine = "simgrid", trace.scenario = "tiny", trace.summary = "{layout: {pipeline: 2}}";
  trace.ranks = 2, trace.steps = 2;
  for (int step = 0; step < 2; ++step)
    for (int rank = 0; rank < 2; ++rank) {
      const double start = step * 1e-2 + rank * 1e-3;
      trace.records.push_back({step, rank, "compute", "0F0", "forward", start, start + 2e-3, 0, 1e6, 2e6});
      trace.records.push_back({step, rank, "compute", "0B0", "backward", start + 3e-3, start + 6e-3, 0, 2e6, 3e6});
      trace.records.push_back(
          {step, rank, "dp", "0.reduce", "all-reduce", start + 6e-3, start + 8e-3, 1e-3, 0, 4e6, 1, 5e6, 6e6});
    }
  std::vector<std::string> texts{written(trace)};
  trace.losses = {{0, 8, 5.5, 0.1, 8, 1.0, 2.0, 5.6}, {1, 16, 5.25}};
  trace.peak_bytes = {1e9, 2e9};
  trace.step_low_s = 0.009, trace.step_high_s = 0.011;
  trace.window = 2;
  texts.push_back(written(trace));
  return texts;
}

const RegisterTarget target({"trace", try_input, seeds});

}  // namespace
}  // namespace slipway::test
