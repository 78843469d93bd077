// Paths, which all profiles have in common.
#include <filesystem>

#include "scenarios/language/nearest.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {
std::string resolve_path(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

std::optional<EmbeddedFile> embedded_named(std::span<const EmbeddedFile> files, const std::string& name,
                                           const std::string& what, const Reference& from, Defects& defects) {
  std::vector<std::string> names;
  std::string listed;
  for (const EmbeddedFile& file : files) {
    if (file.name == name) return file;
    names.emplace_back(file.name);
    listed += std::string(file.name) + ", ";
  }
  if (looks_like_path(name)) return std::nullopt;
  const std::string guess = did_you_mean(nearest(name, names));
  defects.push_back({from.origin.file, from.origin.line, from.key,
                     "there is no " + what + " '" + name + "'; allowed: " + listed + "or the path of a profile.yaml",
                     guess.empty() ? "choose one (slipway list " + what + "s), or write a path" : guess});
  return std::nullopt;
}

}  // namespace slipway::scenarios
