// A scenario, read and checked: model × cluster × layout × schedule × training.
//
//   file ──► tree with lines (document.h) ──► --set ──► table of keys (keys.h, settings.h)
//        ──► model, cluster (profiles.h, load_*.cpp) ──► combinations (check_scenario.h) ──► Scenario
//
// Invariants: a scenario without errors can be lowered; every mistake is one error that names file, line,
// key, what is allowed and what to do; all of a file's mistakes are reported at once; nothing is written.
// Guarded by tests/scenarios/scenario_load_test.cpp (good input, resolved text) and
// tests/scenarios/scenario_errors_test.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/fit/pooled_fit.h"
#include "models/machine/priced_cluster.h"
#include "models/memory/memory_estimate.h"
#include "models/training/goodput.h"
#include "models/training/loss_dynamics.h"
#include "schedules/bundle/bundle.h"
#include "schedules/step/step.h"

namespace slipway::scenarios {

// Failures of nodes and recovery of the training (`slipway goodput`).
struct FaultModel {
  FaultyTraining training;                // what steps and nodes there are is known later (goodput_report.h)
  double checkpoint_interval = 0;         // seconds; 0: run.checkpoint_steps, else the best by Daly 2006
  std::optional<double> checkpoint_cost;  // seconds
};

// Growth of the batch from schedule.global_batch, and the curve of the loss (`slipway growth`). 0: not given.
struct GrowthChoice {
  bool given = false;  // training.growth
  std::optional<BatchRule> rule;
  std::int64_t largest = 0;  // sequences
  int sizes = 0;             // different batches; 0: all that can be run
  double eta = 0;
  std::int64_t test_every = 1;
  double warmup = 0;  // sequences
  std::vector<BatchStage> stages;
  double target_loss = 0;
  LossDynamics dynamics;
  std::string source;                         // of the dynamics
  std::vector<int> fitted_batches;            // least and most, sequences; empty: not given
  double fitted_loss = 0;                     // the lowest
  std::vector<std::string> missing_dynamics;  // keys that `dynamics` needs and that are not given
  double noise_least = 0, noise_most = 0;     // tokens
};

struct Scenario {
  std::string name;  // file name without extension
  std::string path;
  std::vector<std::string> files;          // all that was read: the scenario and the files it names
  std::vector<std::string> machine_files;  // one per node group; empty: built-in
  Step step;
  int vocab_multiple = 0;  // the step's model has a vocabulary padded to a multiple of it × tensor; 0: as given
  Cluster cluster;
  TrainerFacts trainer;                              // of cluster.trainer
  bool names_trainer = false;                        // else generic is meant
  std::string trainer_file;                          // as cluster.trainer names it; empty: built-in
  std::string trainer_version;                       // that it names; empty: the last is meant
  MemoryConstants memory;                            // with the trainer's facts and deviations
  std::string constants_file;                        // as cluster.constants names it; empty: built-in
  std::shared_ptr<const PooledConstants> constants;  // of a step, all trainers' and machines'; null: the built-in ones
  ConstantsOn step_constants;                        // instead of them, where set
  Run run;
  FaultModel faults;
  GrowthChoice growth;
  double tokens = 0;  // run.tokens: planned training length; 0 = not given
  // The YAML after overrides with every default and derived value written out, for provenance. It loads to
  // the same scenario from the same folder: relative paths stay as they were written.
  std::string resolved;
  bool own_fabrics = false;  // cluster.fabrics was given; else they follow from the machines
  std::string summary;       // the same on one line (Trace::summary)
};

// One defect of a scenario: file, line, key, what is wrong, what is allowed, what to do.
struct ScenarioError {
  std::string file;
  int line = 0;         // 1-based; 0 = from --set (file is then the option's text) or the file as a whole
  std::string key;      // "layout.tensor"
  std::string message;  // what is wrong and what is allowed
  std::string remedy;   // what to do
};

struct LoadResult {
  Scenario scenario;
  std::vector<ScenarioError> errors;  // all of them at once; scenario is meaningful only when empty
};

// "file:line: key: message; remedy", one a line.
std::string describe(const std::vector<ScenarioError>& errors);

// Sets what training.growth and the trainer's habits mean for the step: norms of workers' gradients, what communication
// overlaps. After loading, and again when one of these changed.
void derive_step(Scenario& scenario);

// The trainer's default where the scenario, or a row of published runs, states nothing. Unfused kernels cannot go
// around (schedules/rules/rules.cpp). The exchange is that of any context degree, so that `plan` may raise it.
ContextExchange usual_exchange(const Scenario& scenario);
SplitKind usual_split(const Scenario& scenario);
// The dtype in which gradients are reduced, of a run that keeps them in `kept`.
Dtype reduced_in(const Scenario& scenario, Dtype kept);
// Without run.gradient_dtype. Gradients are kept in float32, unless the trainer is known to keep them as run.dtype.
Dtype usual_gradient_dtype(const Scenario& scenario);

// The constants of a step of the scenario's trainer on a machine.
StepConstants constants_on(const Scenario& scenario, const Machine& machine);
const PooledConstants& constants_of(const Scenario& scenario);

// The scenario's cluster with its prices: the trainer's facts and constants (models/machine/priced_cluster.h).
PricedCluster priced_cluster(const Scenario& scenario);

}  // namespace slipway::scenarios
