// Can every batch of `training.growth` be run by this layout and schedule, and do its numbers go together?
// Guarded by tests/growth_errors_test.cpp.
#include <algorithm>

#include "scenarios/language/check_scenario.h"
#include "scenarios/language/rungs.h"

namespace slipway {
namespace {

std::string str(std::int64_t number) { return std::to_string(number); }

// The rungs next to a batch that is none: "4096 or 4352".
std::string nearest_rungs(const std::vector<std::int64_t>& rungs, std::int64_t batch) {
  const auto above = std::lower_bound(rungs.begin(), rungs.end(), batch);
  std::string text = above == rungs.begin() ? "" : str(*(above - 1));
  if (above != rungs.end()) text += (text.empty() ? "" : " or ") + str(*above);
  return text;
}

void check_batch(Settings& settings, const Scenario& scenario, const std::string& key, std::int64_t batch) {
  const std::int64_t first = scenario.schedule.global_batch, unit = step_cut(scenario).unit();
  if (batch < first) {
    settings.refuse(key,
                    "a batch does not shrink, and " + str(batch) + " is below schedule.global_batch = " +
                        str(first) + ", the first; allowed: from " + str(first) + " on",
                    "raise it, or lower schedule.global_batch");
    return;
  }
  if (batch / unit > most_micro_batches) {
    settings.refuse(key,
                    "that is " + str(batch / unit) + " micro-batches per pipeline; allowed: up to " +
                        str(most_micro_batches),
                    "lower it, or raise schedule.micro_batch");
    return;
  }
  const StepCut cut = step_cut(scenario);
  if (is_rung(cut, batch)) return;
  // As far around as a schedule that wants whole rounds of the pipeline has its next one.
  const std::int64_t round = unit * 4 * std::max(1, scenario.layout.pipeline);
  const std::vector<std::int64_t> rungs = rungs_between(cut, std::max(first, batch - round), batch + round);
  settings.refuse(key,
                  str(batch) + " sequences cannot be a step of micro_batch " +
                      str(scenario.schedule.micro_batch) + " x data " + str(scenario.layout.data) + " = " +
                      str(unit) + " in whole micro-batches of " + scenario.schedule.name +
                      "; allowed: such as " + nearest_rungs(rungs, batch),
                  "set it to " + nearest_rungs(rungs, batch));
}

void check_stages_of_growth(Settings& settings, const Scenario& scenario) {
  const std::vector<BatchStage>& stages = scenario.growth.stages;
  if (static_cast<int>(stages.size()) != settings.length("training.growth.stages")) return;  // told already
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::string path = "training.growth.stages." + std::to_string(i);
    if (scenario.growth.largest > 0 && stages[i].batch > scenario.growth.largest)
      settings.refuse(path + ".batch",
                      str(stages[i].batch) + " is above training.growth.largest = " +
                          str(scenario.growth.largest) + "; allowed: up to that",
                      "lower it, or raise training.growth.largest");
    else
      check_batch(settings, scenario, path + ".batch", stages[i].batch);
    if (i == 0) continue;
    if (stages[i].from <= stages[i - 1].from || stages[i].batch < stages[i - 1].batch)
      settings.refuse(
          path,
          "stages follow each other with larger batches; allowed: `from` above that of the stage before, "
          "`batch` not below",
          "put the stages in order");
  }
}

void check_rule(Settings& settings, const Scenario& scenario) {
  if (scenario.schedule.actions)
    settings.refuse("training.growth",
                    "schedule.csv holds the actions of one batch; allowed: a named schedule",
                    "remove schedule.csv or training.growth");
  if (scenario.schedule.fill != FillChoice::none)
    settings.refuse(
        "training.growth",
        "work in the bubbles is placed for one batch; allowed: schedule.fill none and run.optimizer adamw",
        "remove training.growth, or schedule.fill and run.optimizer");
}

// What the layout does with gradients is known when the schedule is.
void check_norm_test(Settings& settings, const Scenario& scenario) {
  if (scenario.growth.rule != BatchRule::norm_test) return;
  const std::string reason = why_no_norm_test(step_cut(scenario));
  if (reason.empty()) return;
  const std::size_t remedy = reason.rfind("; ");
  settings.refuse("training.growth.rule",
                  "the norm test compares the gradients of data parallel workers, but " + reason.substr(0, remedy) +
                      "; allowed then: constant, linear, stages",
                  "choose one of these, or " + reason.substr(remedy + 2));
}

void check_fitted(Settings& settings, const GrowthChoice& growth) {
  const std::vector<int>& batches = growth.fitted_batches;
  if (!settings.given("training.fitted.batches") || (batches.size() == 2 && batches[0] <= batches[1]))
    return;
  settings.refuse("training.fitted.batches",
                  "a range has two ends; allowed: two numbers, the least and the most sequences per step",
                  "write such as [2048, 6144]");
}

// The first mistake alone: the others may follow from it.
void check_losses(Settings& settings, const GrowthChoice& growth) {
  const LossDynamics& loss = growth.dynamics;
  const bool start = settings.given("training.loss.start"), floor = settings.given("training.loss.floor");
  const double target = growth.target_loss;
  if (floor && start && loss.floor >= loss.start)
    settings.refuse("training.loss.floor",
                    "a loss falls from its start, " + number_text(loss.start) + "; allowed: below that",
                    "lower training.loss.floor or raise training.loss.start");
  else if (target > 0 && floor && target <= loss.floor)
    settings.refuse(
        "training.target_loss",
        "no training gets to training.loss.floor = " + number_text(loss.floor) + "; allowed: above that",
        "raise training.target_loss");
  else if (target > 0 && start && target >= loss.start)
    settings.refuse(
        "training.target_loss",
        "training starts at training.loss.start = " + number_text(loss.start) + "; allowed: below that",
        "lower training.target_loss");
}

void check_noise(Settings& settings, const GrowthChoice& growth) {
  const double scale = growth.dynamics.noise_tokens;
  const bool above = growth.noise_least > scale, below = growth.noise_most > 0 && growth.noise_most < scale;
  if (scale <= 0 || (!above && !below)) return;
  settings.refuse(
      "training.noise",
      "least and most are around scale = " + number_text(scale) + "; allowed: least <= scale <= most",
      "correct training.noise.least or training.noise.most");
}

}  // namespace

void check_growth(Settings& settings, const Scenario& scenario, bool schedule_is_sound) {
  if (!settings.given("training")) return;
  check_losses(settings, scenario.growth);
  check_noise(settings, scenario.growth);
  check_fitted(settings, scenario.growth);
  if (!settings.given("training.growth")) return;
  check_rule(settings, scenario);
  // Batches are judged by a layout and schedule that can be.
  if (!schedule_is_sound || scenario.schedule.actions) return;
  check_norm_test(settings, scenario);
  if (settings.given("training.growth.largest"))
    check_batch(settings, scenario, "training.growth.largest", scenario.growth.largest);
  check_stages_of_growth(settings, scenario);
}

}  // namespace slipway
