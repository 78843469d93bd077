#include "scenarios/language/load_constants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/number_rows.h"

namespace slipway::scenarios {
namespace {

// The prior spread of a coordinate; 0: the constant has no such deviation.
double spread_of(const StepConstant& constant, const PooledCoordinate& at) {
  if (!at.machine.empty() && !at.trainer.empty()) return constant.site;
  if (!at.machine.empty()) return constant.machine;
  return at.trainer.empty() ? constant.spread : constant.trainer;
}

using NumberRows = std::vector<std::vector<double>>;

class ConstantsReader {
 public:
  explicit ConstantsReader(Defects& defects) : defects_(defects) {}

  // `covariance`: its rows, where they were taken out of the text.
  std::optional<PooledConstants> read(const Value& root, const std::optional<NumberRows>& taken = std::nullopt) {
    const std::size_t before = defects_.size();
    PooledConstants pooled;
    const Value* noise = root.find("noise");
    const Value* coordinates = root.find("coordinates");
    const Value* covariance = root.find("covariance");
    if (noise == nullptr || coordinates == nullptr || covariance == nullptr) {
      refuse(root.origin, "coordinates", "noise, coordinates or covariance is missing",
             "name a file that `slipway calibrate --runs` wrote");
      return std::nullopt;
    }
    pooled.row_spread = number(*noise, "run", "noise.run");
    if (const Value* freedom = noise->find("freedom")) {
      pooled.freedom = number(*noise, "freedom", "noise.freedom");
      if (pooled.freedom > 0 && pooled.freedom < 1)
        refuse(freedom->origin, "noise.freedom", "is below 1; allowed: 1 and more",
               "write it again with `slipway calibrate --runs`");
    }
    if (const Value* runs = root.find("runs")) {
      pooled.runs = runs->text;
      if (!pooled.runs.starts_with("scenario,"))
        refuse(runs->origin, "runs", "its runs are in the columns of an earlier version",
               "write it again with `slipway calibrate --runs`, of a table that scenarios/studies/old-runs/convert.py "
               "made");
    }
    read_fitted_runs(root, pooled);
    for (const Value& item : coordinates->items) read_coordinate(item, pooled);
    if (defects_.size() == before) set_covariance(taken ? *taken : rows_of(*covariance), covariance->origin, pooled);
    if (defects_.size() != before) return std::nullopt;
    return pooled;
  }

 private:
  void refuse(const Origin& origin, const std::string& key, const std::string& problem, const std::string& remedy) {
    defects_.push_back({origin.file, origin.line, key, problem, remedy});
  }

  double number(const Value& map, const char* key, const std::string& path) {
    const Value* value = map.find(key);
    double result = 0;
    if (value != nullptr) {
      const char* end = value->text.data() + value->text.size();
      const auto [stop, error] = std::from_chars(value->text.data(), end, result);
      if (error != std::errc() || stop != end) result = 0;
    }
    if (!(result > 0))
      refuse(value == nullptr ? map.origin : value->origin, path, "is no number above 0; allowed: one",
             "write it again with `slipway calibrate --runs`");
    return result;
  }

  void read_coordinate(const Value& item, PooledConstants& pooled) {
    const auto text = [&](const char* key) {
      const Value* value = item.find(key);
      return value == nullptr ? std::string() : value->text;
    };
    const auto table = step_constants();
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const StepConstant& constant) { return constant.name == text("constant"); });
    if (found == table.end())
      return refuse(item.origin, "coordinates", "'" + text("constant") + "' is no constant of a step",
                    "remove it (slipway list constants)");
    PooledCoordinate at{static_cast<std::size_t>(found - table.begin()), text("machine"), text("trainer"), 0};
    at.spread = spread_of(*found, at);
    if (at.spread == 0)
      return refuse(item.origin, "coordinates", std::string(found->name) + " has no such deviation", "remove it");
    pooled.coordinates.push_back(at);
    pooled.values.push_back(std::log(number(item, "factor", "coordinates." + std::string(found->name) + ".factor")));
  }

  void read_fitted_runs(const Value& root, PooledConstants& pooled) {
    const Value* list = root.find("fitted_runs");
    if (list == nullptr)
      return refuse(root.origin, "fitted_runs", "the file does not say what its runs were like",
                    "write it again with `slipway calibrate --runs`");
    for (const Value& item : list->items) {
      FittedRuns& runs = pooled.seen.emplace_back();
      const auto text = [&](const char* key) {
        const Value* value = item.find(key);
        return value == nullptr ? std::string() : value->text;
      };
      runs.trainer = text("trainer"), runs.machine = text("machine");
      const std::optional<FittedOf> of = value_in(models::fitted_of_names, text("of"));
      const Value *ranges = item.find("ranges"), *choices = item.find("choices");
      if (!of || runs.trainer.empty() || runs.machine.empty() || ranges == nullptr || choices == nullptr)
        return refuse(item.origin, "fitted_runs",
                      "has no trainer, machine, ranges or choices, or is of no known results",
                      "write it again with `slipway calibrate --runs`");
      runs.of = *of;
      for (const Entry& entry : ranges->entries) read_range(entry, runs);
      for (const Entry& entry : choices->entries)
        for (const Value& word : entry.value.items) runs.choices[entry.key].insert(word.text);
    }
  }

  void read_range(const Entry& entry, FittedRuns& runs) {
    FittedRange& range = runs.ranges[entry.key];
    const std::vector<Value>& ends = entry.value.items;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      double& end = i == 0 ? range.least : range.most;
      const std::string& text = ends[i].text;
      const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), end);
      if (ends.size() != 2 || error != std::errc() || stop != text.data() + text.size())
        return refuse(entry.origin, "fitted_runs", "'" + entry.key + "' is no pair of numbers",
                      "write it again with `slipway calibrate --runs`");
    }
  }

  NumberRows rows_of(const Value& covariance) const {
    NumberRows rows;
    for (const Value& item : covariance.items) {
      std::istringstream text(item.text);
      std::vector<double>& row = rows.emplace_back();
      for (double number = 0; text >> number;) row.push_back(number);
    }
    return rows;
  }

  void set_covariance(const NumberRows& rows, const Origin& origin, PooledConstants& pooled) {
    const std::size_t n = pooled.coordinates.size();
    pooled.covariance.assign(n * n, 0);
    if (rows.size() != n)
      return refuse(origin, "covariance", fmt::format("has {} rows for {} coordinates", rows.size(), n),
                    "write it again with `slipway calibrate --runs`");
    for (std::size_t i = 0; i < n; ++i) {
      if (rows[i].size() != i + 1)
        return refuse({origin.file, origin.line + 1 + static_cast<int>(i)}, "covariance",
                      fmt::format("has no {} numbers", i + 1), "write it again with `slipway calibrate --runs`");
      for (std::size_t j = 0; j <= i; ++j)
        pooled.covariance[i * n + j] = pooled.covariance[j * n + i] =
            rows[i][j] * pooled.coordinates[i].spread * pooled.coordinates[j].spread;
    }
  }

  Defects& defects_;
};

}  // namespace

std::string fitted_runs_to_yaml(const std::vector<FittedRuns>& seen) {
  std::string text = "fitted_runs:" + std::string(seen.empty() ? " []\n" : "\n");
  for (const FittedRuns& runs : seen) {
    text += fmt::format("  - {{trainer: \"{}\", machine: \"{}\", of: {},\n", runs.trainer, runs.machine,
                        name_in(models::fitted_of_names, runs.of));
    std::string ranges, choices;
    for (const auto& [name, range] : runs.ranges)
      ranges += fmt::format("{}{}: [{}, {}]", ranges.empty() ? "" : ", ", name, range.least, range.most);
    for (const auto& [name, words] : runs.choices)
      choices += fmt::format("{}{}: [\"{}\"]", choices.empty() ? "" : ", ", name, fmt::join(words, "\", \""));
    text += "     ranges: {" + ranges + "},\n     choices: {" + choices + "}}\n";
  }
  return text;
}

const PooledConstants& built_in_constants() {
  static const PooledConstants constants = [] {
    const EmbeddedFile& file = embedded_constants().front();
    Defects defects;
    auto read = constants_from_yaml(std::string(file.text), std::string(file.path), defects);
    if (!read) throw std::logic_error(describe(defects));
    return *read;
  }();
  return constants;
}

std::optional<PooledConstants> constants_from_yaml(const std::string& text, const std::string& file, Defects& defects) {
  std::string rest = text;
  const std::optional<NumberRows> covariance = take_number_rows(rest, "covariance");
  const std::optional<Value> root = parse_document(rest, file, defects);
  if (!root) return std::nullopt;
  return ConstantsReader(defects).read(*root, covariance);
}

const std::vector<FittedTable>& tables_of_built_in_constants() {
  static const std::vector<FittedTable> tables = [] {
    const EmbeddedFile& file = embedded_constants().front();
    Defects defects;
    std::vector<FittedTable> read = tables_from_yaml(std::string(file.text), std::string(file.path), defects);
    if (!defects.empty()) throw std::logic_error(describe(defects));
    return read;
  }();
  return tables;
}

std::vector<FittedTable> tables_from_yaml(const std::string& text, const std::string& file, Defects& defects) {
  const std::optional<Value> root = parse_document(text, file, defects);
  const Value* list = root ? root->find("tables") : nullptr;
  if (list == nullptr) return {};
  std::vector<FittedTable> tables;
  for (const Value& item : list->items) {
    const auto text_of = [&](const char* key) {
      const Value* value = item.find(key);
      return value == nullptr ? std::string() : value->text;
    };
    FittedTable& table = tables.emplace_back(FittedTable{text_of("file"), 0, text_of("checksum")});
    const std::string runs = text_of("runs");
    std::from_chars(runs.data(), runs.data() + runs.size(), table.runs);
    if (!table.file.empty() && table.runs > 0) continue;
    defects.push_back({item.origin.file, item.origin.line, "tables", "has no file, or no runs above 0",
                       "write it again with `slipway validate --pooled --constants`"});
    return {};
  }
  return tables;
}

std::optional<PooledConstants> load_constants(const std::string& path, const Reference& from, Defects& defects) {
  const std::optional<Value> root = read_document(resolve_path(from.folder, path), from.origin, from.key, defects);
  if (!root) return std::nullopt;
  return ConstantsReader(defects).read(*root);
}

std::string constants_to_yaml(const PooledConstants& constants, const std::string& heading) {
  return constants_to_yaml(constants, heading, {});
}

std::string constants_to_yaml(const PooledConstants& constants, const std::string& heading,
                              const std::vector<FittedTable>& tables) {
  std::string text =
      "# " + heading +
      fmt::format("\nnoise: {{run: {:.4g}, freedom: {:.4g}}}\n", constants.row_spread, constants.freedom);
  if (!tables.empty()) text += "tables:\n";
  for (const FittedTable& table : tables)
    text += fmt::format("  - {{file: \"{}\", runs: {}, checksum: \"{}\"}}\n", table.file, table.runs, table.checksum);
  text += fitted_runs_to_yaml(constants.seen);
  text += "coordinates:\n";
  const std::size_t n = constants.coordinates.size();
  for (std::size_t c = 0; c < n; ++c) {
    const PooledCoordinate& at = constants.coordinates[c];
    text += fmt::format("  - {{constant: {}", step_constants()[at.constant].name);
    if (!at.machine.empty()) text += ", machine: \"" + at.machine + "\"";
    if (!at.trainer.empty()) text += ", trainer: \"" + at.trainer + "\"";
    text += fmt::format(", factor: {:.5g}}}\n", std::exp(constants.values[c]));
  }
  text += "covariance:\n";
  for (std::size_t i = 0; i < n; ++i) {
    text += "  - \"";
    for (std::size_t j = 0; j <= i; ++j)
      text += fmt::format(
          "{}{:.6g}", j == 0 ? "" : " ",
          constants.covariance[i * n + j] / (constants.coordinates[i].spread * constants.coordinates[j].spread));
    text += "\"\n";
  }
  if (constants.runs.empty()) return text;
  text += "runs: |  # fitted to, beside the published ones\n";
  std::istringstream lines(constants.runs);
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text;
}

}  // namespace slipway::scenarios
