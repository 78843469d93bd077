// The arguments of a trainer as data: models/trainers/arguments/<dictionary>.yaml. One file serves both directions, and a
// new argument is one line of it.
//
//   of: "Megatron-LM and Megatron-Core"       for people
//   source: "NVIDIA/Megatron-LM@... "         the version that the list was read from
//   versions: [0.12, 0.13]                    oldest first; the last is meant where none is named
//   arguments:                                in the order in which a launch has them
//     tensor-model-parallel-size: {key: layout.tensor}
//     cp-comm-type: {key: layout.context_exchange, values: {p2p: ring}, since: 0.12}
//     swiglu: {part: model.family, launch: {when: {model.mlp: swiglu}, flag: true}}
//     log-interval: {none: it logs}           no effect here; a line says so
//     moe-deepep-num-sms: {near: "priced as ..."}    an effect that is priced by what is nearest; a line says so
//     optimizer: {not modelled: "an optimizer other than Adam", harmless: [adam]}    refused
//   import:                                   what several arguments say together, in this order
//     - {when: {--sequence-parallel: given}, set: {layout.sequence_parallel: true}, by: sequence-parallel}
//     - {compose: split}                      what data cannot say: a function (reading.h)
//   launch:                                   what a scenario asks for that no argument says
//     - {when: {layout.placement: given}, missing: "..."}
//   recipes:                                  named lists of arguments, each with its source
//     llama3_8b: {source: "...", arguments: {training.seq_len: 8192}}
//
// A condition is a map of which all must hold, or a list of such maps of which one must:
//
//   {layout.tensor: "> 1"}   {--swiglu: absent}   {run.dtype: [float16, bfloat16]}   {--optimizer: "not adam, sgd"}
//
// Its names are arguments (with dashes), scenario keys, `conditions` of the file above it, and values of a launch
// (launch.h). What is absent is nothing but `absent`. A text may hold {layout.tensor}, {--lr} and {--lr|1e-4}, whose
// second part stands where the first is absent.
// A dictionary that `extends` another has all that the other has; its own entries of the same name hold.
// Guarded by tests/scenarios/trainer_arguments_test.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model/names.h"
#include "scenarios/language/document.h"

namespace slipway::scenarios {

enum class Effect : std::uint8_t { key, part, none, near, not_modelled };
inline constexpr std::array effect_names{Named{Effect::key, "key"}, Named{Effect::part, "part"},
                                         Named{Effect::none, "none"}, Named{Effect::near, "near"},
                                         Named{Effect::not_modelled, "not modelled"}};

struct Clause {
  std::string name;
  std::vector<std::string> wanted;  // one of them
};
struct Condition {
  std::vector<std::vector<Clause>> ways;  // all of one of them; none: it always holds
};

// The value of a name; nothing where it is absent.
using ValueOf = std::function<std::optional<std::string>(std::string_view name)>;
bool holds(const Condition& condition, const ValueOf& value_of);
// `text` with {name} and {name|otherwise} replaced; nothing where a name is absent and has no second part.
std::optional<std::string> filled_in(const std::string& text, const ValueOf& value_of);

// The rules by which a launch gives an argument: the first of its rules whose condition holds.
struct LaunchRule {
  Condition when;
  std::string value;    // empty: a flag
  std::string word;     // instead of argument and value, as it stands: "activation-checkpoint:full"
  std::string compose;  // instead: the function that adds it
};

// The meaning of an argument.
struct Term {
  std::string argument;  // without dashes
  Effect effect = Effect::none;
  std::string key;    // of the scenario; of effect part, also words
  std::string words;  // why it has no effect, how it is priced, what is not modelled
  // Where the language has not the key, or not the value: how it is priced without. Empty: it is refused.
  std::string otherwise;
  std::vector<std::pair<std::string, std::string>> values;  // the trainer's word and the scenario's; "*": any other
  bool negated = false;                                     // a flag that is set where the key is false
  double factor = 1;                                        // the key's value is the argument's times this
  std::vector<std::string> harmless;                        // values with which it has no effect
  std::string fallback;                                     // `default`: the trainer's value where it is not given
  std::string since, until;                                 // first and last version; empty: not known
  std::vector<LaunchRule> launch;
  bool never_launched = false;
  bool joined = false;  // a launch has it beside the argument before it
  Origin origin;
};

// One action that follows from several arguments.
enum class StepKind : std::uint8_t { set, no_effect, nearest, contradiction, refusal, not_modelled, compose };
struct ImportStep {
  StepKind kind = StepKind::set;
  Condition when;
  std::vector<std::pair<std::string, std::string>> keys;  // of set: the key and a text
  std::string by;                                         // argument that says it
  std::vector<std::string> arguments;                     // of notes and contradictions
  std::string words, remedy;                              // of set: how it is priced without the key
};

enum class AnswerKind : std::uint8_t { refused, refused_anyway, missing, to_add, environment, impossible, compose };
struct LaunchStep {
  AnswerKind kind = AnswerKind::missing;
  Condition when;
  std::string words;
};

// A named list of arguments. They stand before the user's own, which hold against them.
struct Recipe {
  std::string name, source;
  std::vector<std::pair<std::string, std::vector<std::string>>> arguments;  // no values: a flag
  std::string since, until;
};

using WordTable = std::vector<std::pair<std::string, std::string>>;

// A model that the trainer has by name.
struct NamedModel {
  std::string module, flavor;
  WordTable keys;  // of model
};

struct Dictionary {
  std::string name;      // of the file
  std::string of;        // the trainer, for people
  std::string source;    // what the list was read from
  std::string trainer;   // cluster.trainer of an import; empty: none
  std::string program;   // that a launch starts
  std::string launched;  // the version whose names a launch has, for people
  std::vector<std::string> versions;
  bool has_other_readers = false;  // arguments that it does not name are read or refused elsewhere
  bool is_launched = false;        // `slipway plan --emit` writes it
  std::vector<Term> terms;
  std::vector<std::pair<std::string, Condition>> conditions;
  WordTable needed;       // argument and its key
  WordTable environment;  // variable and what is to be said of it; "*": any other
  std::vector<ImportStep> import;
  std::vector<LaunchStep> launch;
  std::vector<Recipe> recipes;
  std::map<std::string, WordTable, std::less<>> tables;  // for functions that compose
  std::vector<NamedModel> models;

  const Term* find(std::string_view argument) const;
  const Recipe* recipe(std::string_view name) const;
  const WordTable& table(std::string_view name) const;  // empty where there is none
  std::optional<std::string> word(std::string_view table, std::string_view of) const;
};

// Empty after an error. `base` finds the dictionary that it extends.
std::optional<Dictionary> dictionary_from_yaml(
    const std::string& text, const std::string& file, const std::string& name, Defects& defects,
    const std::function<const Dictionary*(std::string_view name)>& base = nullptr);
// nullptr where there is no such dictionary. Any thread may ask.
const Dictionary* built_in_dictionary(std::string_view name);
std::vector<std::string> dictionary_names();

// True if `since` and `until` admit a version. An empty version is the last one.
bool is_in(const Dictionary& dictionary, std::string_view version, std::string_view since, std::string_view until);
// "is an argument of 0.13 and later"; empty: the version has it.
std::string lacks(const Dictionary& dictionary, const Term& term, std::string_view version);

}  // namespace slipway::scenarios
