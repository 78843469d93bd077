// Files of the source tree as seeds. Guarded by tests/fuzz/fuzz_targets_test.cpp.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace slipway::test {

inline std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Files with this ending in a folder of the tree and in those below it, sorted by path.
inline std::vector<std::filesystem::path> files_below(const std::string& folder, std::string_view ending) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path root = std::filesystem::path(SLIPWAY_SOURCE_DIR) / folder;
  if (!std::filesystem::exists(root)) return paths;  // git keeps no empty folder
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.is_regular_file() && entry.path().string().ends_with(ending)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Their texts; long ones are left out.
inline std::vector<std::string> texts_below(const std::string& folder, std::string_view ending,
                                            std::size_t longest = 16'384) {
  std::vector<std::string> texts;
  for (const auto& path : files_below(folder, ending))
    if (std::filesystem::file_size(path) <= longest) texts.push_back(text_of_file(path));
  return texts;
}

// The first lines of a text.
inline std::string first_lines(const std::string& text, int count) {
  std::size_t end = 0;
  for (; count > 0 && end != std::string::npos; --count) end = text.find('\n', end == 0 ? 0 : end + 1);
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

}  // namespace slipway::test
