// A scenario's YAML: what loads without an error keeps its meaning when it is written out, and a small step of it can be
// lowered to a bundle that reads back.
#include <sstream>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/load_scenario.h"
#include "schedules/bundle/bundle.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

// Relative paths of the examples lead from here.
constexpr const char* path = SLIPWAY_SOURCE_DIR "/scenarios/examples/fuzzed.yaml";

// So that an execution takes milliseconds.
bool is_small(const scenarios::Scenario& scenario) {
  const schedules::Step& step = scenario.step;
  const double passes = static_cast<double>(schedules::rank_count(step.layout)) * step.layout.chunks * step.slices *
                        schedules::micro_batches_of(step);
  return passes <= 128 && models::layer_count(step.model) <= 64;
}

void lower_and_read(const scenarios::Scenario& scenario) {
  schedules::Bundle bundle;
  bundle.scenario = scenario.name;
  bundle.graph = schedules::lower(scenario.step);
  bundle.run = scenario.run;
  schedules::set_global_order(bundle.graph, schedules::Durations(std::vector<double>(bundle.graph.tasks.size(), 1.0)));
  std::stringstream text;
  schedules::write_bundle(text, bundle);
  try {
    schedules::read_bundle(text, "run.slip");
  } catch (const std::runtime_error& refused) {
    throw BrokenPromise(std::string("the bundle of a sound scenario is refused: ") + refused.what());
  }
}

void try_input(std::string_view input) {
  const scenarios::LoadResult loaded = scenarios::load_scenario_text(std::string(input), path);
  if (!loaded.errors.empty()) {
    scenarios::describe(loaded.errors);
    return;
  }
  const scenarios::LoadResult again = scenarios::load_scenario_text(loaded.scenario.resolved, path);
  promise(again.errors.empty(), "the resolved scenario is refused: " + scenarios::describe(again.errors));
  promise(again.scenario.resolved == loaded.scenario.resolved, "the resolved scenario resolves to another one");
  if (is_small(loaded.scenario)) lower_and_read(loaded.scenario);
}

std::vector<std::string> seeds() {
  std::vector<std::string> texts = texts_below("scenarios/examples", ".yaml");
  for (std::string& text : texts_below("scenarios/studies", ".yaml", 2048)) texts.push_back(std::move(text));
  return texts;
}

const RegisterTarget target({"scenario", try_input, seeds});

}  // namespace
}  // namespace slipway::test
