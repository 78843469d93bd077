#include "scenarios/tables/names.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <stdexcept>
#include <vector>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/profiles.h"
#include "scenarios/tables/csv.h"
#include "scenarios/tables/formats.h"

namespace slipway::scenarios {

std::string joined_words(std::string word) {
  std::erase(word, ' ');
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(c)); });
  return word;
}

std::string plain_word(const std::string& written) {
  return joined_words(written.substr(0, written.find_first_of(" (")));
}

Recompute recompute_word(const Cells& cells, Recompute otherwise) {
  if (cells.empty("recompute")) return otherwise;
  return cells.choice<Recompute>("recompute", plain_word(cells.text("recompute")),
                                 {{name_of(Recompute::none), Recompute::none},
                                  {name_of(Recompute::selective), Recompute::selective},
                                  {name_of(Recompute::full), Recompute::full},
                                  {"every_layer", Recompute::full}});
}

namespace {

std::vector<std::string> profiles_of(const std::string& generation) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_machines())
    if (file.name == generation || file.name.starts_with(generation + "-")) names.emplace_back(file.name);
  return names;
}

}  // namespace

std::string machine_named(std::string_view column, const std::string& written, const std::vector<std::string>& usual) {
  std::string name = written;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const EmbeddedFile& file : embedded_machines())
    if (file.name == name) return name;
  const auto is_of_word = [](unsigned char c) { return std::isalnum(c) != 0; };
  for (auto at = name.begin(); at != name.end();) {  // one word of it: "NVIDIA Blackwell GPU (GB200)"
    const auto begin = std::find_if(at, name.end(), is_of_word);
    at = std::find_if_not(begin, name.end(), is_of_word);
    for (const EmbeddedFile& file : embedded_machines())
      if (file.name == std::string_view(begin, at)) return std::string(begin, at);
  }
  // No + or *: std::regex calls itself for each character that they take, and a long cell would run out of stack.
  static const std::regex generation("(^|[^a-z0-9])([a-z][0-9]{3})([^0-9]|$)"),
      gigabytes("([0-9]{1,6})[ _-]?g(i?b)?([^a-z]|$)");
  std::smatch found, size;
  if (std::regex_search(name, found, generation)) {
    const std::vector<std::string> profiles = profiles_of(found[2]);
    const bool sized = std::regex_search(name, size, gigabytes);
    const std::string exact = found[2].str() + "-" + (sized ? size[1].str() : "") + "gb";
    if (sized && std::find(profiles.begin(), profiles.end(), exact) != profiles.end()) return exact;
    if (profiles.size() == 1 && (!sized || profiles[0] == found[2])) return profiles[0];
    for (const std::string& machine : usual)
      if (!sized && machine.starts_with(found[2].str())) return machine;
  }
  throw CellError("column " + std::string(column) + ": '" + written +
                  "' is no machine profile (`slipway list machines`); name the GPU with its memory, as in A100-80GB");
}

void set_machine(PublishedRow& row, const Cells& cells, const std::vector<std::string>& usual) {
  const std::string& written = cells.text("gpu");
  row.machine = machine_named("gpu", written, usual);
  bool is_clear = false;
  try {
    is_clear = machine_named("gpu", written) == row.machine;
  } catch (const CellError&) {
  }
  if (!is_clear) assume(row, "gpu " + written + " is " + row.machine + ", as in its authors' other runs");
}

// Names of Llamas in tables, as files of models/model/library. Llama 3 and 3.1 have the same shapes. The first Llama
// (Touvron et al. 2023, arXiv 2302.13971), whose shapes Llama 2 shares, differs from a file in vocabulary or width.

namespace {

struct LibraryShape {
  std::string file;
  std::int64_t vocab = 0, ffn = 0;  // 0: the file's
};

const std::map<std::string, LibraryShape> other_names = {{"llama-7b", {"llama-2-7b"}},
                                                         {"llama-13b", {"llama-2-13b"}},
                                                         {"llama-30b", {"llama-30b-v128k", 32000, 17920}},
                                                         {"llama-2-30b", {"llama-30b-v128k", 32000, 17920}},
                                                         {"llama-65b", {"llama-65b-v128k", 32000}},
                                                         {"llama-3-8b", {"llama-3.1-8b"}},
                                                         {"llama-3-70b", {"llama-3.1-70b"}},
                                                         {"llama-3-405b", {"llama-3.1-405b"}}};

std::int64_t shape(const ModelFields& fields, const char* key) {
  const auto found = fields.numbers.find(key);
  return found == fields.numbers.end() ? 0 : static_cast<std::int64_t>(found->second);
}

bool in_library(const std::string& name) {
  const auto known = embedded_models();
  return std::any_of(known.begin(), known.end(), [&](const EmbeddedFile& file) { return file.name == name; });
}

std::string lower_case(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

Model llama_of(const std::string& name, const LibraryShape& from, std::int64_t sequence) {
  Defects defects;
  const std::optional<ModelFields> fields = library_model(from.file, defects);
  if (!fields) throw std::logic_error("built-in model " + from.file + " does not load");
  return llama(
      name, {shape(*fields, "layers"), shape(*fields, "hidden"), from.ffn > 0 ? from.ffn : shape(*fields, "ffn"),
             shape(*fields, "heads"), shape(*fields, "kv_heads"), from.vocab > 0 ? from.vocab : shape(*fields, "vocab"),
             sequence, shape(*fields, "tied") != 0});
}

}  // namespace

Model library_llama(const std::string& written, std::int64_t sequence) {
  const std::string name = lower_case(written);
  const auto other = other_names.find(name);
  if (other != other_names.end()) return llama_of(name, other->second, sequence);
  if (!in_library(name)) throw CellError("column model: no built-in model '" + written + "' (`slipway list models`)");
  return llama_of(name, {name}, sequence);
}

Model library_llama_of_128k(const std::string& written, std::int64_t sequence) {
  constexpr std::int64_t vocabulary = 128000;
  const std::string plain = lower_case(written), name = plain + "-v128k";
  if (in_library(name)) return llama_of(name, {name}, sequence);
  const auto other = other_names.find(plain);
  LibraryShape from = other != other_names.end() ? other->second : LibraryShape{plain};
  if (!in_library(from.file))
    throw CellError("column model: no built-in model '" + written + "' (`slipway list models`)");
  from.vocab = vocabulary;
  return llama_of(name, from, sequence);
}

}  // namespace slipway::scenarios
