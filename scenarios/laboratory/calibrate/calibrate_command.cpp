#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/named_trace.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/compare/batch_report.h"
#include "scenarios/commands/execute/rank_program.h"
#include "scenarios/files/files.h"
#include "scenarios/files/output_file.h"
#include "scenarios/laboratory/calibrate/calibrate_runs.h"
#include "scenarios/laboratory/calibrate/calibration_report.h"
#include "scenarios/laboratory/calibrate/measure_machine.h"
#include "scenarios/laboratory/calibrate/measured_kernels.h"
#include "scenarios/laboratory/calibrate/profiler_traces.h"
#include "scenarios/laboratory/calibrate/trace_observations.h"
#include "scenarios/language/profiles.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/scenario_of_trace.h"
#include "schedules/lower/lowering.h"

namespace slipway::scenarios {
namespace {

// The least weight with the gain. Tried on scenarios/demo/demo.yaml with one trace on two CPU cores (2026-11-21):
// the median error of rows left out of the fit was 7.5, 7.3, 6.6, 6.5 and 6.8 % at weights 1, 2, 4, 8 and 16.
// The predicted step time of a layout outside the trace moved by 0.9 % in all.
constexpr double trace_weight = 4;

CommandOptions calibrate_options() {
  CommandOptions options(
      "calibrate ([SCENARIO] (--measure | --measured FILE | --trace FILE | --kineto FILE)... | --runs TABLE.csv) -o "
      "FILE "
      "[options]",
      "Fits the scenario's machine profile to micro-benchmarks, to traces of executed runs and to traces of PyTorch's\n"
      "profiler, prints every parameter with its interval, and writes the profile. Or adds measured runs of yours\n"
      "(--runs) to what published runs say of the constants of a step, and writes a file for cluster.constants.",
      "slipway calibrate scenarios/examples/tiny-llama-cpu.yaml --measure -o machine.yaml");
  options.positional("scenario file (YAML)", 0, 1)
      .value("output", "FILE", "the machine profile, or the constants, to write; required")
      .letter('o')
      .value("runs", "TABLE.csv",
             "fit the constants of a step to these measured runs, one to a hundred; without a scenario")
      .value(
          "noise", "SHARE",
          "with --runs: by how much a run differs from the next of its settings, 0.03 for 3 %; without it, estimated")
      .flag("measure", "run the micro-benchmarks here, on all of the machine's ranks at once")
      .value("rank-program", "PATH", "the program that measures (SLIPWAY_RANK, or slipway-rank beside slipway)")
      .values("measured", "FILE", "read what `slipway-rank --measure` wrote, here or elsewhere; may be repeated")
      .values("trace", "FILE", "take the trace of an executed run on this machine, in any layout; may be repeated")
      .values("kineto", "FILE",
              "read a trace of PyTorch's profiler (JSON or .json.gz), one of each rank; may be repeated")
      .value("machine", "NAME|FILE",
             "with --kineto and without a scenario: the machine profile to start from; else that of the trace's GPU")
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .notes(
          "The machine is that of the scenario's first node group. On a CPU machine (cores > 0) peak_flops "
          "becomes\n"
          "the best measured rate. On GPUs it stays, and the constants of kernels are fitted, as of the built-in\n"
          "machines (`slipway kernels`): by them a trainer's steps are priced.\n"
          "\n"
          "A trace for --kineto needs shapes: torch.profiler.profile(activities=[CPU, CUDA], record_shapes=True) and\n"
          "export_chrome_trace. Matrix products, attention, NCCL collectives, element-wise kernels, copies and the\n"
          "host's launches are read from it. Without a scenario the machine is the built-in one of the trace's GPU.\n"
          "\n"
          "A table for --runs has the columns of the format slipway (`slipway list tables`), or of any table\n"
          "there. Trainer and machine are built-in ones. The runs move what their trainer on their cluster\n"
          "has of its own, and less what all have in common. Rows without a step time are noted and left out.");
  return options;
}

// The machine to fit, and the number format of its steps.
struct Subject {
  Machine machine;
  Dtype dtype = Dtype::bfloat16;
};

// All measurements, with what the profile states about them.
struct Evidence {
  std::vector<Observation> observations;
  std::array<double, formats> best_rates{};  // by dtype; of GEMMs
  double best_task_rate = 0;
  std::vector<Measurement> measurements;
  std::size_t traces = 0, profiler_traces = 0;
};

// Throws UsageError for a file without measurements.
std::vector<Measurement> measurements_in(const std::string& path) {
  if (const std::string reason = unreadable(path); !reason.empty())
    throw UsageError("cannot read " + path + ": " + reason + "; give a file that `slipway-rank --measure` wrote");
  std::ifstream file(path);
  try {
    const std::vector<Measurement> all = read_measurements(file, path);
    if (all.empty()) throw std::runtime_error(path + ": there is no measurement in it");
    return all;
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string(error.what()) + "; give a file that `slipway-rank --measure` wrote");
  }
}

// If the run's batch grew: only the steps of the scenario's own batch.
Trace of_scenario(Trace trace, const Scenario& scenario, const std::string& path) {
  if (batches_in(trace).empty()) return trace;
  try {
    return steps_of_batch(trace, scenario.step.global_batch);
  } catch (const std::invalid_argument& error) {
    throw UsageError(path + ": " + error.what() + "; name one of them, with --set schedule.global_batch=...");
  }
}

// A trace says what it executed, so runs of several layouts fit one machine. `scenario` where it does not say or its
// files are gone, and where its batch grew: then `scenario` says which of the batches is meant.
std::vector<Observation> observations_in(const Trace& trace, const Scenario& scenario, const std::string& path) {
  std::optional<LoadResult> own;
  if (!trace.summary.empty() && batches_in(trace).empty()) own = scenario_of_trace(trace, scenario.path);
  const Scenario& executed = own && own->errors.empty() ? own->scenario : scenario;
  try {
    return observations_of(of_scenario(trace, executed, path), std::make_shared<const TaskGraph>(lower(executed.step)),
                           executed.cluster, path);
  } catch (const std::runtime_error& error) {
    const std::string unusable =
        own && !own->errors.empty()
            ? "\nwhat the trace says that it executed cannot be used here:\n" + describe(own->errors)
            : "";
    throw UsageError(error.what() + unusable);
  }
}

void refuse_unmeasurable(const MeasureOptions& measure) {
  if (!std::filesystem::exists(measure.rank_program))
    throw UsageError("there is no " + measure.rank_program +
                     "; build slipway-rank (it needs LibTorch), or give --rank-program PATH");
  const Dtype dtype = measure.dtype;
  const bool on_gpus = computes_on_gpus(measure.rank_program);
  if (dtype == Dtype::float32 || dtype == Dtype::float64 || (on_gpus && dtype == Dtype::bfloat16)) return;
  throw UsageError(std::string("micro-benchmarks run in float32 or float64") + (on_gpus ? " or bfloat16" : "") +
                   (on_gpus ? "" : " on this machine's CPU (" + measure.rank_program + ")") + ", but run.dtype is " +
                   name_of(dtype) +
                   "; give --set run.dtype=" + (on_gpus ? "bfloat16, or float32 for a GPU that has none" : "float32") +
                   (on_gpus ? "" : ", or --rank-program slipway-rank-cuda on a machine with GPUs"));
}

// A file does not say where its ranks were: on the scenario's nodes, in order. So a message of more ranks than a node has
// is one between nodes.
std::vector<Measurement> placed(std::vector<Measurement> measurements, const Cluster& cluster) {
  const NodeGroup& first = cluster.groups.front();
  const int per_node = first.gpus_per_node;
  const bool alike =
      std::ranges::all_of(cluster.groups, [&](const NodeGroup& group) { return group.gpus_per_node == per_node; });
  if (!alike || node_count(cluster) < 2) return measurements;
  for (Measurement& each : measurements) {
    if (members_of(each) <= per_node) continue;
    each.fields.emplace("link", "network");
    if (are_processors(cluster.groups)) each.fields.emplace("per_node", std::to_string(per_node));
  }
  return measurements;
}

std::vector<Measurement> measurements_of(const CommandOptions& options, const std::optional<Scenario>& scenario,
                                         std::vector<Measurement> all, std::ostream& err) {
  for (const std::string& path : options.all("measured")) {
    std::vector<Measurement> more = measurements_in(path);
    if (scenario) more = placed(std::move(more), scenario->cluster);
    all.insert(all.end(), more.begin(), more.end());
  }
  if (options.has("measure")) {
    const MeasureOptions measure{options.has("rank-program") ? *options.text("rank-program") : rank_program(),
                                 scenario->cluster.groups.front().gpus_per_node, scenario->step.dtype};
    refuse_unmeasurable(measure);
    err << "measuring with " << counted(measure.ranks, "rank") << " at once ...\n";
    const std::vector<Measurement> more = measure_machine(measure, err);
    all.insert(all.end(), more.begin(), more.end());
  }
  return merged(std::move(all));
}

// Traces weigh trace_weight times as much as all micro-benchmarks of a group, shared out by the time of each kind.
// A trace has few kinds of work, and it is the target of the prediction. The hundred micro-benchmarks separate
// effects that always come together in a trace.
void balance(std::vector<Observation>& observations, std::size_t first_from_trace) {
  for (const auto group : all_groups) {
    double benchmarks = 0, rows = 0, seconds = 0;
    for (std::size_t i = 0; i < observations.size(); ++i) {
      if (observations[i].group != group) continue;
      (i < first_from_trace ? benchmarks : rows) += 1;
      if (i >= first_from_trace) seconds += observations[i].weight;
    }
    const double total = benchmarks > 0 ? trace_weight * benchmarks : rows;
    for (std::size_t i = first_from_trace; i < observations.size(); ++i) {
      if (observations[i].group == group) observations[i].weight *= total / seconds;
    }
  }
}

Evidence evidence_of(const CommandOptions& options, const std::optional<Scenario>& scenario,
                     const KinetoEvidence& profiled, std::ostream& err) {
  Evidence evidence;
  // Traces first: a wrong trace is found before minutes of measuring.
  std::vector<Observation> from_traces;
  for (const std::string& path : options.all("trace")) {
    const Trace trace = trace_from(path);
    const std::vector<Observation> more = observations_in(trace, *scenario, path);
    from_traces.insert(from_traces.end(), more.begin(), more.end());
    evidence.best_task_rate = std::max(evidence.best_task_rate, best_task_rate(trace));
    ++evidence.traces;
  }
  evidence.profiler_traces = options.all("kineto").size();
  evidence.measurements = measurements_of(options, scenario, profiled.measurements, err);
  evidence.best_rates = best_gemm_rates(evidence.measurements);
  evidence.observations = observations_of(evidence.measurements);
  const std::size_t first_from_trace = evidence.observations.size();
  evidence.observations.insert(evidence.observations.end(), from_traces.begin(), from_traces.end());
  balance(evidence.observations, first_from_trace);
  return evidence;
}

// The best measured rate replaces a peak that is not from a data sheet. Peaks of dtypes that were not measured are
// removed, because efficiencies are now shares of a measured peak. Returns how the peak was found.
std::string set_peaks(Machine& machine, const Evidence& evidence, Dtype dtype) {
  const bool is_free = machine.cores > 0;
  const auto& rates = evidence.best_rates;
  if (std::any_of(rates.begin(), rates.end(), [](double rate) { return rate > 0; })) {
    bool replaced = false;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const bool replaces = is_free || (machine.peak_flops[i] <= 0 && rates[i] > 0);
      if (replaces) machine.peak_flops[i] = rates[i];
      replaced |= replaces;
    }
    if (replaced) return "peak_flops is the best measured GEMM rate, raised where the fit surpasses it";
  }
  double& peak = machine.peak_flops[static_cast<std::size_t>(dtype)];
  if (peak > 0) return "peak_flops is from the profile that the fit started with";
  if (!(evidence.best_task_rate > 0)) {
    throw UsageError("the machine has no peak_flops for " + name_of(dtype) +
                     " and no measurement gives one; add --measure, or the peak to the profile");
  }
  peak = evidence.best_task_rate;
  return "peak_flops is the rate of the fastest measured task";
}

std::string command_text(const std::vector<std::string>& args) {
  std::string text = "slipway calibrate";
  for (const std::string& arg : args) text += " " + arg;
  return text;
}

std::string evidence_text(const Evidence& evidence) {
  std::string text;
  if (!evidence.measurements.empty())
    text = counted(static_cast<std::int64_t>(evidence.measurements.size()),
                   evidence.profiler_traces > 0 ? "measured shape" : "micro-benchmark");
  if (evidence.profiler_traces > 0)
    text += " of " + counted(static_cast<std::int64_t>(evidence.profiler_traces), "profiler trace");
  if (evidence.traces > 0) {
    text += (text.empty() ? "" : " and ") + counted(static_cast<std::int64_t>(evidence.traces), "trace");
  }
  return text;
}

void warn_of_doubtful_fit(const Calibration& calibration, const Evidence& evidence, std::ostream& err) {
  constexpr double doubtful = 0.25;
  const bool has_residuals = !calibration.residuals.empty();
  if (evidence.profiler_traces > 0 && has_residuals && calibration.folds == 0)
    err << "warning: the shapes are too few to leave any out, so nothing says how good this profile is; give traces of "
           "larger steps, or of more ranks\n";
  if (calibration.folds == 0 || calibration.left_out_error <= doubtful) return;
  err << "warning: the median error of rows that the fit had not seen is " << readable_share(calibration.left_out_error)
      << "; predictions with this profile are no better. Measure while nothing else runs, or add more "
         "rows (--measure and --trace together)\n";
}

// The result from which a profile is written.
struct Fitted {
  Calibration calibration;
  MeasuredKernels kernels;  // none fitted: the machine is priced by the shares of the calibration
};

// As the scenario's trainer prices a step on this machine.
Machine trained_machine(Scenario scenario, Machine machine) {
  for (NodeGroup& group : scenario.cluster.groups) group.machine = machine;
  return priced_cluster(scenario).groups.front().machine;
}

// Those of the first, and of the second where the first have none.
std::vector<FittedKernel> joined(std::vector<FittedKernel> kernels, const std::vector<FittedKernel>& others) {
  for (const FittedKernel& other : others)
    if (std::none_of(kernels.begin(), kernels.end(),
                     [&](const FittedKernel& each) { return each.measured.key == other.measured.key; }))
      kernels.push_back(other);
  return kernels;
}

// A GPU's micro-benchmarks give the constants of its kernels, and tasks of a run move them further.
Fitted fitted(const std::optional<Scenario>& scenario, const Machine& start, const Evidence& evidence,
              std::ostream& err) {
  const ProgressLine progress(err, "fitting");
  Fitted result;
  result.kernels = measured_kernels(evidence.measurements, start, evidence.profiler_traces > 0);
  Machine measured = start;
  for (const FittedKernel& each : result.kernels.fitted)
    set_values(measured.kernels, each.measured.key, each.fit.values);
  if (evidence.traces > 0 && start.cores == 0 && !measured.kernels.empty())
    result.kernels.fitted =
        joined(traced_kernels(evidence.observations, trained_machine(*scenario, measured)), result.kernels.fitted);
  if (result.kernels.fitted.empty()) {
    result.calibration = calibrate(start, evidence.observations);
    return result;
  }
  result.calibration.machine = start;
  const std::vector<Observation> others = beside_kernels(evidence.observations);
  if (!others.empty()) result.calibration = calibrate(start, others);
  result.calibration.machine.spread = 0;  // it was of messages only
  return result;
}

std::string kernels_report(const MeasuredKernels& kernels) {
  std::string text = kernels_text(kernels.fitted);
  if (!kernels.too_few.empty())
    text += fmt::format("too few shapes for a fit (at least {}): {}\n", least_shapes, kernels.too_few);
  if (!kernels.not_used.empty())
    text += fmt::format("measured and not used, as constants of a step price them (`slipway list constants`): {}\n",
                        kernels.not_used);
  return text + "\n";
}

void check_evidence_options(const CommandOptions& options) {
  const bool alone = options.arguments().empty(), profiled = !options.all("kineto").empty();
  if (alone && !profiled)
    throw UsageError("the scenario is missing; give a file (YAML), --kineto TRACE.json.gz, or --runs TABLE.csv");
  if (alone)
    for (const char* other : {"measure", "measured", "trace", "set"})
      if (options.has(other))
        throw UsageError(std::string("--") + other + " needs a scenario; give a file (YAML) first");
  if (!alone && options.has("machine"))
    throw UsageError("the scenario names its machine; leave --machine out, or give --set cluster.machine=...");
  if (options.has("machine") && !profiled)
    throw UsageError("--machine is of profiler traces; give --kineto TRACE.json.gz too");
  if (!profiled && !options.has("measure") && options.all("measured").empty() && options.all("trace").empty())
    throw UsageError("there is nothing to fit; give --measure, --measured FILE, --trace FILE or --kineto FILE");
}

// Throws UsageError for options that do not go together.
void check_options(const CommandOptions& options) {
  if (!options.has("output")) throw UsageError("the output is missing; give -o FILE");
  if (!options.has("runs")) {
    if (options.has("noise")) throw UsageError("--noise is of measured runs; give --runs TABLE.csv too");
    check_evidence_options(options);
    return;
  }
  for (const char* other : {"measure", "rank-program", "measured", "trace", "kineto", "machine", "set"})
    if (options.has(other))
      throw UsageError(std::string("--runs fits constants of a step, not a machine profile; leave --") + other +
                       " out");
  if (!options.arguments().empty())
    throw UsageError("--runs takes no scenario, as each row names its model and cluster; leave " +
                     options.arguments()[0] + " out");
  if (options.number("noise", 0.01) >= 1)
    throw UsageError("--noise " + *options.text("noise") + " is no share below 1; for 3 % give 0.03");
}

Machine machine_named(const std::string& name) {
  Defects defects;
  Reference from;
  from.origin.file = from.key = "--machine";
  const auto machine = load_machine(name, from, defects);
  if (!machine) throw UsageError(describe(defects));
  return *machine;
}

Subject subject_of(const CommandOptions& options, const std::optional<Scenario>& scenario,
                   const std::vector<KinetoTrace>& traces, const KinetoEvidence& profiled) {
  if (scenario) return {scenario->cluster.groups.front().machine, scenario->step.dtype};
  return {options.has("machine") ? machine_named(*options.text("machine")) : machine_of(traces), dtype_of(profiled)};
}

// In UTC, so that a file does not depend on the time zone of the machine that wrote it.
std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

int calibrate_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = calibrate_options();
  if (!options.parse(args, out)) return status_done;
  check_options(options);
  const auto path = options.text("output");
  if (const auto table = options.text("runs")) {
    check_output("-o", *path, {*table});
    CalibrateRuns asked{*table, *path, std::nullopt};
    if (options.has("noise")) asked.noise = options.number("noise", 0);
    calibrate_runs(asked, out, err);
    return status_done;
  }
  std::optional<Scenario> scenario;
  std::vector<std::string> inputs;
  if (!options.arguments().empty()) {
    scenario = checked_scenario(options.arguments()[0], options.all("set"));
    inputs = inputs_of(*scenario);
  }
  for (const char* name : {"measured", "trace", "kineto"})
    inputs.insert(inputs.end(), options.all(name).begin(), options.all(name).end());
  check_output("-o", *path, inputs);
  const std::vector<KinetoTrace> traces = profiler_traces(options.all("kineto"), err);
  KinetoEvidence profiled;
  if (!traces.empty()) {
    profiled = kineto_evidence(traces, scenario ? scenario->cluster.groups.front().gpus_per_node : 0);
    refuse_without_measurements(traces, profiled);
  }
  const Subject subject = subject_of(options, scenario, traces, profiled);
  const Evidence evidence = evidence_of(options, scenario, profiled, err);
  Machine start = subject.machine;
  const std::string peak_source = set_peaks(start, evidence, subject.dtype);

  auto [calibration, kernels] = fitted(scenario, start, evidence, err);
  const std::string unfitted = unfitted_text(calibration);
  calibration.machine.name = std::filesystem::path(*path).stem().string();
  calibration.machine.provenance = {command_text(args) + ": fit to " + evidence_text(evidence) + "; " + peak_source +
                                        "; not measured and as in " + start.name + ": memory_bytes" +
                                        (unfitted.empty() ? "" : "; " + unfitted),
                                    today(), host_description()};
  OutputFile file(*path);
  file.stream() << machine_to_yaml(calibration.machine);
  if (!kernels.fitted.empty()) file.stream() << kernels_section(kernels.fitted, "slipway calibrate", &start);
  file.commit();
  if (!traces.empty()) out << evidence_text(traces, profiled);
  out << "machine " << calibration.machine.name << ", fitted to " << evidence_text(evidence) << "\n"
      << "  peak " << readable_flops(calibration.machine.peak_flops[static_cast<std::size_t>(subject.dtype)]) << " in "
      << name_of(subject.dtype) << " (" << peak_source << ")\n\n"
      << (kernels.fitted.empty() ? "" : kernels_report(kernels))
      << (calibration.parameters.empty() ? "" : report_text(calibration)) << "wrote " << *path << "\n";
  warn_of_doubtful_fit(calibration, evidence, err);
  return status_done;
}

const RegisterCommand registered({.place = 12,
                                  .name = "calibrate",
                                  .summary = "fit the machine profile to measurements and write it",
                                  .run = calibrate_command});

}  // namespace

}  // namespace slipway::scenarios
