#include "scenarios/commands/shell/command_forms.h"

#include <nlohmann/json.hpp>

#include <sstream>

#include "scenarios/commands/command_line/command.h"

namespace slipway::scenarios {
namespace {

CommandForm form_of(const Command& command) {
  std::ostringstream out, err;
  command.run({"--help-form"}, out, err);
  const auto json = nlohmann::json::parse(out.str());
  CommandForm form{.name = std::string(command.name),
                   .summary = std::string(command.summary),
                   .usage = json.at("usage"),
                   .purpose = json.at("purpose"),
                   .example = json.at("example"),
                   .notes = json.at("notes"),
                   .words = json.at("words"),
                   .options = {}};
  for (const auto& option : json.at("options"))
    form.options.push_back({option.at("name"), option.at("letter"), option.at("placeholder"), option.at("meaning")});
  return form;
}

}  // namespace

std::vector<CommandForm> command_forms() {
  std::vector<CommandForm> forms;
  for (const Command& command : all_commands()) forms.push_back(form_of(command));
  return forms;
}

}  // namespace slipway::scenarios
