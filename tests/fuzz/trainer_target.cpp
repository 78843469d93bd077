// A trainer's facts.
#include "scenarios/language/load_trainer.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

void try_input(std::string_view input) {
  scenarios::Defects defects;
  scenarios::trainer_from_yaml(std::string(input), "t.yaml", "t", defects);
  scenarios::trainer_from_yaml(std::string(input), "t.yaml", "t", defects, "0.12");
  scenarios::describe(defects);
}

constexpr const char* by_version = R"(versions: {"0.12": "0.12", "2": main}
arguments: megatron
facts:
  eager: {value: true, source: seen, until: "0.12"}
  hopper: [{value: flash2, source: x, until: "0.12"}, {value: best, source: y, since: "2"}]
)";

std::vector<std::string> seeds() {
  std::vector<std::string> texts = texts_below("models/trainers", ".yaml", 32'768);
  texts.emplace_back(by_version);
  return texts;
}

const RegisterTarget target({"trainer", try_input, seeds});

}  // namespace
}  // namespace slipway::test
