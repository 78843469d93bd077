// The source tree for tests: its files without what was built, fetched or belongs to git.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::test {

struct SourceFile {
  std::string path;  // relative to the root: "sim/simulate.h"
  std::vector<std::string> lines;
};

inline std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Sorted by path.
inline std::vector<SourceFile> source_tree() {
  const std::filesystem::path root = SLIPWAY_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (auto entry = std::filesystem::recursive_directory_iterator(root); entry != end(entry); ++entry) {
    const std::string path = entry->path().lexically_relative(root).string();
    const bool foreign =
        path.starts_with("build") || path == ".git" || path.starts_with(".venv") || path.starts_with(".cache");
    if (entry->is_directory() && foreign) entry.disable_recursion_pending();
    if (entry->is_regular_file() && !foreign) files.push_back({path, lines_of(entry->path())});
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

// "a/b/c.h" -> "a"; "Makefile" -> "".
inline std::string top_folder(const std::string& path) {
  const auto slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace slipway::test
