// A trainer's arguments as keys of a scenario.
//
//   Arguments ──► terms of the dictionary ──► its steps (what several arguments say together) ──► keys
//                       │
//                       └──► notes: no effect, priced as the nearest, assumed;   defects: refused, contradictions
//
// Every key goes through Reading::set. It alone decides what happens to one that the language does not have. The first
// value of a key holds, so defaults stand last.
// Guarded by tests/scenarios/trainer_arguments_test.cpp and tests/scenarios/import_command_test.cpp.
#pragma once

#include <map>
#include <set>

#include "scenarios/trainers/dictionary.h"
#include "scenarios/trainers/given_arguments.h"

namespace slipway::scenarios {

// The treatment of an argument that no key holds, or that the user did not give.
enum class NoteKind : std::uint8_t { no_effect, nearest, assumed, left_out };
inline constexpr std::array note_kind_names{Named{NoteKind::no_effect, "no effect"},
                                            Named{NoteKind::nearest, "priced as the nearest"},
                                            Named{NoteKind::assumed, "assumed"}, Named{NoteKind::left_out, "left out"}};

struct ImportNote {
  NoteKind kind = NoteKind::no_effect;
  std::string argument;  // "--log-interval 1"; of what is assumed, the key
  std::string words;
};

struct ImportChoices {
  Variables variables;                         // --set TP=4
  std::vector<std::string> keys;               // --set cluster.nodes=8
  std::set<std::string, std::less<>> without;  // arguments to leave out although they have an effect
};

class Reading {
 public:
  // `dictionary` must outlive this object. Keys of `choices` are set first.
  Reading(const Dictionary& dictionary, Arguments arguments, ImportChoices choices);

  // Goes through the arguments and the steps. With a version, what it has not is refused; without one, the arguments of
  // all versions are read.
  void read(const std::string& version = "");

  bool given(std::string_view argument) const { return find(argument) != nullptr; }
  const Argument* find(std::string_view argument) const;
  // Its values with variables replaced. Where it is not given: the dictionary's `default`, else empty and 0. A variable that
  // is not set is refused.
  std::string text(std::string_view argument);
  double number(std::string_view argument);
  std::int64_t whole(std::string_view argument);
  // The same with a default that other arguments decide.
  std::string text(std::string_view argument, const std::string& otherwise);
  // Uses of one of `first` and one of `second` contradict each other.
  void exclude(std::string_view first, std::string_view second, const std::string& remedy);

  // The value of a key, said by `argument` (empty: by several). The first value holds. A key that the language does not
  // have, or a value that it does not have, is refused, or noted with the words of `nearest`.
  void set(const std::string& key, const std::string& value, std::string_view argument, std::string_view nearest = {});
  void set(const std::string& key, const std::vector<std::int64_t>& values, std::string_view argument);
  bool has(std::string_view key) const;
  // As it was set; empty where it was not.
  std::string value(std::string_view key) const;
  std::int64_t count(std::string_view key, std::int64_t fallback) const;

  void note(NoteKind kind, const std::string& argument, const std::string& words);
  void refuse(std::string_view argument, const std::string& message, const std::string& remedy);
  // Refuses an effect that is not modelled; with --without all it is noted as left out.
  void not_modelled(std::string_view argument, const std::string& message);

  const Dictionary& dictionary() const { return *dictionary_; }
  const Arguments& arguments() const { return arguments_; }
  const ImportChoices& choices() const { return choices_; }
  const std::vector<ImportNote>& notes() const { return notes_; }
  Defects& defects() { return defects_; }
  const std::string& argument_of(const std::string& key) const;
  Value& document() { return document_; }

 private:
  void apply(const Term& term, const Argument& argument);
  void apply(const ImportStep& step);
  void read_environment();
  std::optional<std::string> value_of(std::string_view name);
  void set_value(const std::string& key, Value value, std::string_view argument, std::string_view nearest);

  const Dictionary* dictionary_;
  Arguments arguments_;
  ImportChoices choices_;
  std::vector<ImportNote> notes_;
  Defects defects_;
  Value document_;
  std::map<std::string, std::string, std::less<>> said_by_;  // argument of each key
};

// Adds the arguments of a recipe that are not given. A name that is none is refused with those that there are.
void add_recipe(const Dictionary& dictionary, const std::string& name, const Origin& origin, Arguments& arguments,
                Defects& defects);

}  // namespace slipway::scenarios
