// `slipway worker`: answers many requests in one process. The Python module is its caller.
//
//   ► {"id": 1, "arguments": ["simulate", "s.yaml", "--json"], "scenario": {"path": "s.yaml", "text": "model: ..."}}
//   ◄ {"id": 1, "progress": {"what": "simulating", "share": 0.5, ...}}                    while it works, if asked for
//   ◄ {"id": 1, "ask": 1, "shape": {"pipeline": 4, "chunks": 1, "micro_batches": 8}}      a caller's schedule
//   ► {"ask": 1, "csv": "0F0,0F1,..."}
//   ◄ {"id": 1, "status": 0, "answer": {"step_time_s": ...}, "messages": "", "errors": []}
//
// Guarded by tests/python/worker_test.py.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/commands/worker/channel.h"
#include "scenarios/language/given_scenarios.h"
#include "schedules/catalogue/schedule_csv.h"
#include "schedules/check/asked_schedule.h"

namespace slipway::scenarios {
namespace {

using Json = nlohmann::json;

CommandOptions declared_options() {
  CommandOptions options("worker",
                         "Answers requests on standard input until it ends: one JSON object a line, and one line on "
                         "standard\noutput for each answer. The Python module starts it; other programs may too.",
                         "slipway worker < requests.jsonl");
  options.positional("argument", 0, 0)
      .notes(
          "A request: {\"id\": 1, \"arguments\": [\"simulate\", \"s.yaml\", \"--json\"]}. It may also have\n"
          "  folder    the current folder of this request\n"
          "  scenario  {\"path\": \"s.yaml\", \"text\": \"model: ...\"}: what to read in place of this file\n"
          "  schedule  {\"name\": \"mine\", \"chunks\": 1}: the caller has a schedule, in place of schedule.name\n"
          "  progress  seconds between two lines {\"id\", \"progress\": {\"what\", \"detail\", \"share\", "
          "\"past_s\"}}\n"
          "An answer: {\"id\", \"status\", \"answer\", \"messages\", \"errors\"}: the exit status of the command, what "
          "it\n"
          "prints with --json (without: as a text), its standard error, and each mistake of the scenario as\n"
          "{\"key\", \"place\", \"message\", \"remedy\"}.\n"
          "A schedule of the caller: a line {\"id\", \"ask\": N, \"shape\": {\"pipeline\", \"chunks\", "
          "\"micro_batches\"}} "
          "asks for it,\nand the caller writes {\"ask\": N, \"csv\": TEXT}, in the format of `slipway show --csv`; or "
          "\"refuse\" or \"failed\"\nwith the reason.\n"
          "SIGINT ends the request at hand, not the worker, in simulations and searches; other work ends the worker "
          "too.\n"
          "execute, confirm and demo start processes of their own: run them without a worker.");
  return options;
}

// Another process starts these: they end it, or wait for processes of theirs.
constexpr std::array<std::string_view, 4> not_in_a_worker{"execute", "confirm", "demo", "worker"};

// SIGINT between two requests came too late for the one before.
class IgnoreInterrupts {
 public:
  IgnoreInterrupts() {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &ignore, &old_);
  }
  ~IgnoreInterrupts() { ::sigaction(SIGINT, &old_, nullptr); }
  IgnoreInterrupts(const IgnoreInterrupts&) = delete;
  IgnoreInterrupts& operator=(const IgnoreInterrupts&) = delete;

 private:
  struct sigaction old_ = {};
};

// The caller's death ends the request at hand too.
void end_with_caller() {
  std::thread([caller = ::getppid()] {
    while (::getppid() == caller) std::this_thread::sleep_for(std::chrono::seconds(1));
    ::_exit(status_failed);
  }).detach();
}

std::shared_ptr<const schedules::Schedule> schedule_of(Channel& channel, const Json& request) {
  const Json& asked = request.at("schedule");
  const std::string name = asked.at("name");
  const auto actions = [&channel, id = request.value("id", Json()), name](const schedules::ScheduleShape& shape) {
    const Json answer = channel.ask(
        id, {{"pipeline", shape.pipeline}, {"chunks", shape.chunks}, {"micro_batches", shape.micro_batches}});
    if (const auto reason = answer.find("refuse"); reason != answer.end())
      throw std::invalid_argument(reason->get<std::string>());
    if (const auto reason = answer.find("failed"); reason != answer.end())
      throw std::runtime_error("the schedule " + name + " failed: " + reason->get<std::string>());
    std::istringstream csv(answer.at("csv").get<std::string>());
    return schedules::read_schedule_csv(csv, name);
  };
  return schedules::asked_schedule(name, asked.value("chunks", 1), actions);
}

Pace pace_of_request(Channel& channel, const Json& request) {
  const auto every = request.find("progress");
  if (every == request.end()) return {.clock = [] { return 0.0; }};  // a clock that stands still: no line is due
  return {
      .quiet_s = every->get<double>(), .show = [&channel, id = request.value("id", Json())](const ProgressState& now) {
        const Json share = now.share ? Json(*now.share) : Json();
        channel.write_line(
            Json{{"id", id},
                 {"progress", {{"what", now.what}, {"detail", now.detail}, {"share", share}, {"past_s", now.past_s}}}}
                .dump());
      }};
}

Json errors_of(const std::vector<ScenarioError>& refused) {
  Json errors = Json::array();
  for (const ScenarioError& error : refused)
    errors.push_back({{"key", error.key},
                      {"place", error.line > 0 ? error.file + ":" + std::to_string(error.line) : error.file},
                      {"message", error.message},
                      {"remedy", error.remedy}});
  return errors;
}

std::string text_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The command's own JSON, digit by digit. A line end in JSON is blank.
std::string answer_text(std::string printed, bool is_json) {
  if (!is_json) return text_of(printed);
  std::replace(printed.begin(), printed.end(), '\n', ' ');
  return printed;
}

bool asks_for_json(const Json& request) {
  const auto words = request.find("arguments");
  return words != request.end() && std::ranges::find(*words, "--json") != words->end();
}

std::string line_of(const Json& request, int status, std::string printed, const std::string& messages,
                    const std::vector<ScenarioError>& refused) {
  const bool is_json = asks_for_json(request) && printed.starts_with('{');
  return "{\"id\":" + text_of(request.is_object() ? request.value("id", Json()) : Json()) +
         ",\"status\":" + std::to_string(status) + ",\"answer\":" + answer_text(std::move(printed), is_json) +
         ",\"messages\":" + text_of(messages) + ",\"errors\":" + text_of(errors_of(refused)) + "}";
}

std::string run(Channel& channel, const Json& request) {
  const std::vector<std::string> arguments = request.at("arguments");
  if (!arguments.empty() && std::ranges::find(not_in_a_worker, arguments[0]) != not_in_a_worker.end())
    throw UsageError("slipway " + arguments[0] + " runs in no worker; start it as a process of its own");
  if (const auto folder = request.find("folder"); folder != request.end())
    if (::chdir(folder->get<std::string>().c_str()) != 0)
      throw UsageError("folder " + folder->get<std::string>() + ": " + std::strerror(errno));
  std::optional<GiveScenario> given;
  if (const auto scenario = request.find("scenario"); scenario != request.end()) {
    GivenScenario with;
    if (scenario->contains("text")) with.text = scenario->at("text").get<std::string>();
    if (request.contains("schedule")) with.schedule = schedule_of(channel, request);
    given.emplace(scenario->at("path").get<std::string>(), std::move(with));
  }
  std::ostringstream out;
  PacedStream err(pace_of_request(channel, request));
  std::vector<ScenarioError> refused;
  const int status = run_slipway(arguments, out, err, &refused);
  return line_of(request, status, std::move(out).str(), err.str(), refused);
}

std::string answer(Channel& channel, const std::string& line) {
  const Json request = Json::parse(line, nullptr, false);
  try {
    if (!request.is_object()) throw UsageError("a request is one JSON object on one line");
    return run(channel, request);
  } catch (const std::exception& error) {
    return line_of(request, status_usage, "", std::string("slipway worker: ") + error.what() + '\n', {});
  }
}

// A late answer to a question of a request that has ended.
bool is_late(const std::string& line) { return line.starts_with("{\"ask\":"); }

int worker_command(const std::vector<std::string>& args, std::ostream& out, std::ostream&) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  const IgnoreInterrupts guard;
  Channel channel;
  end_with_caller();
  while (const std::optional<std::string> line = channel.read_line())
    if (!line->empty() && !is_late(*line)) channel.write_line(answer(channel, *line));
  return status_done;
}

const RegisterCommand registered({.place = 22,
                                  .name = "worker",
                                  .summary = "answer requests of a program, one JSON line each",
                                  .run = worker_command});

}  // namespace

}  // namespace slipway::scenarios
