// A trainer's facts.
#include "scenarios/language/load_trainer.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

void try_input(std::string_view input) {
  scenarios::Defects defects;
  scenarios::trainer_from_yaml(std::string(input), "t.yaml", "t", defects);
  scenarios::describe(defects);
}

std::vector<std::string> seeds() { return texts_below("models/trainers", ".yaml", 32'768); }

const RegisterTarget target({"trainer", try_input, seeds});

}  // namespace
}  // namespace slipway::test
