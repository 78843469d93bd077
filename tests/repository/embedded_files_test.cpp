// The data files inside the program equal those of the source tree, byte for byte.
#include "scenarios/files/embedded_files.h"
#include "scenarios/laboratory/tables/embedded_tables.h"
#include "scenarios/report/embedded_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace slipway::test {
namespace {

std::map<std::string, std::string> yaml_files(const std::string& folder) {
  std::map<std::string, std::string> text_of;
  for (const auto& entry : std::filesystem::directory_iterator(SLIPWAY_SOURCE_DIR "/" + folder)) {
    if (entry.path().extension() != ".yaml") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    text_of[entry.path().stem()] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return text_of;
}

void expect_same(std::span<const EmbeddedFile> embedded, const std::string& folder) {
  std::map<std::string, std::string> text_of;
  for (const EmbeddedFile& file : embedded) {
    text_of[std::string(file.name)] = std::string(file.text);
    EXPECT_EQ(file.path, folder + "/" + std::string(file.name) + ".yaml");
  }
  EXPECT_EQ(text_of, yaml_files(folder));
  EXPECT_TRUE(std::ranges::is_sorted(embedded, {}, &EmbeddedFile::name));
  EXPECT_FALSE(embedded.empty());
}

TEST(EmbeddedFiles, MachinesAreTheSourceTreesByteForByte) {
  expect_same(embedded_machines(), "models/machine/profiles");
}

TEST(EmbeddedFiles, ModelsAreTheSourceTreesByteForByte) { expect_same(embedded_models(), "models/model/library"); }

TEST(EmbeddedFiles, MemoryConstantsAreTheSourceTreesByteForByte) { expect_same(embedded_memory(), "models/memory"); }

TEST(EmbeddedFiles, TrainersAreTheSourceTreesByteForByte) { expect_same(embedded_trainers(), "models/trainers"); }

TEST(EmbeddedFiles, DictionariesAreTheSourceTreesByteForByte) {
  expect_same(embedded_dictionaries(), "models/trainers/arguments");
}

TEST(EmbeddedFiles, ConstantsAreTheSourceTreesByteForByte) { expect_same(embedded_constants(), "models/machine"); }

TEST(EmbeddedFiles, TablesAreThoseOfTheStudyFoldersByteForByte) {
  EXPECT_FALSE(embedded_tables().empty());
  for (const EmbeddedFile& file : embedded_tables()) {
    std::ifstream text(SLIPWAY_SOURCE_DIR "/" + std::string(file.path), std::ios::binary);
    EXPECT_EQ(file.text, std::string(std::istreambuf_iterator<char>(text), {})) << file.path;
    EXPECT_EQ(file.path, "scenarios/studies/" + std::string(file.name) + "/runs.csv");
  }
  EXPECT_TRUE(std::ranges::is_sorted(embedded_tables(), {}, &EmbeddedFile::name));
}

TEST(EmbeddedFiles, ThePageIsTheSourceTreesByteForByte) {
  EXPECT_EQ(embedded_page().size(), 9U);
  for (const EmbeddedFile& file : embedded_page()) {
    std::ifstream text(SLIPWAY_SOURCE_DIR "/" + std::string(file.path), std::ios::binary);
    EXPECT_EQ(file.text, std::string(std::istreambuf_iterator<char>(text), {})) << file.path;
    EXPECT_TRUE(file.path.starts_with("scenarios/report/page/") && file.path.ends_with(file.name)) << file.path;
  }
}

}  // namespace
}  // namespace slipway::test
