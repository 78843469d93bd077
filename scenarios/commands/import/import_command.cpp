// `slipway import`: a trainer's arguments as a scenario.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/step_progress.h"
#include "scenarios/files/output_file.h"
#include "scenarios/predict/description.h"
#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"
#include "scenarios/predict/readable.h"
#include "scenarios/predict/simulated_step.h"
#include "scenarios/trainers/import.h"

namespace slipway::scenarios {
namespace {

std::vector<AnswerKeys> import_answers();

CommandOptions declared_options() {
  CommandOptions options(
      "import FILE... [options]",
      "Turns the arguments of a trainer into a scenario that the other commands load: Megatron-LM's (a shell script, "
      "a\n"
      "command line, a YAML of arguments), torchtitan's (TOML, --module and --config with overrides), and a Hugging "
      "Face\n"
      "config.json. Prints a line for each argument that has no effect here. An argument that has one which is not\n"
      "modelled is refused, and nothing is written.",
      "slipway import train_llama3_8b.sh --set TP=4 --set cluster.machine=h100-80gb --set cluster.nodes=8 -o "
      "llama.yaml");
  options.positional("files with arguments; later ones override a TOML", 0, 64)
      .value("arguments", "TEXT", "a command line, in quotes, instead of a file or over a TOML")
      .values("set", "NAME=VALUE",
              "the value of a variable such as ${TP}, or of a scenario key such as cluster.nodes; may be repeated")
      .values("without", "ARGUMENT",
              "leave an argument out although it has an effect; all: each that is not modelled; may be repeated")
      .value("recipe", "NAME",
             "a list of arguments that the trainer's recipes have (slipway list recipes), with a version behind an @; "
             "yours hold against it")
      .value("output", "FILE", "write the scenario here instead of printing it")
      .letter('o')
      .flag("simulate", "simulate the scenario, and set a published throughput beside the predicted one")
      .flag("json", "print only the answer, as JSON, on standard output")
      .json_keys(import_answers)
      .notes(
          "Arguments name no cluster: --set cluster.machine=NAME, cluster.nodes and cluster.gpus_per_node do. Without "
          "them\n"
          "they are taken from the launcher (torchrun) or the file's name, else the fewest GPUs that the degrees need, "
          "and\n"
          "a line says so.");
  return options;
}

struct Throughput {
  double step_time_s = 0, predicted = 0;
  std::optional<double> published;
  std::string source;
};

struct Answer {
  std::string file;
  Imported imported;
  std::optional<Throughput> throughput;
};

Description<ImportNote> note_keys() {
  return Description<ImportNote>()
      .key("kind", "text", "\"no effect\", \"priced as the nearest\", \"assumed\" or \"left out\"",
           [](const ImportNote& note) { return std::string(name_in(note_kind_names, note.kind)); })
      .key("argument", "text", "as it was given; of what is assumed, the scenario key", &ImportNote::argument)
      .key("why", "text", "reason", &ImportNote::words);
}

Description<Throughput> throughput_keys() {
  return Description<Throughput>()
      .key("step_time_s", "s", "of the simulated step; this and the rest are present with --simulate",
           &Throughput::step_time_s)
      .key("megatron_tflops_per_gpu", "TFLOP/s", "predicted, by Megatron-LM's count of FLOPs", &Throughput::predicted)
      .key("published_tflops_per_gpu", "TFLOP/s", "published, by the same count; present where import knows it",
           &Throughput::published)
      .key("published_source", "text", "who published it; present with it",
           [](const Throughput& t) { return t.published ? std::optional(t.source) : std::nullopt; });
}

const Description<Answer>& description() {
  static const Description<Answer> description =
      Description<Answer>()
          .key("scenario", "text", "the scenario, as YAML", [](const Answer& a) { return a.imported.yaml; })
          .list(
              "notes", "arguments that no key holds, and what was assumed",
              [](const Answer& a) { return a.imported.notes; }, note_keys())
          .include(throughput_keys(), &Answer::throughput);
  return description;
}

bool is_variable(const std::string& option) {
  const std::size_t equals = option.find('=');
  return equals != std::string::npos && option.find('.') > equals;
}

ImportChoices choices_from(const CommandOptions& options) {
  ImportChoices choices;
  for (const std::string& option : options.all("set")) {
    const std::size_t equals = option.find('=');
    if (is_variable(option))
      choices.variables[option.substr(0, equals)] = option.substr(equals + 1);
    else
      choices.keys.push_back(option);
  }
  for (std::string name : options.all("without")) {
    name.erase(0, std::min(name.size(), name.find_first_not_of('-')));
    if (name.find('.') == std::string::npos) std::replace(name.begin(), name.end(), '_', '-');
    choices.without.insert(name);
  }
  return choices;
}

UsageError refusal(const Defects& defects) {
  std::string text = describe(defects);
  if (text.ends_with('\n')) text.pop_back();
  return UsageError("nothing is imported:\n" + text);
}

std::string header(const std::vector<std::string>& files, const Imported& imported) {
  std::string text = "# Imported by `slipway import` from";
  for (const std::string& file : files) text += " " + std::filesystem::path(file).filename().string();
  text += files.empty() ? " a command line.\n" : ".\n";
  for (const ImportNote& note : imported.notes)
    if (note.kind != NoteKind::no_effect) {
      std::string line = fmt::format("# {}: {} ({})", name_in(note_kind_names, note.kind), note.argument, note.words);
      std::replace(line.begin(), line.end(), '\n', ' ');
      text += line + "\n";
    }
  return text;
}

Throughput throughput_of(const Answer& answer, std::ostream& err) {
  const LoadResult loaded = load_scenario_text(answer.imported.yaml, answer.file);
  const Scenario& scenario = loaded.scenario;
  const SimulatedStep step = simulated_showing(scenario, {}, err);
  const Prediction prediction = prediction_of(step);
  Throughput throughput{prediction.step.step_time_s, megatron_tflops(scenario, prediction.step.step_time_s),
                        std::nullopt, ""};
  if (answer.imported.published) {
    throughput.published = answer.imported.published->tflops_per_gpu;
    throughput.source = answer.imported.published->source;
  }
  return throughput;
}

std::string throughput_text(const Throughput& t) {
  std::string text = fmt::format("\nStep time {}: {:.1f} TFLOP/s per GPU, by Megatron-LM's count of FLOPs",
                                 readable_seconds(t.step_time_s), t.predicted);
  if (t.published)
    text += fmt::format("\nPublished: {:.1f} TFLOP/s per GPU, by the same count; predicted {:+.1f} % ({})",
                        *t.published, 100 * (t.predicted / *t.published - 1), t.source);
  return text + "\n";
}

// Kind by kind, what changes a prediction first.
std::string notes_text(const std::vector<ImportNote>& notes) {
  std::string text;
  for (const NoteKind kind : {NoteKind::left_out, NoteKind::nearest, NoteKind::assumed, NoteKind::no_effect}) {
    std::string lines;
    for (const ImportNote& note : notes)
      if (note.kind == kind) lines += fmt::format("  {:<44}  {}\n", note.argument, note.words);
    if (!lines.empty()) text += fmt::format("{}:\n{}", name_in(note_kind_names, kind), lines);
  }
  return text;
}

std::vector<AnswerKeys> import_answers() { return {{"import --json", description().keys()}}; }

int import_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const std::vector<std::string>& files = options.arguments();
  const std::string line = options.text("arguments").value_or("");
  if (files.empty() && line.empty())
    throw UsageError("no arguments are given; allowed: files, or a command line with --arguments; name a file");
  const std::optional<std::string> output = options.text("output");
  if (output) check_output("--output", *output, files);
  Answer answer{
      output.value_or(files.empty() ? "imported.yaml" : std::filesystem::path(files[0]).stem().string() + ".yaml"),
      {},
      {}};
  answer.imported = imported(files, line, choices_from(options), answer.file, options.text("recipe").value_or(""));
  if (!answer.imported.defects.empty()) throw refusal(answer.imported.defects);
  answer.imported.yaml.insert(0, header(files, answer.imported));
  if (options.has("simulate")) answer.throughput = throughput_of(answer, err);
  if (output) {
    OutputFile file(*output);
    file.stream() << answer.imported.yaml;
    file.commit();
  }
  if (options.has("json")) {
    out << description().text(answer);
    return status_done;
  }
  std::ostream& report = output ? out : err;
  if (!output) out << answer.imported.yaml;
  report << notes_text(answer.imported.notes);
  if (answer.throughput) report << throughput_text(*answer.throughput);
  if (output) report << "\nscenario: " << *output << "\n";
  return status_done;
}

const RegisterCommand registered({.place = 5,
                                  .name = "import",
                                  .summary = "turn a trainer's arguments into a scenario",
                                  .run = import_command,
                                  .answers = import_answers});

}  // namespace

}  // namespace slipway::scenarios
