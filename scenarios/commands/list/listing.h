// The text of `slipway list`: all names that a scenario may use. It comes from the tables and files that the loader
// reads, so that it is always up to date.
// Guarded by tests/scenarios/scenario_keys_test.cpp, which compares the keys with docs/scenario-reference.md.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "scenarios/language/keys.h"

namespace slipway::scenarios {

void list_models(std::ostream& out);    // name, family, parameters, shape
void list_machines(std::ostream& out);  // name, peak, memory, links
void list_trainers(std::ostream& out);  // name, facts, machines of its published runs
void list_trainer_keys(std::ostream& out);
// A trainer's arguments and recipes by its name, with a version behind an @ or without, or by the dictionary's. Throw
// UsageError with those that there are.
void list_arguments(std::ostream& out, const std::string& trainer);  // argument, effect, key, versions, words
void list_recipes(std::ostream& out, const std::string& trainer);    // name, source, arguments
void list_constants(std::ostream& out);                              // of a step: book and fitted values
void list_schedules(std::ostream& out);                              // name, chunks, what it is
void list_topologies(std::ostream& out);  // name, description, parameters with meaning and default
void list_keys(std::ostream& out, std::span<const Key> table);
// Cells of a key: "number, bytes"; its values, where another list command prints these the name of that command, as
// every new name would otherwise change docs/scenario-reference.md.
std::string type_text(const Key& key);
std::string allowed_text(const Key& key);

}  // namespace slipway::scenarios
