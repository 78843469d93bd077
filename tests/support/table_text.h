// Published tables as text in a test, and runs written a column for each setting, which is shorter than a scenario each.
//
//   table_of(text)         a table in the format of scenarios/tables/table.h
//   runs_text(columns)     such a table from columns named as their keys: tensor, pipeline, micro_batch, ...
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/tables/table.h"

namespace slipway::test {

inline PublishedTable table_of(const std::string& text) {
  std::istringstream in(text);
  return read_table(in, "t.csv");
}

// Scenario and results of one run. Columns: trainer, machine, model, family, layers, hidden, ffn, heads, kv_heads, vocab,
// tied, sequence, gpus, gpus_per_node, tensor, sequence_parallel, context, pipeline, chunks, zero, micro_batch,
// global_batch, recompute, kernels, dtype; all others are columns of the table.
inline std::vector<std::string> run_cells(std::map<std::string, std::string> run,
                                          const std::vector<std::string>& others) {
  const auto section = [&](std::initializer_list<const char*> keys) {
    std::string text;
    for (const char* key : keys)
      if (!run[key].empty()) text += (text.empty() ? "" : ", ") + std::string(key) + ": " + run[key];
    return "{" + text + "}";
  };
  const int gpus = std::stoi(run["gpus"]), per_node = std::min(gpus, std::stoi(run["gpus_per_node"]));
  run["nodes"] = std::to_string(gpus / per_node), run["gpus_per_node"] = std::to_string(per_node);
  if (run["family"] == "gpt") run.erase("kv_heads");
  if (run["chunks"] != "" && run["chunks"] != "1") run["name"] = "interleaved-1f1b";
  if (run["tensor"] == "1") run.erase("sequence_parallel");
  const std::string scenario =
      "{model: " + section({"family", "layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "tied", "sequence"}) +
      ", cluster: " + section({"machine", "nodes", "gpus_per_node", "trainer"}) +
      ", layout: " + section({"tensor", "sequence_parallel", "context", "pipeline", "chunks", "zero"}) +
      ", schedule: " + section({"name", "micro_batch", "global_batch", "recompute", "kernels"}) +
      ", run: " + section({"dtype"}) + "}";
  std::vector<std::string> cells{scenario, run["model"]};
  for (const std::string& name : others) cells.push_back(run[name]);
  return cells;
}

// `text`: a header of such columns and rows. The columns status and step_s are the table's own.
inline std::string runs_text(const std::string& text) {
  std::istringstream in(text);
  const CsvTable table = read_csv(in, "t.csv");
  std::vector<std::string> others{"status", "step_s"}, header{"scenario", "model", "status", "step_s"};
  for (const RunColumn& column : run_columns())
    if (column.name != "scenario" && column.name != "model" && column.name != "status" && column.name != "step_s" &&
        std::find(table.header.begin(), table.header.end(), column.name) != table.header.end())
      others.emplace_back(column.name), header.emplace_back(column.name);
  std::string out;
  for (const std::string& comment : table.comments) out += "# " + comment + "\n";
  out += csv_line(header);
  for (const CsvRow& row : table.rows) {
    std::map<std::string, std::string> run;
    for (std::size_t i = 0; i < row.fields.size(); ++i) run[table.header[i]] = row.fields[i];
    out += csv_line(run_cells(run, others));
  }
  return out;
}

}  // namespace slipway::test
