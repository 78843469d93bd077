#include "scenarios/trainers/published.h"

#include "scenarios/language/quantity.h"

namespace slipway::scenarios {

// The dictionary's table of published throughputs is by the name of the recipe's run.
std::optional<PublishedRun> published_run(const Reading& reading) {
  const Argument* name = reading.find("wandb-exp-name");
  if (name == nullptr || name->values.empty()) return std::nullopt;
  constexpr std::string_view table = "published TFLOP/s per GPU";
  const std::optional<std::string> rate = reading.dictionary().word(table, name->values[0]);
  const std::optional<double> tflops = rate ? quantity(*rate, Unit::pure) : std::nullopt;
  if (!tflops) return std::nullopt;
  return PublishedRun{*tflops, reading.dictionary().word(table, "source").value_or("")};
}

}  // namespace slipway::scenarios
