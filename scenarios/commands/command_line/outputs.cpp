#include "scenarios/commands/command_line/outputs.h"

#include <filesystem>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/files/output_file.h"

namespace slipway::scenarios {

void check_output(const std::string& option, const std::string& path, const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  if (path == "-") throw UsageError(option + " - is not standard output; name a file (/dev/stdout is one)");
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw UsageError(option + " " + path + " is a folder; name a file in it");
  for (const std::string& input : inputs) {
    if (fs::equivalent(path, input, ignored))
      throw UsageError(option + " " + path + " would overwrite " + input +
                       ", which this command reads; name another file");
  }
  try {
    check_writable(path);
  } catch (const std::runtime_error& error) {
    throw UsageError(option + ": " + error.what());
  }
}

void check_output_folder(const std::string& option, const std::string& path) {
  try {
    check_folder_writable(path);
  } catch (const std::runtime_error& error) {
    throw UsageError(option + ": " + error.what());
  }
}

const std::vector<std::string>& inputs_of(const Scenario& scenario) { return scenario.files; }

}  // namespace slipway::scenarios
