// `slipway demo`: opens the pages that `make demo` made (scenarios/demo/run.sh). Guarded by
// tests/scenarios/demo_command_test.cpp.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/files/program_folder.h"

namespace slipway::scenarios {
namespace {

struct Page {
  const char* file;
  const char* meaning;
};
// In the order in which they are opened.
constexpr Page pages[] = {{"confirm.html", "four cases that the fit has not seen, predicted beside measured"},
                          {"compare.html", "the fitted run, task by task"}};

std::string browser() {
  const char* const named = std::getenv("BROWSER");
  return named != nullptr && *named != 0 ? named : "xdg-open";
}

// False where the browser cannot be started or fails.
bool opened(const std::string& page) {
  std::string program = browser(), argument = page;
  char* const words[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, words[0], nullptr, nullptr, words, environ) != 0) return false;
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int demo_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options("demo [options]", "Opens the pages that the last `make demo` made, in a browser.",
                         "slipway demo");
  options.positional("", 0, 0)
      .value("folder", "DIR", "the folder of the demo (default: demo/ beside slipway)")
      .flag("print", "only print where they are")
      .notes("BROWSER names the program that opens them (default: xdg-open).");
  if (!options.parse(args, out)) return status_done;
  const std::filesystem::path beside = program_folder() / "demo";
  const std::filesystem::path folder = options.text("folder").value_or(beside.string());
  bool any = false, all_opened = true;
  for (const Page& page : pages) {
    const std::string path = (folder / page.file).string();
    if (!std::filesystem::exists(path)) continue;
    any = true;
    out << path << "  " << page.meaning << std::endl;
    if (!options.has("print")) all_opened = opened(path) && all_opened;
  }
  if (!any) throw UsageError("there is no page of the demo in " + folder.string() + "; run `make demo` first");
  if (!all_opened) {
    err << "slipway demo: " << browser() << " opened not all of them; open these files in a browser\n";
    return status_failed;
  }
  return status_done;
}

const RegisterCommand registered(
    {.place = 19, .name = "demo", .summary = "open the pages that `make demo` made", .run = demo_command});

}  // namespace

}  // namespace slipway::scenarios
