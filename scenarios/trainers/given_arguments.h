// The arguments that a user gave to a trainer, in any of the forms of scenarios/trainers/arguments.h, with the
// variables of a shell inside them: "$TP", "${TP}", "${TP:-4}". A variable that nothing sets stays as it is written.
// Guarded by tests/scenarios/import_arguments_test.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/language/document.h"

namespace slipway::scenarios {

struct Argument {
  std::string name;                 // without dashes in front
  std::vector<std::string> values;  // none: a flag that is set
  Origin origin;
  // "--tensor-model-parallel-size 8"
  std::string text() const;
};

struct Arguments {
  std::string dictionary = "megatron";  // that has their names (dictionary.h)
  std::vector<Argument> list;
  std::vector<Argument> environment;  // "CUDA_DEVICE_MAX_CONNECTIONS"
  std::vector<Argument> launcher;     // of torchrun: "nnodes"
};

// Values by name: those of --set, then those of the script.
using Variables = std::map<std::string, std::string, std::less<>>;

// "$TP", "${TP}", "${TP:-4}" at the beginning of a text.
struct VariableUse {
  std::string name;
  std::optional<std::string> otherwise;
  std::size_t length = 0;  // 0: none
};

VariableUse variable_at(std::string_view text);
// Length of the variable's name that the text begins with; 0: none.
std::size_t variable_length(std::string_view text);

// Replaces $NAME, ${NAME} and ${NAME:-default}; a variable that is not there stays.
std::string with_variables(const std::string& text, const Variables& variables);
// The first variable that stayed: "TP" of "${TP}"; empty where there is none.
std::string unset_variable(const std::string& text);

}  // namespace slipway::scenarios
