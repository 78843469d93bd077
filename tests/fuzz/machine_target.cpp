// A machine profile: what is read is written and read again.
#include "scenarios/language/profiles.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

void try_input(std::string_view input) {
  scenarios::Defects defects;
  const auto machine = scenarios::machine_from_yaml(std::string(input), "m.yaml", defects);
  scenarios::describe(defects);
  if (!machine || !defects.empty()) return;
  const std::string text = scenarios::machine_to_yaml(*machine);
  const auto again = scenarios::machine_from_yaml(text, "m.yaml", defects);
  promise(again && defects.empty(), "a written profile is refused: " + scenarios::describe(defects));
  promise(scenarios::machine_to_yaml(*again) == text, "a written profile reads as another one");
}

std::vector<std::string> seeds() {
  std::vector<std::string> texts = texts_below("models/machine/profiles", ".yaml");
  for (std::string& text : texts_below("scenarios/examples/machines", ".yaml")) texts.push_back(std::move(text));
  return texts;
}

const RegisterTarget target({"machine", try_input, seeds});

}  // namespace
}  // namespace slipway::test
