// models <- schedules <- { sim, exec } <- scenarios, read from the include lines: nothing includes upward,
// sim and exec never include each other, the rank program's files (models core, program, exec) see no
// library but LibTorch, and no foreign header is reachable from another folder than the one that owns it.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "tests/source_tree.h"

namespace slipway {
namespace {

// The part of the build that a file belongs to: one library each.
std::string part_of(const std::string& path) {
  for (const char* part : {"models/fit", "schedules/graph", "schedules/catalogue"}) {
    if (path.starts_with(std::string(part) + "/")) return part;
  }
  return top_folder(path);
}

const std::map<std::string, std::set<std::string>> allowed_parts = {
    {"models", {"models"}},
    {"models/fit", {"models", "models/fit"}},
    {"schedules", {"models", "schedules"}},
    {"schedules/catalogue", {"models", "schedules", "schedules/catalogue"}},
    {"schedules/graph", {"models", "schedules", "schedules/graph", "schedules/catalogue"}},
    {"sim", {"models", "schedules", "schedules/graph", "sim"}},
    {"exec", {"models", "schedules", "exec"}},
    {"scenarios",
     {"models", "models/fit", "schedules", "schedules/graph", "schedules/catalogue", "sim", "exec",
      "scenarios"}},
};

struct Library {
  std::regex headers;
  std::set<std::string> owners;  // parts or single files
};

const std::map<std::string, Library> libraries = {
    {"Eigen", {std::regex("(unsupported/)?Eigen/.*"), {"models/fit"}}},
    {"Boost.Program_options", {std::regex("boost/program_options.*"), {"scenarios"}}},
    {"Boost.Graph", {std::regex("boost/(?!program_options).*"), {"schedules/graph"}}},
    {"SimGrid", {std::regex("(simgrid|xbt|smpi)[./].*"), {"sim"}}},
    {"LibTorch", {std::regex("(ATen|torch|c10|caffe2)/.*"), {"exec"}}},
    {"CUDA and NCCL", {std::regex("(cuda|nccl|cublas|cudnn|nv)[^/]*\\.h|nvtx3/.*"), {"exec"}}},
    {"gloo", {std::regex("gloo/.*"), {"exec/cpu/transport_gloo.cpp"}}},
    {"yaml-cpp", {std::regex("yaml-cpp/.*"), {"scenarios"}}},
    {"nlohmann-json", {std::regex("nlohmann/.*"), {"scenarios"}}},
    {"fmt", {std::regex("fmt/.*"), {"scenarios", "sim", "schedules/graph"}}},
};

struct Include {
  std::string file, header;
};

class IncludeArrows : public testing::Test {
 protected:
  IncludeArrows() {
    const std::regex include("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"].*");
    for (const SourceFile& file : source_tree()) {
      if (!file.path.ends_with(".h") && !file.path.ends_with(".cpp")) continue;
      headers_of_[file.path];
      for (const std::string& line : file.lines) {
        std::smatch match;
        if (std::regex_match(line, match, include)) headers_of_[file.path].push_back(match[1]);
      }
    }
  }

  bool ours(const std::string& header) const { return headers_of_.contains(header); }

  // Include lines of the five folders. Tests may include what they like.
  std::vector<Include> includes() const {
    std::vector<Include> all;
    for (const auto& [file, headers] : headers_of_) {
      if (!allowed_parts.contains(part_of(file))) continue;
      for (const std::string& header : headers) all.push_back({file, header});
    }
    return all;
  }

  // Every header that a file sees, through others too.
  void collect(const std::string& file, std::set<std::string>& seen) const {
    const auto headers = headers_of_.find(file);
    if (headers == headers_of_.end()) return;
    for (const std::string& header : headers->second) {
      if (seen.insert(header).second) collect(header, seen);
    }
  }

  std::map<std::string, std::vector<std::string>> headers_of_;
};

bool owns(const Library& library, const std::string& file) {
  return library.owners.contains(part_of(file)) || library.owners.contains(file);
}

TEST_F(IncludeArrows, TheTreeIsRead) {
  std::set<std::string> parts;
  for (const Include& include : includes()) parts.insert(part_of(include.file));
  EXPECT_EQ(parts.size(), allowed_parts.size());
}

TEST_F(IncludeArrows, NothingIncludesUpwardAndSimAndExecNeverIncludeEachOther) {
  for (const Include& include : includes()) {
    if (!ours(include.header)) continue;
    EXPECT_TRUE(allowed_parts.at(part_of(include.file)).contains(part_of(include.header)))
        << include.file << " includes " << include.header
        << ": wrong direction, see the arrows in the README";
  }
}

TEST_F(IncludeArrows, OwnHeadersAreNamedFromTheRoot) {
  for (const Include& include : includes()) {
    const std::string folder = std::filesystem::path(include.file).parent_path().string();
    EXPECT_FALSE(ours(folder + "/" + include.header) && !ours(include.header))
        << include.file << " includes " << include.header << ": write " << folder << "/" << include.header;
  }
}

TEST_F(IncludeArrows, AForeignHeaderIsIncludedOnlyWhereItsOwnerIs) {
  for (const Include& include : includes()) {
    for (const auto& [name, library] : libraries) {
      if (!std::regex_match(include.header, library.headers)) continue;
      EXPECT_TRUE(owns(library, include.file))
          << include.file << " includes " << include.header << " of " << name;
    }
  }
}

TEST_F(IncludeArrows, NoForeignHeaderReachesAnotherFolderThroughOurs) {
  for (const auto& [file, headers] : headers_of_) {
    if (!allowed_parts.contains(part_of(file))) continue;
    std::set<std::string> seen;
    collect(file, seen);
    for (const std::string& header : seen) {
      for (const auto& [name, library] : libraries) {
        if (!std::regex_match(header, library.headers)) continue;
        EXPECT_TRUE(owns(library, file))
            << file << " sees " << header << " of " << name << " through a header of ours";
      }
    }
  }
}

TEST_F(IncludeArrows, OnlyOneFileIncludesGloo) {
  std::set<std::string> files;
  for (const Include& include : includes()) {
    const bool gloo =
        include.header.starts_with("gloo/") || include.header.ends_with("ProcessGroupGloo.hpp");
    if (gloo) files.insert(include.file);
  }
  EXPECT_EQ(files, std::set<std::string>{"exec/cpu/transport_gloo.cpp"});
}

}  // namespace
}  // namespace slipway
