// The answer of `slipway goodput`: days of training with the simulated step on nodes that fail. Simulated histories
// stand beside the closed form and the best checkpoint interval. Guarded by tests/scenarios/goodput_command_test.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/training/goodput.h"
#include "scenarios/language/scenario.h"
#include "scenarios/predict/answer_keys.h"
#include "scenarios/predict/step_interval.h"

namespace slipway::scenarios {

// Means over histories, as shares of the time.
struct MeanGoodput {
  int histories = 0;
  double share = 0;
  std::optional<double> error;  // standard error of `share`; unset for one history
  double low = 0, high = 0;     // 90 of 100 histories have a share between them; of one history, its share
  double checkpoint = 0, lost = 0, restart = 0, waiting = 0;
  double failures = 0;                   // per history
  std::optional<double> failures_error;  // its standard error
};
struct IntervalRow {
  std::int64_t steps = 0;
  double interval_s = 0;
  MeanGoodput simulated;
  std::optional<double> daly_share;  // with random failures
};

struct GoodputAnswer {
  FaultyTraining training;
  double horizon_s = 0, tokens_per_s = 0;
  std::optional<StepInterval> step_interval;  // of training.step_s
  bool interval_is_given = false;
  IntervalRow own;                  // at the scenario's interval, else at Daly's
  std::vector<IntervalRow> around;  // shorter and longer intervals, ascending, own among them
  // Set for random failures; 0 where a checkpoint costs nothing.
  std::optional<double> daly_interval_s, young_interval_s;
};

// The scenario's faults with a step of `step_s`. Throws UsageError with the missing keys.
FaultyTraining training_of(const Scenario& scenario, double step_s);
// Throws UsageError where the simulation of all histories at all intervals would take much more than a minute. A mean
// time between failures of a second is a slip of its unit.
void check_histories(const FaultyTraining& training, double days, int histories);
// One history where all failures are planned; otherwise `histories` of them, with seeds from run.seed on.
// `progress` is called with the number of simulated histories and the number of all.
GoodputAnswer goodput_of(const PreparedStep& prepared, double step_s, double days, int histories,
                         const std::function<void(int done, int all)>& progress);

// 90 of 100 trainings are expected to make as many tokens a day, by the interval of the step and that of the share of
// histories, which do not depend on each other. Unset where the step has no interval.
struct TokensPerDay {
  double low = 0, high = 0;
};
std::optional<TokensPerDay> tokens_per_day_interval(const GoodputAnswer& answer);
// "90 % interval: 12.0 G to 15.1 G"
std::string tokens_note(const TokensPerDay& tokens);
// "90 % of histories: 91.2 % to 94.0 %"
std::string histories_text(const MeanGoodput& mean);

// The table of intervals, headings first.
std::vector<std::vector<std::string>> interval_rows(const GoodputAnswer& answer);
std::string goodput_text(const Scenario& scenario, const GoodputAnswer& answer);
std::string goodput_json(const Scenario& scenario, const GoodputAnswer& answer);

// The keys of its --json.
std::vector<AnswerKeys> goodput_answers();

}  // namespace slipway::scenarios
