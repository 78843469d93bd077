// How the batch grows and the loss falls: keys of `training`. Guarded by tests/command_growth_test.cpp.
#include "scenarios/language/load_cluster.h"
#include "scenarios/scenario.h"

namespace slipway {
namespace {

// Whether the key holds a value; noted as missing where it does not.
bool has(const Settings& settings, const char* key, GrowthChoice& growth) {
  if (settings.given(key)) return true;
  growth.missing_dynamics.emplace_back(key);
  return false;
}

void load_dynamics(const Settings& settings, GrowthChoice& growth) {
  LossDynamics& dynamics = growth.dynamics;
  const std::pair<const char*, double*> values[] = {
      {"training.loss.start", &dynamics.start},         {"training.loss.floor", &dynamics.floor},
      {"training.loss.offset", &dynamics.offset},       {"training.loss.exponent", &dynamics.exponent},
      {"training.noise.scale", &dynamics.noise_tokens}, {"training.noise.at_loss", &dynamics.noise_loss}};
  for (const auto& [key, value] : values)
    if (has(settings, key, growth)) *value = settings.number(key);
  if (settings.given("training.noise.exponent"))
    dynamics.noise_exponent = settings.number("training.noise.exponent");
  growth.noise_least = settings.number("training.noise.least");
  growth.noise_most = settings.number("training.noise.most");
}

}  // namespace

void load_growth(const Settings& settings, GrowthChoice& growth) {
  growth.given = settings.given("training.growth");
  if (settings.given("training.growth.rule"))
    growth.rule = static_cast<BatchRule>(settings.choice("training.growth.rule"));
  growth.largest = settings.integer("training.growth.largest");
  growth.sizes = static_cast<int>(settings.integer("training.growth.sizes"));
  growth.eta = settings.number("training.growth.eta");
  if (settings.given("training.growth.test_every"))
    growth.test_every = settings.integer("training.growth.test_every");
  growth.warmup = static_cast<double>(settings.integer("training.growth.warmup"));
  for (int i = 0; i < settings.length("training.growth.stages"); ++i) {
    const std::string path = "training.growth.stages." + std::to_string(i);
    if (!settings.good({path, path + ".from", path + ".batch"})) continue;
    growth.stages.push_back(
        {static_cast<double>(settings.integer(path + ".from")), settings.integer(path + ".batch")});
  }
  growth.target_loss = settings.number("training.target_loss");
  growth.source = settings.text("training.source");
  growth.fitted_batches = settings.integers("training.fitted.batches");
  growth.fitted_loss = settings.number("training.fitted.lowest_loss");
  load_dynamics(settings, growth);
}

}  // namespace slipway
