#include "scenarios/language/aliases.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include "scenarios/language/keys.h"

namespace slipway::scenarios {
namespace {

using Names = std::map<std::string, std::string, std::less<>>;  // simple form → the file's name

// Letters and digits, small.
std::string simple(std::string_view written) {
  std::string name;
  for (const char c : written)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// The words of the line `aliases: [...]`.
void add_aliases(const EmbeddedFile& file, Names& names) {
  constexpr std::string_view key = "\naliases: [";
  const std::size_t at = file.text.find(key);
  if (at == std::string_view::npos) return;
  const std::size_t begin = at + key.size(), end = std::min(file.text.find(']', begin), file.text.size());
  for (std::size_t word = begin; word < end;) {
    const std::size_t next = std::min(file.text.find(',', word), end);
    names.emplace(simple(file.text.substr(word, next - word)), file.name);
    word = next + 1;
  }
}

Names names_of(std::span<const EmbeddedFile> files) {
  Names names;
  for (const EmbeddedFile& file : files) names.emplace(simple(file.name), file.name);
  for (const EmbeddedFile& file : files) add_aliases(file, names);
  return names;
}

const Names& known_names(std::span<const EmbeddedFile> files) {
  static std::mutex held;
  static std::map<const EmbeddedFile*, Names> known;
  const std::lock_guard lock(held);
  const auto found = known.find(files.data());
  return found != known.end() ? found->second : known.emplace(files.data(), names_of(files)).first->second;
}

void use_canonical(std::span<const EmbeddedFile> files, Value* name) {
  if (name == nullptr || name->kind != Value::Kind::scalar) return;
  name->text = canonical_name(files, name->text);
}

}  // namespace

std::string canonical_name(std::span<const EmbeddedFile> files, const std::string& written) {
  const bool is_name = std::ranges::any_of(files, [&](const EmbeddedFile& file) { return file.name == written; });
  if (is_name || looks_like_path(written)) return written;
  const Names& names = known_names(files);
  const auto found = names.find(simple(written));
  return found == names.end() ? written : found->second;
}

void use_canonical_names(Value& scenario) {
  if (Value* model = scenario.find("model")) use_canonical(embedded_models(), model->find("name"));
  Value* cluster = scenario.find("cluster");
  if (cluster == nullptr) return;
  use_canonical(embedded_machines(), cluster->find("machine"));
  use_canonical(embedded_trainers(), cluster->find("trainer"));
  if (Value* groups = cluster->find("groups"))
    for (Value& group : groups->items) use_canonical(embedded_machines(), group.find("machine"));
}

void drop_aliases(Value& document) {
  std::erase_if(document.entries, [](const Entry& entry) { return entry.key == "aliases"; });
}

}  // namespace slipway::scenarios
