// Names of Llamas in tables as files of models/library. Llama 3 and 3.1 have the same shapes; those of the first
// Llama (Touvron et al. 2023, arXiv 2302.13971), which also go by the name of Llama 2, differ from a file's in vocabulary
// or width.
#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "scenarios/embedded_files.h"
#include "scenarios/language/profiles.h"
#include "scenarios/tables/formats.h"

namespace slipway {
namespace {

struct LibraryShape {
  std::string file;
  std::int64_t vocab = 0, ffn = 0;  // 0: the file's
};

const std::map<std::string, LibraryShape> other_names = {
    {"llama-7b", {"llama-2-7b"}},
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
  return llama(name, {shape(*fields, "layers"), shape(*fields, "hidden"),
                      from.ffn > 0 ? from.ffn : shape(*fields, "ffn"), shape(*fields, "heads"),
                      shape(*fields, "kv_heads"), from.vocab > 0 ? from.vocab : shape(*fields, "vocab"), sequence,
                      shape(*fields, "tied") != 0});
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

}  // namespace slipway
