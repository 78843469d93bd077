#include "scenarios/trainers/arguments.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "scenarios/files/files.h"
#include "scenarios/trainers/shell_words.h"
#include "scenarios/trainers/toml_arguments.h"

namespace slipway::scenarios {

namespace {

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Megatron-LM's names have dashes, torchtitan's a dot and underscores.
std::string argument_name(std::string word) {
  word.erase(0, word.find_first_not_of('-'));
  if (word.find('.') == std::string::npos) return with_dashes(std::move(word));
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

// "[attn moe_router]", of a YAML that writes Python's lists.
std::vector<std::string> words_in(const std::string& text) {
  if (!text.starts_with('[') || !text.ends_with(']') || text.find('*') != std::string::npos) return {text};
  std::vector<std::string> words;
  std::string word;
  for (const char c : text.substr(1)) {
    if (c != ' ' && c != ',' && c != ']' && c != '\'') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

void add_entry(const Entry& entry, const Variables& variables, std::vector<Argument>& list) {
  Argument argument{argument_name(entry.key), {}, entry.origin};
  for (const Value& item : entry.value.items) argument.values.push_back(with_variables(item.text, variables));
  if (entry.value.kind == Value::Kind::scalar) {
    const std::string text = with_variables(entry.value.text, variables);
    if (text == "false" || text == "False" || text.empty()) return;
    if (text != "true" && text != "True") argument.values = words_in(text);
  }
  list.push_back(std::move(argument));
}

void add_map(const Value& map, const Variables& variables, std::vector<Argument>& list) {
  for (const Entry& entry : map.entries) add_entry(entry, variables, list);
}

Arguments from_yaml(const std::string& path, const Variables& variables, Defects& defects) {
  Arguments arguments;
  const std::optional<Value> document = read_document(path, {path, 0}, "", defects);
  if (!document) return arguments;
  bool has_section = false;
  for (const char* section : {"ARGS", "MODEL_ARGS"})
    if (const Value* map = document->find(section); map != nullptr) {
      add_map(*map, variables, arguments.list);
      has_section = true;
    }
  if (const Value* map = document->find("ENV_VARS"); map != nullptr)
    for (const Entry& entry : map->entries)
      arguments.environment.push_back({entry.key, {with_variables(entry.value.text, variables)}, entry.origin});
  if (!has_section) add_map(*document, variables, arguments.list);
  return arguments;
}

bool is_option(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

std::vector<Argument> options_of(std::vector<std::string>::const_iterator at,
                                 std::vector<std::string>::const_iterator end, const Origin& origin) {
  std::vector<Argument> list;
  for (; at != end; ++at) {
    if (is_option(*at)) {
      const std::size_t equals = at->find('=');
      list.push_back({argument_name(at->substr(0, equals)), {}, origin});
      if (equals != std::string::npos) list.back().values.push_back(at->substr(equals + 1));
    } else if (const std::size_t equals = at->find('=');
               equals != std::string::npos && at->substr(0, equals).find('.') != std::string::npos) {
      list.push_back({argument_name(at->substr(0, equals)), {at->substr(equals + 1)}, origin});
    } else if (const std::size_t colon = at->find(':');
               at->starts_with("activation-checkpoint:") && colon != std::string::npos) {
      list.push_back({"activation_checkpoint.mode", {at->substr(colon + 1)}, origin});
    } else if (!list.empty()) {
      list.back().values.push_back(*at);
    }
  }
  return list;
}

bool is_program(const std::string& word) {
  return word.ends_with(".py") || word == "torchtitan.train" || word == "torchtitan/train";
}

// The command that starts the trainer: the one with the most options.
const ShellCommand* trainer_command(const std::vector<ShellCommand>& commands) {
  const ShellCommand* found = nullptr;
  std::ptrdiff_t most = 0;
  for (const ShellCommand& command : commands) {
    const std::ptrdiff_t options = std::count_if(command.words.begin(), command.words.end(), is_option);
    if (options > most) {
      found = &command;
      most = options;
    }
  }
  return found;
}

const std::set<std::string, std::less<>> launcher_options = {
    "nproc-per-node", "nnodes",        "node-rank",    "master-addr", "master-port",        "rdzv-id",
    "rdzv-backend",   "rdzv-endpoint", "role",         "tee",         "local-ranks-filter", "rdzv-conf",
    "redirects",      "log-dir",       "max-restarts", "standalone",  "no-python"};

}  // namespace

Arguments command_line_arguments(const std::string& text, const std::string& file, Variables& variables,
                                 Defects& defects) {
  Arguments arguments;
  const std::vector<ShellCommand> commands = shell_commands(text, variables);
  const ShellCommand* command = trainer_command(commands);
  if (command == nullptr) {
    defects.push_back({file, 0, "",
                       "no command with options (--name value) is in it; allowed: a call of Megatron-LM or torchtitan",
                       "give the file that holds the arguments"});
    return arguments;
  }
  const Origin origin{file, command->line};
  const std::vector<std::string>& words = command->words;
  const auto program = std::find_if(words.begin(), words.end(), is_program);
  const auto begin = program == words.end() ? words.begin() : program + 1;
  for (Argument& argument : options_of(words.begin(), program == words.end() ? words.begin() : program, origin))
    if (launcher_options.contains(argument.name)) arguments.launcher.push_back(std::move(argument));
  for (Argument& argument : options_of(begin, words.end(), origin)) {
    const bool of_launcher = program == words.end() && launcher_options.contains(argument.name);
    (of_launcher ? arguments.launcher : arguments.list).push_back(std::move(argument));
  }
  for (const auto& [name, value] : variables)
    if (name == "CUDA_DEVICE_MAX_CONNECTIONS") arguments.environment.push_back({name, {value}, origin});
  for (const Argument& argument : arguments.list)
    if (argument.name == "module" || argument.name.find('.') != std::string::npos) arguments.dictionary = "torchtitan";
  return arguments;
}

Arguments read_arguments(const std::string& path, Variables& variables, Defects& defects) {
  Arguments arguments;
  if (const std::string reason = unreadable(path); !reason.empty()) {
    defects.push_back({path, 0, "", "cannot read it: " + reason, "give the path of a readable file"});
    return arguments;
  }
  if (path.ends_with(".json")) {
    arguments.dictionary = "hugging-face";
    if (const std::optional<Value> config = read_document(path, {path, 0}, "", defects))
      for (const Entry& entry : config->entries)
        arguments.list.push_back({entry.key, {to_one_line(entry.value)}, entry.origin});
    return arguments;
  }
  if (path.ends_with(".toml")) {
    arguments.dictionary = "torchtitan";
    arguments.list = toml_arguments(path, defects);
    return arguments;
  }
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return from_yaml(path, variables, defects);
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return command_line_arguments(text.str(), path, variables, defects);
}

}  // namespace slipway::scenarios
