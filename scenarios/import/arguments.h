// The arguments of a trainer as its users keep them, read into one list, whatever the file.
//
//   a YAML of arguments     ENV_VARS, ARGS or MODEL_ARGS: maps; or the arguments alone       Megatron-LM
//   a script, a command line  assignments, arrays, one call of the trainer's program         Megatron-LM, torchtitan
//   a TOML                  [parallelism] tensor_parallel_degree = 8                         torchtitan
//   a config.json           the fields of a model                                            Hugging Face
//
//   --tensor-model-parallel-size 8     ┐
//   tensor_model_parallel_size: 8      ┴─► {"tensor-model-parallel-size", {"8"}}
//   [parallelism] tensor_parallel_degree = 8 ─► {"parallelism.tensor_parallel_degree", {"8"}}
//
// Nothing is interpreted here: the tables of rows (row.h) say what an argument means. Variables that nothing sets stay
// as they are written, because most are paths that no scenario needs.
// Guarded by tests/scenarios/import_arguments_test.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scenarios/language/document.h"

namespace slipway::scenarios {

enum class ArgumentFormat : std::uint8_t { megatron, torchtitan, hugging_face };

struct Argument {
  std::string name;                 // without dashes in front
  std::vector<std::string> values;  // none: a flag that is set
  Origin origin;
  // "--tensor-model-parallel-size 8"
  std::string text() const;
};

// Values of variables by name: those of --set, then those of the script.
using Variables = std::map<std::string, std::string, std::less<>>;

struct Arguments {
  ArgumentFormat format = ArgumentFormat::megatron;
  std::vector<Argument> list;
  std::vector<Argument> environment;  // "CUDA_DEVICE_MAX_CONNECTIONS"
  std::vector<Argument> launcher;     // of torchrun: "nnodes"
};

// Replaces $NAME, ${NAME} and ${NAME:-default}; a variable that is not there stays.
std::string with_variables(const std::string& text, const Variables& variables);
// The first variable that stayed: "TP" of "${TP}"; empty where there is none.
std::string unset_variable(const std::string& text);

// The words of a script, command by command. Comments are left out, lines joined at a backslash. Assignments and
// arrays become `variables`, unless they are there already; "${ARGS[@]}" becomes the array's words. Throws UsageError
// where variables multiply to more than 64 MB.
struct ShellCommand {
  std::vector<std::string> words;
  int line = 0;
};
std::vector<ShellCommand> shell_commands(const std::string& text, Variables& variables);

// Reads a file of any of the formats. A mistake in it is added to `defects`.
Arguments read_arguments(const std::string& path, Variables& variables, Defects& defects);
// The same of a command line; `file` names it in errors.
Arguments command_line_arguments(const std::string& text, const std::string& file, Variables& variables,
                                 Defects& defects);
// The tables and keys of a TOML file as "table.key".
std::vector<Argument> toml_arguments(const std::string& path, Defects& defects);

}  // namespace slipway::scenarios
