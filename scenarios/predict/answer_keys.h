// The keys of an answer of a command (--json), for people: `slipway list json-keys` and --help-json print them.
//
//   kinds          list   one object per kind of task        keys of nested objects: "kinds[].count", "excluded.status"
//   kinds[].count  count  joined tasks of this kind
//
// They are read off the answer's description (description.h). Guarded by tests/scenarios/answers_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

struct AnswerKey {
  std::string name, unit, meaning;
  bool optional = false;  // present only in the cases that its meaning names
};

struct AnswerKeys {
  std::string command;  // "growth --fit RUN --json"
  std::vector<AnswerKey> keys;
};

// The declaration of an answer, from which its keys are read (description.h).
template <typename Answer>
class Description;

// Name, unit and meaning in columns.
std::string describe(const std::vector<AnswerKey>& keys);
// The same of several answers, each below its command.
std::string describe(const std::vector<AnswerKeys>& answers);

}  // namespace slipway::scenarios
