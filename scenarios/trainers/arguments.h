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
// Nothing is interpreted here: the dictionaries (scenarios/trainers/dictionary.h) say what an argument means. Variables that nothing sets stay
// as they are written, because most are paths that no scenario needs.
// Guarded by tests/scenarios/import_arguments_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/trainers/given_arguments.h"

namespace slipway::scenarios {

// Reads a file of any of the formats. A mistake in it is added to `defects`.
Arguments read_arguments(const std::string& path, Variables& variables, Defects& defects);
// The same of a command line; `file` names it in errors.
Arguments command_line_arguments(const std::string& text, const std::string& file, Variables& variables,
                                 Defects& defects);

}  // namespace slipway::scenarios
