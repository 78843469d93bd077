// The constants of a step as a file: what is written reads back, and errors name file, line and key.
#include "scenarios/language/load_constants.h"
#include "scenarios/laboratory/tables/embedded_tables.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "scenarios/files/embedded_files.h"
#include "scenarios/laboratory/tables/pooled_runs.h"
#include "scenarios/language/number_rows.h"
#include "tests/support/scenario_file.h"
#include "tests/support/table_text.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

std::size_t index_of(const std::string& name) {
  for (std::size_t i = 0; i < step_constants().size(); ++i)
    if (step_constants()[i].name == name) return i;
  throw std::invalid_argument(name);
}

// A shared part, a machine's, a trainer's, and that of both.
PooledConstants some_constants() {
  PooledConstants pooled;
  const auto add = [&](const char* name, const char* machine, const char* trainer, double spread, double factor) {
    pooled.coordinates.push_back({index_of(name), machine, trainer, spread});
    pooled.values.push_back(std::log(factor));
  };
  const auto row = [](const char* name) { return step_constants()[index_of(name)]; };
  add("gemm", "", "", row("gemm").spread, 0.97);
  add("gemm", "h100-80gb", "", row("gemm").machine, 1.02);
  add("host_kernel", "", "nanotron", row("host_kernel").trainer, 1.5);
  add("whole", "h100-80gb", "nanotron", row("whole").site, 0.9);
  const std::size_t n = pooled.coordinates.size();
  pooled.covariance.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      pooled.covariance[i * n + j] = (i == j ? 0.5 : 0.01 * static_cast<double>(i + j)) * pooled.coordinates[i].spread *
                                     pooled.coordinates[j].spread;
  pooled.row_spread = 0.07, pooled.freedom = 9;
  return pooled;
}

// Of runs with bytes of memory (runs_text).
std::string text_of_columns() {
  return "trainer,machine,model,family,layers,hidden,ffn,heads,kv_heads,vocab,tied,sequence,gpus,gpus_per_node,tensor,"
         "sequence_parallel,context,pipeline,chunks,zero,micro_batch,global_batch,recompute,kernels,gradient_dtype,"
         "status,step_s,allocated_bytes\n";
}

// A sound file of one constant; each test breaks one line.
std::string text_with(const std::string& noise, const std::string& coordinate, const std::string& covariance) {
  return "noise: " + noise + "\ncoordinates:\n  - " + coordinate + "\ncovariance:\n  - " + covariance +
         "\nfitted_runs: []\n";
}

Defects defects_of(const std::string& text) {
  Defects defects;
  EXPECT_FALSE(constants_from_yaml(text, "c.yaml", defects).has_value());
  for (const ScenarioError& defect : defects) {
    EXPECT_EQ(defect.file, "c.yaml");
    EXPECT_FALSE(defect.remedy.empty());
  }
  return defects;
}

TEST(LoadConstants, WhatIsWrittenReadsBack) {
  const PooledConstants written = some_constants();
  Defects defects;
  const auto read = constants_from_yaml(constants_to_yaml(written, "of a test"), "c.yaml", defects);
  ASSERT_TRUE(read.has_value()) << describe(defects);
  EXPECT_NEAR(read->row_spread, written.row_spread, 1e-4);
  EXPECT_EQ(read->freedom, 9);
  ASSERT_EQ(read->coordinates.size(), written.coordinates.size());
  for (std::size_t i = 0; i < written.coordinates.size(); ++i) {
    EXPECT_EQ(read->coordinates[i].constant, written.coordinates[i].constant);
    EXPECT_EQ(read->coordinates[i].machine, written.coordinates[i].machine);
    EXPECT_EQ(read->coordinates[i].trainer, written.coordinates[i].trainer);
    EXPECT_EQ(read->coordinates[i].spread, written.coordinates[i].spread);
    EXPECT_NEAR(read->values[i], written.values[i], 1e-4);
  }
  ASSERT_EQ(read->covariance.size(), written.covariance.size());
  for (std::size_t i = 0; i < written.covariance.size(); ++i)
    EXPECT_NEAR(read->covariance[i], written.covariance[i], 1e-3 * std::abs(written.covariance[i]) + 1e-12);
}

TEST(LoadConstants, AWrittenFileIsWrittenTheSameAgain) {
  const std::string text = constants_to_yaml(some_constants(), "of a test");
  EXPECT_EQ(text.rfind("# of a test\n", 0), 0u);
  Defects defects;
  const auto read = constants_from_yaml(text, "c.yaml", defects);
  ASSERT_TRUE(read.has_value()) << describe(defects);
  EXPECT_EQ(constants_to_yaml(*read, "of a test"), text);
}

TEST(LoadConstants, TheConstantsOfARunAreTheProductOfItsParts) {
  Defects defects;
  const auto read = constants_from_yaml(constants_to_yaml(some_constants(), ""), "c.yaml", defects);
  ASSERT_TRUE(read.has_value()) << describe(defects);
  const StepConstants book = book_constants();
  EXPECT_NEAR(constants_of(*read, "nanotron", "h100-80gb").gemm, book.gemm * 0.97 * 1.02, 1e-4);
  EXPECT_NEAR(constants_of(*read, "generic", "a100-80gb").gemm, book.gemm * 0.97, 1e-4);
  EXPECT_NEAR(constants_of(*read, "nanotron", "h100-80gb").whole, book.whole * 0.9, 1e-4);
  EXPECT_NEAR(constants_of(*read, "nanotron", "a100-80gb").whole, book.whole, 1e-9);
}

TEST(LoadConstants, ASectionThatIsMissingIsAnError) {
  const Defects defects = defects_of("noise: {run: 0.08}\ncoordinates: []\nfitted_runs: []\n");
  ASSERT_EQ(defects.size(), 1u);
  EXPECT_THAT(defects[0].message, HasSubstr("covariance is missing"));
  EXPECT_THAT(defects[0].remedy, HasSubstr("calibrate --runs"));
}

TEST(LoadConstants, AnUnknownConstantAndADeviationThatItHasNotAreErrorsWithTheirLine) {
  const Defects unknown = defects_of(text_with("{run: 0.08}", "{constant: speed, factor: 1.1}", "\"1\""));
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].line, 3);
  EXPECT_EQ(unknown[0].key, "coordinates");
  EXPECT_THAT(unknown[0].message, HasSubstr("'speed' is no constant"));
  const Defects deviation =
      defects_of(text_with("{run: 0.08}", "{constant: gemm, trainer: nanotron, factor: 1.1}", "\"1\""));
  ASSERT_EQ(deviation.size(), 1u);
  EXPECT_EQ(deviation[0].line, 3);
  EXPECT_THAT(deviation[0].message, HasSubstr("gemm has no such deviation"));
}

TEST(LoadConstants, NumbersThatAreNoneAreErrorsWithTheirKeyAndLine) {
  const Defects noise = defects_of(text_with("{run: much}", "{constant: gemm, factor: 1.1}", "\"1\""));
  ASSERT_EQ(noise.size(), 1u);
  EXPECT_EQ(noise[0].key, "noise.run");
  EXPECT_EQ(noise[0].line, 1);
  for (const char* factor : {"factor: 0", "factor: -1", "factor: 1.1x", "factr: 1"}) {
    const Defects defects =
        defects_of(text_with("{run: 0.08}", "{constant: gemm, " + std::string(factor) + "}", "\"1\""));
    ASSERT_EQ(defects.size(), 1u) << factor;
    EXPECT_EQ(defects[0].key, "coordinates.gemm.factor");
    EXPECT_EQ(defects[0].line, 3);
  }
}

TEST(LoadConstants, DegreesOfFreedomAreFiveUnlessGivenAndAtLeastOne) {
  Defects none;
  const std::string one = "{constant: gemm, factor: 1.1}";
  EXPECT_EQ(constants_from_yaml(text_with("{run: 0.08}", one, "\"1\""), "c.yaml", none)->freedom, 5);
  const Defects defects = defects_of(text_with("{run: 0.08, freedom: 0.5}", one, "\"1\""));
  ASSERT_EQ(defects.size(), 1u);
  EXPECT_EQ(defects[0].key, "noise.freedom");
  EXPECT_EQ(defects[0].line, 1);
}

// A user's cluster is none of the published ones.
TEST(LoadConstants, TheBuiltInSetHasNothingOfSingleClusters) {
  for (const PooledCoordinate& at : built_in_constants().coordinates)
    EXPECT_TRUE(at.machine.empty() || at.trainer.empty()) << at.machine << ' ' << at.trainer;
}

TEST(LoadConstants, ACovarianceOfAnotherSizeIsAnErrorWithItsLine) {
  const std::string one = "{constant: gemm, factor: 1.1}";
  const Defects rows = defects_of(text_with("{run: 0.08}", one, "\"1\"\n  - \"0 1\""));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key, "covariance");
  EXPECT_THAT(rows[0].message, HasSubstr("2 rows for 1"));
  const Defects numbers = defects_of(text_with("{run: 0.08}", one, "\"none\""));
  ASSERT_EQ(numbers.size(), 1u);
  EXPECT_EQ(numbers[0].line, 5);
  EXPECT_THAT(numbers[0].message, HasSubstr("has no 1 numbers"));
}

TEST(LoadConstants, AFileIsReadFromWhereItsKeyIs) {
  const ScenarioFolder folder;
  folder.write("own.yaml", constants_to_yaml(some_constants(), "mine"));
  const Reference from{{"s.yaml", 4}, "cluster.constants", folder.path().string()};
  Defects defects;
  EXPECT_TRUE(load_constants("own.yaml", from, defects).has_value()) << describe(defects);
  EXPECT_FALSE(load_constants("nowhere.yaml", from, defects).has_value());
  ASSERT_EQ(defects.size(), 1u);
  EXPECT_EQ(defects[0].key, "cluster.constants");
  EXPECT_EQ(defects[0].file, "s.yaml");
  EXPECT_EQ(defects[0].line, 4);
}

TEST(LoadConstants, TheTablesThatTheyWereFittedToReadBack) {
  const std::vector<FittedTable> written{{"scenarios/studies/one/runs.csv", 12, "00000000000000ff"},
                                         {"two.csv", 3, "1234567890123456"}};
  const std::string text = constants_to_yaml(some_constants(), "of a test", written);
  Defects defects;
  EXPECT_EQ(tables_from_yaml(text, "c.yaml", defects), written);
  EXPECT_TRUE(constants_from_yaml(text, "c.yaml", defects).has_value());
  EXPECT_TRUE(tables_from_yaml(constants_to_yaml(some_constants(), "none"), "c.yaml", defects).empty());
  EXPECT_TRUE(defects.empty()) << describe(defects);
  EXPECT_TRUE(tables_from_yaml("tables:\n  - {file: t.csv, runs: many}\n", "c.yaml", defects).empty());
  ASSERT_EQ(defects.size(), 1u);
  EXPECT_EQ(defects[0].line, 2);
}

// It was fitted to the study's tables as they are now. Who changes a row that a fit reads, or a reader, fits again
// (CONTRIBUTING.md), or shows that the change moves no price and writes the new checksum.
TEST(LoadConstants, TheBuiltInSetIsThatOfTheTablesAsTheyAre) {
  const std::vector<FittedTable>& tables = tables_of_built_in_constants();
  ASSERT_EQ(tables.size(), embedded_tables().size());
  int runs = 0;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const EmbeddedFile& file = embedded_tables()[i];
    std::istringstream in{std::string(file.text)};
    const PublishedTable table = read_table(in, std::string(file.path));
    EXPECT_EQ(tables[i].file, file.path);
    EXPECT_EQ(tables[i].checksum, checksum_of_scored(table))
        << file.path << " or its reader has changed since models/machine/fitted_constants.yaml was fitted; "
        << "slipway validate --pooled --constants models/machine/fitted_constants.yaml";
    const auto scored = std::ranges::count_if(table.rows, [](const PublishedRow& row) {
      return row.unpriceable.empty() && exclusion_of(row) == Exclusion::none;
    });
    EXPECT_EQ(tables[i].runs, scored) << file.path;
    runs += tables[i].runs;
  }
  EXPECT_THAT(std::string(embedded_constants().front().text),
              HasSubstr("fitted to " + std::to_string(runs) + " published runs"));
}

TEST(LoadConstants, WhatItsRunsWereLikeIsThatOfTheTables) {
  EXPECT_EQ(fitted_runs_to_yaml(built_in_constants().seen), fitted_runs_to_yaml(fitted_runs(published_rows())))
      << "write this section into models/machine/fitted_constants.yaml";
}

// Rows that are not as a program writes them are read by YAML.
TEST(LoadConstants, RowsOfTheCovarianceAreTheSameNumbersByYamlAndAsTheyStand) {
  const std::string text(embedded_constants().front().text);
  std::string rest = text;
  const auto rows = take_number_rows(rest, "covariance");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->size(), built_in_constants().coordinates.size());
  EXPECT_EQ(std::ranges::count(rest, '\n'), std::ranges::count(text, '\n')) << "other lines keep their numbers";
  std::string apart = text;
  const std::size_t at = apart.find("\ncovariance:\n");
  for (std::size_t row = apart.find("\n  - \"", at); row != std::string::npos; row = apart.find("\n  - \"", row))
    apart.insert(row + 4, " ");
  std::string same = apart;
  EXPECT_FALSE(take_number_rows(same, "covariance"));
  EXPECT_EQ(same, apart);
  Defects defects;
  const auto by_yaml = constants_from_yaml(apart, "c.yaml", defects);
  ASSERT_TRUE(by_yaml) << describe(defects);
  EXPECT_EQ(by_yaml->covariance, built_in_constants().covariance);
}

TEST(LoadConstants, AFileThatDoesNotSayWhatItsRunsWereLikeIsRefused) {
  std::string text = constants_to_yaml(some_constants(), "of a test");
  const std::string section = fitted_runs_to_yaml(some_constants().seen);
  text.erase(text.find(section), section.size());
  Defects defects;
  EXPECT_FALSE(constants_from_yaml(text, "c.yaml", defects));
  ASSERT_EQ(defects.size(), 1u);
  EXPECT_EQ(defects[0].key, "fitted_runs");
  EXPECT_THAT(defects[0].remedy, HasSubstr("slipway calibrate --runs"));
}

TEST(LoadConstants, TheChecksumOfATableIsThatOfTheSettingsAndSecondsOfItsScoredRows) {
  const std::string header = text_of_columns(), row =
                                                    "megatron-lm,a100-80gb,own,llama,4,1024,2816,16,8,32000,false,"
                                                    "1024,8,4,2,true,1,2,1,1,2,16,full,flash1,float32,";
  const auto checksum = [&](const std::string& rows) { return checksum_of_scored(table_of(runs_text(header + rows))); };
  const std::string sound = checksum(row + "ok,1,8e9\n");
  EXPECT_EQ(checksum(row + "ok,1.0,9e9\n" + row + "oom,,\n"), sound) << "what no fit of times reads";
  EXPECT_NE(checksum(row + "ok,1.01,8e9\n"), sound);
  EXPECT_NE(checksum(row + "ok,1,8e9\n" + row + "ok,1,8e9\n"), sound);
  EXPECT_NE(checksum("megatron-core" + row.substr(std::string("megatron-lm").size()) + "ok,1,8e9\n"), sound);
}

TEST(LoadConstants, TheBuiltInSetReadsAndIsOne) {
  ASSERT_EQ(embedded_constants().size(), 1u);
  const PooledConstants& built_in = built_in_constants();
  EXPECT_FALSE(built_in.coordinates.empty());
  EXPECT_GT(built_in.row_spread, 0);
  for (std::size_t i = 0; i < built_in.coordinates.size(); ++i)
    EXPECT_GT(built_in.covariance[i * built_in.coordinates.size() + i], 0);
}

}  // namespace
}  // namespace slipway::test
