// A Hugging Face config.json, up to the model that a scenario makes of it.
#include "models/model/parameters.h"
#include "scenarios/language/scenario.h"
#include "scenarios/predict/load_scenario.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

constexpr const char* scenario =
    "model: {config: config.json}\n"
    "cluster: {machine: h100-80gb, nodes: 1, gpus_per_node: 8}\n"
    "layout: {tensor: 1}\n"
    "schedule: {name: gpipe, micro_batch: 1, global_batch: 8}\n";

void try_input(std::string_view input) {
  static const Scratch scratch;
  scratch.write("config.json", input);
  const scenarios::LoadResult loaded = scenarios::load_scenario_text(scenario, scratch.path("scenario.yaml"));
  scenarios::describe(loaded.errors);
  if (loaded.errors.empty())
    promise(models::parameter_count(loaded.scenario.step.model) > 0, "a model of no parameters");
}

std::vector<std::string> seeds() { return texts_below("tests/data/hugging_face", ".json"); }

const RegisterTarget target({"config", try_input, seeds});

}  // namespace
}  // namespace slipway::test
