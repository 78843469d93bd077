// Arguments of a trainer as a scenario.
//
//   Arguments ──► rows of the table ──► keys ──► compose (what several arguments say together) ──► cluster ──► YAML
//                       │
//                       └──► notes: no effect, priced as the nearest, assumed;   defects: refused, contradictions
//
// Every key goes through Import::set. It alone decides what happens to one that the language does not have.
// Guarded by tests/scenarios/import_command_test.cpp.
#pragma once

#include <map>
#include <set>

#include "scenarios/import/row.h"
#include "scenarios/language/scenario.h"

namespace slipway::scenarios {

// What was done with an argument that no key holds, or that the user did not give.
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

// A published throughput of the same arguments.
struct PublishedRun {
  double tflops_per_gpu = 0;  // by Megatron's count (models/model/megatron_flops.h)
  std::string source;
};

class Import {
 public:
  Import(Arguments arguments, ImportChoices choices);

  // Goes through the arguments by the table. Afterwards `given` and `value` answer for rows of effect `part` alone.
  void read(std::span<const Row> table);

  bool given(std::string_view argument) const { return find(argument) != nullptr; }
  const Argument* find(std::string_view argument) const;
  // Its first value with variables replaced; `fallback` where it is not given. A variable that is not set is refused.
  std::string text(std::string_view argument, const std::string& fallback = "");
  double number(std::string_view argument, double fallback);
  std::int64_t whole(std::string_view argument, std::int64_t fallback);
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

  const Arguments& arguments() const { return arguments_; }
  const ImportChoices& choices() const { return choices_; }
  const std::vector<ImportNote>& notes() const { return notes_; }
  Defects& defects() { return defects_; }
  const std::string& argument_of(const std::string& key) const;
  Value& document() { return document_; }

 private:
  void apply(const Row& row, const Argument& argument);
  void set_value(const std::string& key, Value value, std::string_view argument, std::string_view nearest);

  Arguments arguments_;
  ImportChoices choices_;
  std::vector<ImportNote> notes_;
  Defects defects_;
  Value document_;
  std::map<std::string, std::string, std::less<>> said_by_;  // argument of each key
};

// The tables, and what several arguments say together.
std::span<const Row> megatron_rows();
void compose_megatron(Import& import);
std::span<const Row> torchtitan_rows();
void compose_torchtitan(Import& import);
// Adds what a config of torchtitan's registry sets (--module llama3 --config llama3_8b) and no argument overrides.
void add_torchtitan_registry(Arguments& arguments, Defects& defects);
std::span<const Row> hugging_face_rows();
// `path`: of the config; `output`: of the scenario, to whose folder the config's path is relative.
void compose_hugging_face(Import& import, const std::string& path, const std::string& output);

// The machines, from --set, the launcher, the file's name, or as few as the layout needs (assumed). `trainer`: empty is
// generic, Megatron-Core as recipes set it today.
void compose_cluster(Import& import, const std::string& file, const std::string& trainer);

// The published run with all of these arguments, if import knows it.
std::optional<PublishedRun> published_run(const Import& import);

struct Imported {
  std::string yaml;
  std::vector<ImportNote> notes;
  Defects defects;
  std::optional<PublishedRun> published;
};
// `files` are read in this order; `line` is a command line, empty: none. `output` is the scenario's file: its folder is
// that of relative paths.
Imported imported(const std::vector<std::string>& files, const std::string& line, const ImportChoices& choices,
                  const std::string& output);

}  // namespace slipway::scenarios
