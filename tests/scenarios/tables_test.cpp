// Tables of runs: a scenario and its results in each row, what is refused and why, and the converters that are named.
#include "scenarios/tables/table.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "scenarios/tables/price.h"
#include "tests/support/table_text.h"

namespace slipway::test {

namespace {

using testing::Contains;
using testing::HasSubstr;

const std::string gpt2 =
    "{model: gpt2, cluster: {machine: a100-80gb, gpus_per_node: 8, trainer: megatron-lm}, schedule: {global_batch: "
    "16}}";
const std::string header = "scenario,status,step_s\n";

std::string row_of(const std::string& scenario, const std::string& results) {
  return '"' + scenario + "\"," + results + '\n';
}

PublishedTable study(const std::string& name) {
  return read_table_file(SLIPWAY_SOURCE_DIR "/scenarios/studies/" + name + "/runs.csv");
}

TEST(Tables, ARowIsAScenarioAndItsResults) {
  const PublishedTable table = table_of("# of a test\n" + header + row_of(gpt2, "ok,0.5"));
  ASSERT_EQ(table.rows.size(), 1u);
  const PublishedRow& row = table.rows[0];
  ASSERT_EQ(row.unpriceable, "");
  EXPECT_EQ(table.source, "of a test");
  EXPECT_EQ(row.line, 3);
  EXPECT_EQ(row.step_s, 0.5);
  EXPECT_EQ(row.trainer, "megatron-lm");
  EXPECT_EQ(row.machine, "a100-80gb");
  EXPECT_EQ(gpus_of(row), 8);
  EXPECT_EQ(row.keys.at("model.name"), "gpt2");
  EXPECT_EQ(row.group, "gpt2 at 1024 on a100-80gb");
  EXPECT_EQ(row.table, "gpt2 at 1024 on a100-80gb on 8 GPUs, batch 16");
  EXPECT_EQ(row.choice, row.table);
  EXPECT_EQ(exclusion_of(row), Exclusion::none);
  EXPECT_GT(price(row).step_s, 0);
}

TEST(Tables, NamesOfModelsMachinesAndTrainersMayBeAliases) {
  const PublishedTable table = table_of(
      header + row_of("{model: llama31_405b, cluster: {machine: NVIDIA H100, trainer: mcore}}", "oom,") +
      row_of(
          "{model: Meta-Llama-3.1-405B, cluster: {machine: H100, nodes: 64, gpus_per_node: 8, trainer: Megatron Core}, "
          "layout: {tensor: 8, pipeline: 9}, schedule: {global_batch: 64}}",
          "oom,"));
  EXPECT_EQ(table.rows[0].trainer, "megatron-core");
  EXPECT_EQ(table.rows[0].keys.at("model.name"), "llama-3.1-405b");
  EXPECT_EQ(table.rows[1].machine, "h100-80gb");
}

TEST(Tables, WhatTheLanguageRefusesMakesARowThatCannotBePricedWithTheRefusal) {
  const PublishedTable table = table_of(
      header + row_of("{model: gpt2, cluster: {machine: a100-80gb, gpus_per_node: 8}, layout: {tensor: 5}}", "ok,1") +
      row_of("{model: gpt2, cluster: {machine: a100-80gb, gpus_per_node: 8}, layout: {warp: 5}}", "ok,1") +
      row_of("{model: mamba, cluster: {machine: abacus, gpus_per_node: 8}}", "ok,1") + row_of("{model: [", "ok,1") +
      ",ok,1\n");
  EXPECT_THAT(table.rows[0].unpriceable, HasSubstr("layout."));
  EXPECT_THAT(table.rows[1].unpriceable, HasSubstr("layout.warp: unknown key"));
  EXPECT_EQ(table.rows[1].machine, "a100-80gb") << "also where it is refused";
  EXPECT_THAT(table.rows[2].unpriceable, HasSubstr("model.name: 'mamba'"));
  EXPECT_THAT(table.rows[2].unpriceable, HasSubstr("abacus"));
  EXPECT_THAT(table.rows[3].unpriceable, HasSubstr("column scenario: "));
  EXPECT_EQ(table.rows[4].unpriceable, "column scenario is empty");
  for (const PublishedRow& row : table.rows) {
    EXPECT_EQ(row.scenario, nullptr);
    EXPECT_EQ(price(row).cannot, row.unpriceable);
    EXPECT_EQ(exclusion_of(row), Exclusion::none) << "it counts as an error";
  }
}

TEST(Tables, WhatNoKeySaysIsNotPricedAndKeepsItsKeys) {
  const PublishedTable table =
      table_of("scenario,status,step_s,not_modelled\n" +
               row_of("{model: gpt2, run: {fp9: yes}}", "ok,1,hybrid layers (Mamba); a paper clip"));
  EXPECT_EQ(table.rows[0].unpriceable, "not modelled: hybrid layers (Mamba), a paper clip");
  EXPECT_THAT(table.rows[0].not_modelled, Contains("a paper clip"));
  EXPECT_EQ(table.rows[0].keys.at("run.fp9"), "yes");
}

TEST(Tables, ExclusionsAreWordsOfWhichTheFirstCountsAndAFaultyNetworkFollowsFromItsTest) {
  const PublishedTable table = table_of("scenario,status,step_s,excluded,all_reduce_bytes_per_s\n" +
                                        row_of(gpt2, "ok,1,unknown_recipe superseded,") + row_of(gpt2, "ok,1,,290e9") +
                                        row_of(gpt2, "ok,1,after_pp_fix,290e9") + row_of(gpt2, "oom,,superseded,") +
                                        row_of(gpt2, "ok,1,bad_luck,") + row_of(gpt2, "ok,1e-9,,"));
  EXPECT_EQ(exclusion_of(table.rows[0]), Exclusion::superseded);
  EXPECT_EQ(exclusion_of(table.rows[1]), Exclusion::all_reduce_test);
  EXPECT_EQ(exclusion_of(table.rows[2]), Exclusion::after_pp_fix);
  EXPECT_EQ(exclusion_of(table.rows[3]), Exclusion::status);
  EXPECT_THAT(table.rows[4].unpriceable, HasSubstr("column excluded: 'bad_luck' is none of"));
  EXPECT_EQ(exclusion_of(table.rows[5]), Exclusion::contradiction) << "faster than the GPU's peak";
}

// GPT-2 on eight GPUs at 100 TFLOP/s each: Megatron's formula counts layers, half of the scores and logits three times.
TEST(Tables, WithoutSecondsTheyFollowFromTeraflopsByMegatronsFormula) {
  const PublishedTable table = table_of("scenario,status,step_s,tflops_per_gpu\n" + row_of(gpt2, "ok,,100"));
  const double L = 12, h = 768, s = 1024, V = 50257;
  EXPECT_NEAR(table.rows[0].step_s, 16 * s * (72 * L * h * h * (1 + s / (12 * h) + V / (12 * L * h))) / (8 * 100e12),
              0.01 * table.rows[0].step_s);
  EXPECT_THAT(table.rows[0].assumed, HasSubstr("Megatron's FLOP formula"));
}

TEST(Tables, BrokenRowsStayInAndSayWhatIsWrong) {
  const PublishedTable table = table_of(
      "scenario,status,step_s,printed\n" + row_of(gpt2, "ok,-1,") + row_of(gpt2, "fine,1,") + row_of(gpt2, "ok,,") +
      "gpt2\n" + row_of(gpt2, "ok,1,{colour: red}") + row_of(gpt2, "ok,1,\"{dropout: true, logit_bytes: 10}\""));
  const char* reasons[] = {"column step_s: '-1'", "column status: 'fine'", "no step time above 0", "it has 1 fields",
                           "column printed: 'colour: red'"};
  ASSERT_EQ(table.rows.size(), 6u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_THAT(table.rows[i].unpriceable, HasSubstr(reasons[i]));
  ASSERT_EQ(table.rows[5].unpriceable, "");
  EXPECT_TRUE(table.rows[5].printed->dropout);
  EXPECT_EQ(table.rows[5].printed->logit_bytes, 10);
}

TEST(Tables, RowsReadBackAsTheyAreWritten) {
  for (const char* name : {"ultrascale-2025", "megatron-golden-2026", "feature-effects-2026"}) {
    const PublishedTable table = study(name);
    std::vector<const PublishedRow*> rows;
    for (const PublishedRow& row : table.rows) rows.push_back(&row);
    const PublishedTable again = table_of(table_text(rows));
    ASSERT_EQ(again.rows.size(), table.rows.size()) << name;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      EXPECT_EQ(run_fields(again.rows[i]), run_fields(table.rows[i])) << name;
      EXPECT_EQ(exclusion_of(again.rows[i]), exclusion_of(table.rows[i])) << name;
    }
  }
}

TEST(Tables, AHeaderOfAPublisherIsRefusedWithTheCommandOfItsConverter) {
  int named = 0;
  for (const Converter& each : converters()) {
    std::string columns;
    for (const std::string_view column : each.columns) columns += (columns.empty() ? "" : ",") + std::string(column);
    try {
      table_of("own," + columns + "\n");
      ADD_FAILURE() << each.path;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("t.csv:1: these are the columns of a publisher"));
      EXPECT_THAT(error.what(), HasSubstr("python3 "));
      EXPECT_THAT(error.what(), HasSubstr(std::string(each.path) + " t.csv -o OUT.csv"));
      ++named;
    }
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(SLIPWAY_SOURCE_DIR) / each.path)) << each.path;
  }
  EXPECT_EQ(named, 21);
}

TEST(Tables, AnyOtherHeaderIsOneErrorThatNamesWhatIsMissing) {
  try {
    table_of("scenario,bytes,time_us\n");
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("t.csv:1: this is no table of runs: it lacks columns status, step_s"));
    EXPECT_THAT(error.what(), HasSubstr("slipway list tables"));
  }
}

// 41 of 42 rows of a study are of its source; a reader of tables adds none and loses none.
TEST(Studies, EveryTableIsInTheFormatAndItsRowsWithALayoutLoadOrSayWhy) {
  int tables = 0, priceable = 0, all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SLIPWAY_SOURCE_DIR "/scenarios/studies")) {
    if (!std::filesystem::exists(entry.path() / "runs.csv")) continue;
    const PublishedTable table = study(entry.path().filename());
    EXPECT_TRUE(table.unread.empty()) << entry.path();
    for (const PublishedRow& row : table.rows) {
      priceable += row.scenario ? 1 : 0, ++all;
      EXPECT_EQ(row.unpriceable.empty(), row.scenario != nullptr) << entry.path() << ':' << row.line;
      EXPECT_NE(row.group, "unreadable") << entry.path() << ':' << row.line << ": " << row.unpriceable;
    }
    ++tables;
  }
  EXPECT_EQ(tables, 19);
  EXPECT_GT(priceable, 0.75 * all);
}

TEST(Studies, MegatronsHaveMicroBatchesAndChunksOfTheirAuthors) {
  const PublishedTable table = study("megatron-2021");
  ASSERT_EQ(table.rows.size(), 22u);
  EXPECT_EQ(table.rows[5].scenario->step.layout.chunks, 3);
  EXPECT_EQ(table.rows[5].scenario->step.micro_batch, 2);
  EXPECT_EQ(table.rows[5].scenario->step.schedule, "interleaved-1f1b");
}

}  // namespace

// CSV.

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CsvTable csv_of(const std::string& text) {
  std::istringstream in(text);
  return read_csv(in, "t.csv");
}

std::string error_of(const std::string& text) {
  try {
    csv_of(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLineBreaks) {
  const CsvTable table = csv_of("a,b\n\"x, y\",\"say \"\"hi\"\"\"\n\"two\nlines\",2\nlast,row");
  EXPECT_THAT(table.header, ElementsAre("a", "b"));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_THAT(table.rows[0].fields, ElementsAre("x, y", "say \"hi\""));
  EXPECT_THAT(table.rows[1].fields, ElementsAre("two\nlines", "2"));
  EXPECT_THAT(table.rows[2].fields, ElementsAre("last", "row"));
}

TEST(Csv, EachRowKnowsTheLineOnWhichItBegins) {
  const CsvTable table = csv_of("# source\n# of it\na,b\n\n1,2\n\"x\ny\",3\n4,5\n");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].line, 5);
  EXPECT_EQ(table.rows[1].line, 6);
  EXPECT_EQ(table.rows[2].line, 8);
}

TEST(Csv, ByteOrderMarkCarriageReturnsAndEmptyFieldsDoNoHarm) {
  const CsvTable table = csv_of(
      "\xEF\xBB\xBF"
      "a,b,c\r\n1,,\r\n\"2\",\"\",3\r\n");
  EXPECT_THAT(table.header, ElementsAre("a", "b", "c"));
  EXPECT_THAT(table.rows[0].fields, ElementsAre("1", "", ""));
  EXPECT_THAT(table.rows[1].fields, ElementsAre("2", "", "3"));
}

TEST(Csv, MistakesNameFileLineAndRemedy) {
  EXPECT_THAT(error_of(""), HasSubstr("t.csv: is empty"));
  EXPECT_THAT(error_of("a,a\n"), HasSubstr("two columns are named 'a'"));
  EXPECT_THAT(error_of("a,b\n1,\"open\n"), HasSubstr("t.csv:2: a quoted field is not closed"));
}

TEST(Csv, WhatIsWrittenReadsBack) {
  const std::vector<std::string> fields = {"plain", "a,b", "\"q\"", "two\nlines", ""};
  const CsvTable table = csv_of("1,2,3,4,5\n" + csv_line(fields));
  EXPECT_EQ(table.rows.at(0).fields, fields);
}

}  // namespace

}  // namespace slipway::test
