// PyTorch's schedule CSV: what is read is written and read again, and a scenario that names it checks its actions.
#include <algorithm>
#include <sstream>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/load_scenario.h"
#include "schedules/catalogue/schedule_csv.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

void read_and_write(std::string_view input) {
  std::istringstream in{std::string(input)};
  const schedules::ActionLists lists = schedules::read_schedule_csv(in, "s.csv");
  std::stringstream text;
  schedules::write_schedule_csv(text, lists);
  promise(schedules::read_schedule_csv(text, "s.csv") == lists, "a written schedule reads as another one");
}

void load_as_schedule(std::string_view input) {
  static const Scratch scratch;
  scratch.write("s.csv", input);
  const auto rows = std::min<std::ptrdiff_t>(8, 1 + std::count(input.begin(), input.end(), '\n'));
  const std::string scenario =
      "model: {family: llama, layers: 64, hidden: 64, ffn: 160, heads: 4, vocab: 256, sequence: 64}\n"
      "cluster: {machine: h100-80gb, nodes: 1, gpus_per_node: " +
      std::to_string(rows) + "}\nlayout: {pipeline: " + std::to_string(rows) +
      "}\nschedule: {csv: s.csv, micro_batch: 1, global_batch: 4}\n";
  scenarios::describe(scenarios::load_scenario_text(scenario, scratch.path("scenario.yaml")).errors);
}

void try_input(std::string_view input) {
  try {
    read_and_write(input);
  } catch (const std::invalid_argument&) {
    return;  // the reader's own way to refuse
  }
  load_as_schedule(input);
}

std::vector<std::string> seeds() { return texts_below("tests/data/pytorch_schedules", ".csv"); }

const RegisterTarget target({"schedule_csv", try_input, seeds});

}  // namespace
}  // namespace slipway::test
