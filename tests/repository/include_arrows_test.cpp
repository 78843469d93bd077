// The allowed includes, read from the include lines:
//
//   models <- schedules <- { sim, exec } <- scenarios       no folder includes upward; sim and exec never each other
//             two storeys of scenarios, and what is below them <- library <- whoever links libslipway
//   room <- room <- room                                    inside a folder, in the order of the table below
//
// The rank program's files (models, schedules/step, schedules/graph, exec) use no library but LibTorch. A foreign
// header is reachable only from the folder that owns it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "tests/support/source_tree.h"

namespace slipway::test {
namespace {

// The rooms of each folder. A room may include only those before it, so there is no circle.
const std::map<std::string, std::vector<std::string>> rooms = {
    {"models", {"model", "trace", "machine", "memory", "training", "fit"}},
    {"schedules",
     {"step", "rules", "catalogue", "graph", "lower", "time", "memory", "bound", "draw", "check", "bundle", "fill"}},
    {"sim", {}},
    {"exec", {"run", "process", "files", "lanes", "transport", "operators", "rank"}},
    // Three storeys: a file becomes an answer; dictionaries and variations; commands, pages and the laboratory, whose rooms
    // are folders of their own. What is above is a client of what is below.
    {"scenarios",
     {"files",
      "language",
      "predict",
      "trainers",
      "search",
      "commands/command_line",
      "report",
      "commands/kineto",
      "laboratory/tables",
      "commands/list",
      "commands/shell",
      "commands/demo",
      "commands/show",
      "commands/goodput",
      "commands/simulate",
      "commands/compare",
      "commands/memory",
      "commands/growth",
      "commands/import",
      "commands/plan",
      "commands/explain",
      "commands/weights",
      "commands/execute",
      "commands/lower",
      "commands/export",
      "laboratory/kernels",
      "laboratory/calibrate",
      "commands/study",
      "commands/worker",
      "laboratory/validate"}},
    {"library", {"include", "example"}},
};
// What libslipway is made of: no command, page or published table.
const std::set<std::string> library_is_made_of = {"scenarios/files", "scenarios/language", "scenarios/predict",
                                                  "scenarios/trainers", "scenarios/search"};

// Rooms of other folders that a folder may include; with a room's name, what that room may include.
const std::set<std::string> rank_programs_part = {"models/model",   "models/trace",    "models/training",
                                                  "schedules/step", "schedules/graph", "schedules/bundle"};
const std::set<std::string> shared_by_both_programs = {"exec/run"};

// "schedules/lower", "scenarios/commands/plan"; "scenarios" for a file of the folder itself.
std::string room_of(const std::string& path) {
  const std::string folder = top_folder(path);
  std::size_t end = path.find('/', folder.size() + 1);
  if (end == std::string::npos) return folder;
  for (const char* several : {"scenarios/commands", "scenarios/laboratory"})
    if (path.substr(0, end) == several) end = path.find('/', end + 1);
  return path.substr(0, end);
}

// The place of a room in its folder. Files of the folder itself are built on all rooms; models/namespaces.h is below
// all of them.
std::ptrdiff_t place_of(const std::string& path) {
  if (path == "models/namespaces.h") return -1;
  const std::string folder = top_folder(path), room = room_of(path);
  const std::vector<std::string>& order = rooms.at(folder);
  if (room == folder) return std::ssize(order);
  return std::ranges::find(order, room.substr(folder.size() + 1)) - order.begin();
}

bool may_include(const std::string& file, const std::string& header) {
  const std::string from = top_folder(file), to = top_folder(header);
  if (room_of(file) == room_of(header)) return true;
  if (from == to) return place_of(header) < place_of(file);
  if (header == "models/namespaces.h") return true;
  if (from == "schedules") return to == "models" && room_of(header) != "models/fit";
  if (from == "sim") return to == "models" || to == "schedules";
  if (from == "exec") return rank_programs_part.contains(room_of(header));
  if (from == "scenarios") return to != "exec" || shared_by_both_programs.contains(room_of(header));
  if (from == "library") return to != "exec" && (to != "scenarios" || library_is_made_of.contains(room_of(header)));
  return false;
}

struct Library {
  std::regex headers;
  std::set<std::string> owners;  // folders, rooms or single files
};

const std::map<std::string, Library> libraries = {
    {"Eigen", {std::regex("(unsupported/)?Eigen/.*"), {"models/fit"}}},
    {"Boost.Program_options", {std::regex("boost/program_options.*"), {"scenarios"}}},
    {"Boost.Graph", {std::regex("boost/(?!program_options|math/).*"), {"schedules/check"}}},
    {"Boost.Math", {std::regex("boost/math/.*"), {"models/fit"}}},
    {"SimGrid",
     {std::regex("(simgrid|xbt|smpi)[./].*"),
      {"sim/engine.cpp", "sim/flapping.cpp", "sim/flows.cpp", "sim/platform.cpp"}}},  // libslipway-simgrid.so
    {"LibTorch", {std::regex("(ATen|torch|c10|caffe2)/.*"), {"exec"}}},
    {"CUDA and NCCL", {std::regex("(cuda|nccl|cublas|cudnn|nv)[^/]*\\.h|nvtx3/.*"), {"exec"}}},
    {"gloo", {std::regex("gloo/.*"), {"exec/transport/cpu/transport_gloo.cpp"}}},
    {"yaml-cpp", {std::regex("yaml-cpp/.*"), {"scenarios"}}},
    {"nlohmann-json", {std::regex("nlohmann/.*"), {"scenarios", "library"}}},
    {"toml++", {std::regex("toml\\+\\+/.*"), {"scenarios/trainers/toml_arguments.cpp"}}},
    {"zlib", {std::regex("zlib\\.h"), {"scenarios/commands/kineto/gzip_file.cpp"}}},
    {"protobuf", {std::regex("google/protobuf/.*|et_def\\.pb\\.h"), {"scenarios/commands/export/execution_trace.cpp"}}},
    {"libslipway", {std::regex("slipway/.*"), {"library"}}},  // its headers: nothing inside knows them
    {"fmt", {std::regex("fmt/.*"), {"scenarios", "sim"}}},
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

  // Include lines of these folders. Tests may include anything.
  std::vector<Include> includes() const {
    std::vector<Include> all;
    for (const auto& [file, headers] : headers_of_) {
      if (!rooms.contains(top_folder(file))) continue;
      for (const std::string& header : headers) all.push_back({file, header});
    }
    return all;
  }

  // Every header that a file includes, also through others.
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
  return library.owners.contains(top_folder(file)) || library.owners.contains(room_of(file)) ||
         library.owners.contains(file);
}

TEST_F(IncludeArrows, EveryRoomOfTheTableIsThereAndEveryRoomIsInTheTable) {
  std::set<std::string> found, named;
  for (const auto& [file, headers] : headers_of_)
    if (rooms.contains(top_folder(file)) && room_of(file) != top_folder(file)) found.insert(room_of(file));
  for (const auto& [folder, names] : rooms)
    for (const std::string& name : names) named.insert(folder + "/" + name);
  EXPECT_EQ(found, named);
}

TEST_F(IncludeArrows, NothingIncludesUpwardAndSimAndExecNeverIncludeEachOther) {
  for (const Include& include : includes()) {
    if (!ours(include.header)) continue;
    EXPECT_TRUE(may_include(include.file, include.header))
        << include.file << " includes " << include.header << ": wrong direction, see the rooms at the top of this test";
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
      EXPECT_TRUE(owns(library, include.file)) << include.file << " includes " << include.header << " of " << name;
    }
  }
}

TEST_F(IncludeArrows, NoForeignHeaderReachesAnotherFolderThroughOurs) {
  for (const auto& [file, headers] : headers_of_) {
    if (!rooms.contains(top_folder(file))) continue;
    std::set<std::string> seen;
    collect(file, seen);
    for (const std::string& header : seen) {
      for (const auto& [name, library] : libraries) {
        if (!std::regex_match(header, library.headers)) continue;
        EXPECT_TRUE(owns(library, file)) << file << " sees " << header << " of " << name << " through a header of ours";
      }
    }
  }
}

TEST_F(IncludeArrows, OnlyOneFileIncludesGloo) {
  std::set<std::string> files;
  for (const Include& include : includes()) {
    const bool gloo = include.header.starts_with("gloo/") || include.header.ends_with("ProcessGroupGloo.hpp");
    if (gloo) files.insert(include.file);
  }
  EXPECT_EQ(files, std::set<std::string>{"exec/transport/cpu/transport_gloo.cpp"});
}

}  // namespace
}  // namespace slipway::test
