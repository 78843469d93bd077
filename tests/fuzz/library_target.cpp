// libslipway's input: the text of a scenario, and a schedule's lists of whatever numbers. Every text either has defects or
// resolves to a text without; no list of actions brings anything down.
#include "slipway/error.h"
#include "slipway/scenario.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

// The bytes as actions, four for each, on one list after the other.
ActionLists lists_of(std::string_view bytes, int ranks) {
  ActionLists lists(static_cast<std::size_t>(ranks));
  for (std::size_t at = 0; at + 4 <= bytes.size() && at < 4096; at += 4)
    lists[static_cast<unsigned char>(bytes[at]) % lists.size()].push_back(
        {static_cast<Pass>(bytes[at + 1] & 3), static_cast<signed char>(bytes[at + 2]),
         static_cast<signed char>(bytes[at + 3]), (bytes[at + 1] & 4) != 0});
  return lists;
}

void try_input(std::string_view input) {
  const Scenario scenario =
      Scenario::from_text(std::string(input), SLIPWAY_SOURCE_DIR "/scenarios/examples/fuzzed.yaml");
  const bool sound = scenario.defects().empty();
  try {
    const Scenario again =
        Scenario::from_text(scenario.resolved(), SLIPWAY_SOURCE_DIR "/scenarios/examples/again.yaml");
    promise(sound, "a scenario with defects was resolved");
    promise(again.defects().empty(), "the resolved scenario has defects");
  } catch (const Refusal& refusal) {
    promise(!sound, std::string("a scenario without defects was refused: ") + refusal.what());
    promise(!refusal.defects().empty(), "a refusal without a defect");
  }
  if (sound)
    scenario.with_schedule({"fuzzed", [input](const Shape& shape) { return lists_of(input, shape.pipeline); }})
        .defects();
}

std::vector<std::string> seeds() { return texts_below("scenarios/examples", ".yaml"); }

const RegisterTarget target({"library", try_input, seeds});

}  // namespace
}  // namespace slipway::test
