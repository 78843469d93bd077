#include "scenarios/laboratory/tables/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "models/model/megatron_flops.h"
#include "scenarios/files/cells.h"
#include "scenarios/files/csv.h"
#include "scenarios/files/files.h"
#include "scenarios/files/program_folder.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/laboratory/tables/embedded_tables.h"
#include "scenarios/language/aliases.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/overrides.h"
#include "scenarios/predict/load_scenario.h"
#include "schedules/graph/parallel.h"

namespace slipway::scenarios {
namespace {

constexpr RunColumn columns[] = {
    {"scenario", "the run as YAML in flow style on one line, in the keys of any scenario (slipway list keys)", true},
    {"model", "its model's name, where the scenario gives shapes"},
    {"status", "ok, oom, infeasible or other", true},
    {"step_s", "seconds of a step; empty: they follow from tflops_per_gpu by Megatron-LM's FLOP formula", true},
    {"tflops_per_gpu", "as published"},
    {"allocated_bytes", "allocated after a step"},
    {"reserved_bytes", "most that the allocator reserved"},
    {"printed",
     "where these two count tensors alone, as PyTorch prints them: settings in YAML (fixed_workspace, "
     "transformer_engine, dropout, logit_bytes, optimizer_more_bytes)"},
    {"all_reduce_bytes_per_s", "of an all-reduce test that the run made inside a node"},
    {"excluded",
     "why its time is not scored: after_pp_fix, no_layout, memory_only, contradiction, superseded, "
     "unknown_recipe; several with blanks"},
    {"not_modelled", "what the run has that no key says, several with ;  it is then not priced"},
    {"transport", "what carries tokens to experts, where rows of a study differ in it"},
    {"table", "rows among which a user would choose; empty: model, sequence, machine, GPUs and batch"},
    {"group", "rows that a fit leaves out together; empty: model, sequence and machine"},
    {"choice", "rows that are left out together when a layout is recommended; empty: table"},
    {"study", "rows that differ in one lever each"},
    {"assumed", "what the source does not say and the scenario has"},
    {"source", "of the row"},
};

constexpr const char* remedy = "`slipway list tables` prints the columns of a table of runs";

bool has_all(const std::vector<std::string>& header, const std::vector<std::string_view>& names) {
  return std::ranges::all_of(names,
                             [&](std::string_view name) { return std::ranges::find(header, name) != header.end(); });
}

// The path of the converter of this program: above its folder in a build and in a package.
std::string place_of(std::string_view path) {
  std::filesystem::path folder = program_folder();
  for (int up = 0; up < 4; ++up, folder = folder.parent_path()) {
    std::error_code ignored;
    const std::filesystem::path here = folder / path;
    if (std::filesystem::exists(here, ignored)) return here.string();
  }
  return std::string(path);
}

[[noreturn]] void refuse_header(const CsvTable& table) {
  const std::string place = table.file + ":" + std::to_string(table.header_line) + ": ";
  const Converter* found = nullptr;
  for (const Converter& each : converters())
    if (has_all(table.header, each.columns) && (found == nullptr || each.columns.size() > found->columns.size()))
      found = &each;
  if (found != nullptr)
    throw std::runtime_error(place + "these are the columns of a publisher, not of runs; convert it: python3 " +
                             place_of(found->path) + " " + table.file + " -o OUT.csv, and give OUT.csv");
  std::vector<std::string_view> missing;
  for (const RunColumn& column : columns)
    if (column.required && std::ranges::find(table.header, column.name) == table.header.end())
      missing.push_back(column.name);
  throw std::runtime_error(place + fmt::format("this is no table of runs: it lacks {} {}; {}",
                                               missing.size() == 1 ? "column" : "columns", fmt::join(missing, ", "),
                                               remedy));
}

// "layout.tensor" → "2"; lists as in YAML's flow style.
void add_keys(const Value& value, const std::string& path, std::map<std::string, std::string>& keys) {
  if (value.kind == Value::Kind::map)
    for (const Entry& entry : value.entries)
      add_keys(entry.value, path.empty() ? entry.key : path + "." + entry.key, keys);
  else
    keys[path] = value.kind == Value::Kind::scalar ? value.text : to_one_line(value);
}

std::string key_or(const PublishedRow& row, const char* key) {
  const auto found = row.keys.find(key);
  return found == row.keys.end() ? "" : found->second;
}

// Parses a text with one value on each side of ": ".
std::map<std::string, std::string> settings_in(const std::string& text, const char* column) {
  Defects defects;
  const std::optional<Value> document = parse_document(text, "", defects);
  if (!document || (document->kind != Value::Kind::map && text != "{}"))
    throw CellError(fmt::format("column {}: '{}' is no map of YAML, such as {{dropout: true}}", column, text));
  std::map<std::string, std::string> keys;
  add_keys(*document, "", keys);
  return keys;
}

double number_above_zero(const std::string& text, const std::string& name) {
  const std::vector<std::string> header{name};
  const CsvRow row{0, {text}};
  return Cells(header, row).above_zero(name);
}

PrintedSettings printed_in(const std::string& text) {
  PrintedSettings settings;
  for (const auto& [name, value] : settings_in(text, "printed")) {
    const bool is_flag = value == "true" || value == "false";
    if (name == "fixed_workspace" && is_flag)
      settings.fixed_workspace = value == "true";
    else if (name == "transformer_engine" && is_flag)
      settings.transformer_engine = value == "true";
    else if (name == "dropout" && is_flag)
      settings.dropout = value == "true";
    else if (name == "logit_bytes")
      settings.logit_bytes = number_above_zero(value, name);
    else if (name == "optimizer_more_bytes")
      settings.optimizer_more_bytes = number_above_zero(value, name);
    else
      throw CellError(
          fmt::format("column printed: '{}: {}' is none of fixed_workspace, transformer_engine, dropout "
                      "(true, false), logit_bytes, optimizer_more_bytes (numbers)",
                      name, value));
  }
  return settings;
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    const std::size_t begin = part.find_first_not_of(' '), end = part.find_last_not_of(' ');
    if (begin != std::string::npos) parts.push_back(part.substr(begin, end + 1 - begin));
  }
  return parts;
}

void read_results(const Cells& cells, PublishedRow& row) {
  row.status = cells.choice("status", status_names);
  row.step_s = cells.number_or("step_s", 0);
  row.tflops_per_gpu = cells.number_or("tflops_per_gpu", 0);
  row.allocated_bytes = cells.number_or("allocated_bytes", 0);
  row.reserved_bytes = cells.number_or("reserved_bytes", 0);
  row.all_reduce_bytes_per_s = cells.number_or("all_reduce_bytes_per_s", 0);
  row.printed_text = cells.text("printed");
  if (!row.printed_text.empty()) row.printed = printed_in(row.printed_text);
  for (const std::string& word : parts_of(cells.text("excluded"), ' ')) {
    const std::optional<Exclusion> rule = value_in(exclusion_names, word);
    if (!rule || *rule == Exclusion::none || *rule == Exclusion::status || *rule == Exclusion::all_reduce_test)
      throw CellError("column excluded: '" + word +
                      "' is none of after_pp_fix, no_layout, memory_only, contradiction, superseded, unknown_recipe");
    row.excluded.insert(*rule);
  }
}

void set_place(const Cells& cells, PublishedRow& row) {
  const auto key = [&](const char* column, const std::string& otherwise) {
    return cells.empty(column) ? otherwise : cells.text(column);
  };
  std::string group = row.machine, table = row.machine;
  if (row.scenario) {
    const Step& step = row.scenario->step;
    group = fmt::format("{} at {} on {}", step.model->name, step.model->sequence, row.machine);
    table = fmt::format("{} on {} GPUs, batch {}", group, gpus_of(row), step.global_batch);
  }
  row.group = key("group", group);
  row.table = key("table", table);
  row.choice = key("choice", row.table);
  row.study = cells.text("study"), row.source = cells.text("source"), row.assumed = cells.text("assumed");
  if (!cells.empty("transport")) row.keys["transport"] = cells.text("transport");
}

// The scenario, where the language has all of it.
void load(PublishedRow& row, const Value& document) {
  LoadResult loaded = load_run(document);
  for (const ScenarioError& error : loaded.errors)
    row.unpriceable += fmt::format("{}{}: {}", row.unpriceable.empty() ? "" : "; ", error.key, error.message);
  if (!loaded.errors.empty()) return;
  Scenario& scenario = loaded.scenario;
  if (!row.model.empty()) {
    Model named = *scenario.step.model;
    named.name = row.model;
    scenario.step.model = std::move(named);
  }
  row.trainer = scenario.trainer.name;
  row.machine = scenario.cluster.groups[0].machine.name;
  row.step = scenario.step;
  row.scenario = std::make_shared<const Scenario>(std::move(scenario));
}

// Derives and checks values that need scenario and results together.
void check_results(PublishedRow& row) {
  if (row.status != RowStatus::ok) return;
  if (row.scenario && row.step_s == 0 && row.tflops_per_gpu > 0) {
    constexpr double tera = 1e12;
    row.step_s = tokens_per_step(row) * megatron_flops_per_token(megatron_count(*row.scenario->step.model)) /
                 (gpus_of(row) * row.tflops_per_gpu * tera);
    row.assumed +=
        (row.assumed.empty() ? "" : "; ") + std::string("seconds follow from TFLOP/s by Megatron's FLOP formula");
  }
  if (row.scenario && row.step_s > 0) {
    const auto& peaks = row.scenario->cluster.groups[0].machine.peak_flops;
    if (mfu_of(row, row.step_s, *std::max_element(peaks.begin(), peaks.end())) > 1)
      row.excluded.insert(Exclusion::contradiction);
  }
  const bool is_scored = row.not_modelled.empty() && !row.excluded.contains(Exclusion::no_layout);
  if (is_scored && row.unpriceable.empty() && !(row.step_s > 0))
    throw CellError("status is ok but its figures give no step time above 0");
}

void read_run(const Cells& cells, PublishedRow& row) {
  read_results(cells, row);
  row.text = cells.text("scenario"), row.model = cells.text("model");
  row.not_modelled = parts_of(cells.text("not_modelled"), ';');
  Defects defects;
  std::optional<Value> document;
  if (!row.text.empty()) document = parse_document(row.text, "scenario", defects);
  if (document) {
    expand_shorthands(*document, scenario_keys());
    use_canonical_names(*document);
    add_keys(*document, "", row.keys);
    row.trainer = key_or(row, "cluster.trainer");
    if (const std::string machine = key_or(row, "cluster.machine"); !machine.empty()) row.machine = machine;
  }
  if (!row.not_modelled.empty())
    row.unpriceable = fmt::format("not modelled: {}", fmt::join(row.not_modelled, ", "));
  else if (row.excluded.contains(Exclusion::no_layout))
    row.unpriceable = "its source does not say its layout";
  else if (row.text.empty())
    row.unpriceable = "column scenario is empty";
  else if (!document)
    row.unpriceable = "column scenario: " + defects.front().message;
  else
    load(row, *document);
  set_place(cells, row);
  check_results(row);
}

PublishedRow read_row(const CsvTable& table, const CsvRow& source) {
  PublishedRow row;
  row.line = source.line;
  row.status = RowStatus::ok;  // until it is read: an unreadable row is not skipped
  row.machine = row.table = row.group = row.choice = "unreadable";
  if (source.fields.size() != table.header.size()) {
    row.unpriceable = "it has " + std::to_string(source.fields.size()) + " fields where the header has " +
                      std::to_string(table.header.size());
    return row;
  }
  try {
    read_run(Cells(table.header, source), row);
  } catch (const CellError& error) {
    row.unpriceable = error.what();
    row.scenario = nullptr;
  }
  return row;
}

std::string optional_text(double value) { return value > 0 ? fmt::format("{}", value) : ""; }

// Names the first table of the folder, so that the next try works.
void refuse_folder(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return;
  std::string first;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))  // not recursive
    if (const std::string found = entry.path().string(); found.ends_with(".csv") && (first.empty() || found < first))
      first = found;
  throw UsageError(path + " is a folder; give tables (CSV)" + (first.empty() ? "" : ", for example " + first));
}

std::vector<Converter> read_converters() {
  std::vector<Converter> all;
  for (const EmbeddedFile& file : embedded_converters()) {
    std::string_view left = file.text;
    for (std::size_t end = left.find('\n'); end != std::string_view::npos; end = left.find('\n')) {
      Converter& converter = all.emplace_back(Converter{file.path, {}});
      for (std::string_view line = left.substr(0, end); !line.empty();) {
        const std::size_t next = std::min(line.find(", "), line.size());
        converter.columns.push_back(line.substr(0, next));
        line.remove_prefix(std::min(next + 2, line.size()));
      }
      left.remove_prefix(end + 1);
    }
  }
  return all;
}

}  // namespace

std::span<const RunColumn> run_columns() { return columns; }

const std::vector<Converter>& converters() {
  static const std::vector<Converter> all = read_converters();
  return all;
}

PublishedTable read_table(std::istream& in, const std::string& file) {
  const CsvTable table = read_csv(in, file);
  for (const RunColumn& column : columns)
    if (column.required && std::ranges::find(table.header, column.name) == table.header.end()) refuse_header(table);
  PublishedTable result{file, table.comments.empty() ? file : table.comments.front(), {}, {}};
  result.rows.resize(table.rows.size());
  constexpr std::size_t effort = 3'000;  // a tenth of a millisecond and more for each
  schedules::each_in_parallel(table.rows.size(), table.rows.size() * effort,
                              [&](std::size_t i) { result.rows[i] = read_row(table, table.rows[i]); });
  for (const std::string& name : table.header)
    if (std::ranges::find(columns, name, &RunColumn::name) == std::end(columns)) result.unread.push_back(name);
  return result;
}

PublishedTable read_table_file(const std::string& path) {
  refuse_folder(path);
  if (const std::string reason = unreadable(path); !reason.empty())
    throw UsageError("cannot read the table " + path + ": " + reason + "; give a CSV file");
  std::ifstream in(path);
  try {
    return read_table(in, path);
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

std::vector<std::string> run_fields(const PublishedRow& row) {
  std::vector<std::string_view> excluded;
  for (const Exclusion rule : row.excluded) excluded.push_back(name_of(rule));
  const auto transport = row.keys.find("transport");
  return {row.text,
          row.model,
          name_of(row.status),
          optional_text(row.step_s),
          optional_text(row.tflops_per_gpu),
          optional_text(row.allocated_bytes),
          optional_text(row.reserved_bytes),
          row.printed_text,
          optional_text(row.all_reduce_bytes_per_s),
          fmt::format("{}", fmt::join(excluded, " ")),
          fmt::format("{}", fmt::join(row.not_modelled, "; ")),
          transport == row.keys.end() ? "" : transport->second,
          row.table,
          row.group,
          row.choice,
          row.study,
          row.assumed,
          row.source};
}

std::string table_text(const std::vector<const PublishedRow*>& rows) {
  std::vector<std::string> header;
  for (const RunColumn& column : columns) header.emplace_back(column.name);
  std::string text = csv_line(header);
  for (const PublishedRow* row : rows) text += csv_line(run_fields(*row));
  return text;
}

const std::vector<PublishedRow>& published_rows() {
  static const std::vector<PublishedRow> all = [] {
    std::vector<PublishedRow> rows;
    for (const EmbeddedFile& file : embedded_tables()) {
      std::istringstream in{std::string(file.text)};
      for (PublishedRow& row : read_table(in, std::string(file.path)).rows) rows.push_back(std::move(row));
    }
    return rows;
  }();
  return all;
}

}  // namespace slipway::scenarios
