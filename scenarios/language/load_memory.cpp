#include "scenarios/language/load_memory.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/document.h"
#include "scenarios/language/number_rows.h"

namespace slipway::scenarios {
namespace {

constexpr std::string_view of_fragmentation = "fragmentation of ", of_library = "library of ", on = " on ";

class MemoryReader {
 public:
  explicit MemoryReader(std::string file) : file_(std::move(file)) {}

  PooledMemory read(const Value& root, const std::optional<std::vector<std::vector<double>>>& taken) const {
    PooledMemory memory;
    const Value& constants = part(root, "constants");
    for (std::size_t i = 0; i + memory_deviations < memory_parameters().size(); ++i)
      memory.constants.push_back(constant_of(part(constants, std::string(memory_parameters()[i].name))));
    if (constants.entries.size() != memory.constants.size())
      refuse(constants.origin, "constants", "has a name that is no constant of memory", "remove it");
    read_deviations(part(root, "deviations"), memory);
    const Value& noise = part(root, "noise");
    memory.row_spread = positive(noise, "row");
    memory.table_spread = positive(noise, "table");
    memory.other_share = positive(noise, "other");
    memory.noise_source = part(noise, "source").text;
    const Value& covariance = part(root, "covariance");
    set_covariance(taken ? *taken : rows_of(covariance), covariance.origin, memory);
    return memory;
  }

 private:
  [[noreturn]] void refuse(const Origin& origin, const std::string& key, const std::string& problem,
                           const std::string& remedy) const {
    throw std::invalid_argument(fmt::format("{}:{}: {}: {}; {}", file_, origin.line, key, problem, remedy));
  }

  const Value& part(const Value& map, const std::string& key) const {
    const Value* value = map.find(key);
    if (value == nullptr) refuse(map.origin, key, "is missing", "add it");
    return *value;
  }

  double number(const Value& value, const std::string& key) const {
    double result = 0;
    const char* end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, result);
    if (error != std::errc() || stop != end)
      refuse(value.origin, key, in_words(value) + " is no number", "write a number");
    return result;
  }

  double positive(const Value& map, const std::string& key) const {
    const Value& value = part(map, key);
    const double result = number(value, key);
    if (!(result > 0)) refuse(value.origin, key, "is not above 0", "write a number above 0");
    return result;
  }

  PooledConstant constant_of(const Value& map) const {
    return {positive(map, "value"), positive(map, "prior"), positive(map, "spread"), part(map, "source").text};
  }

  void read_deviations(const Value& map, PooledMemory& memory) const {
    memory.fragmentation_spread = positive(part(map, "fragmentation"), "spread");
    memory.fragmentation_source = part(part(map, "fragmentation"), "source").text;
    memory.library_spread = positive(part(map, "library"), "spread");
    memory.library_source = part(part(map, "library"), "source").text;
    for (const Entry& entry : part(map, "values").entries) {
      const double value = number(entry.value, entry.key);
      const std::string& name = entry.key;
      const std::size_t machine = name.find(on);
      if (name.starts_with(of_fragmentation))
        memory.fragmentation.push_back({name.substr(of_fragmentation.size()), "", value});
      else if (name.starts_with(of_library) && machine != std::string::npos)
        memory.library.push_back(
            {name.substr(of_library.size(), machine - of_library.size()), name.substr(machine + on.size()), value});
      else
        refuse(entry.origin, name, "is no deviation",
               "write 'fragmentation of TRAINER' or 'library of TRAINER on MACHINE'");
    }
  }

  std::vector<std::vector<double>> rows_of(const Value& covariance) const {
    std::vector<std::vector<double>> rows;
    for (const Value& item : covariance.items) {
      std::vector<double>& row = rows.emplace_back();
      for (const Value& each : item.items) row.push_back(number(each, "covariance"));
    }
    return rows;
  }

  void set_covariance(const std::vector<std::vector<double>>& rows, const Origin& origin, PooledMemory& memory) const {
    const std::size_t n = memory.unknowns();
    if (rows.size() != n)
      refuse(origin, "covariance", fmt::format("has {} rows for {} unknowns", rows.size(), n),
             "write a row for each constant and deviation");
    memory.covariance.assign(n * n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      if (rows[i].size() != i + 1)
        refuse({origin.file, origin.line + 1 + static_cast<int>(i)}, "covariance", "is no lower triangle",
               fmt::format("write {} numbers", i + 1));
      for (std::size_t j = 0; j <= i; ++j) memory.covariance[i * n + j] = memory.covariance[j * n + i] = rows[i][j];
    }
  }

  std::string file_;
};

}  // namespace

const PooledMemory& built_in_memory() {
  static const PooledMemory memory = [] {
    const EmbeddedFile& file = embedded_memory().front();
    return memory_from_yaml(std::string(file.text), std::string(file.path));
  }();
  return memory;
}

PooledMemory memory_from_yaml(const std::string& text, const std::string& file) {
  Defects defects;
  std::string rest = text;
  const auto covariance = take_number_rows(rest, "covariance");
  const std::optional<Value> root = parse_document(rest, file, defects);
  if (!root) throw std::invalid_argument(describe(defects));
  return MemoryReader(file).read(*root, covariance);
}

std::string memory_to_yaml(const PooledMemory& memory, const std::string& heading) {
  std::string text = "# " + heading + "\nconstants:\n";
  for (std::size_t i = 0; i < memory.constants.size(); ++i) {
    const PooledConstant& c = memory.constants[i];
    text += fmt::format("  {}: {{value: {:.5g}, prior: {:g}, spread: {:g}, source: \"{}\"}}\n",
                        memory_parameters()[i].name, c.value, c.prior, c.spread, c.source);
  }
  text += fmt::format("deviations:\n  fragmentation: {{spread: {:g}, source: \"{}\"}}\n", memory.fragmentation_spread,
                      memory.fragmentation_source);
  text += fmt::format("  library: {{spread: {:g}, source: \"{}\"}}\n  values:\n", memory.library_spread,
                      memory.library_source);
  for (const MemoryDeviation& each : memory.fragmentation)
    text += fmt::format("    {}{}: {:.4g}\n", of_fragmentation, each.trainer, each.value);
  for (const MemoryDeviation& each : memory.library)
    text += fmt::format("    {}{}{}{}: {:.4g}\n", of_library, each.trainer, on, each.machine, each.value);
  text += fmt::format("noise: {{row: {:g}, table: {:g}, other: {:g}, source: \"{}\"}}\ncovariance:\n",
                      memory.row_spread, memory.table_spread, memory.other_share, memory.noise_source);
  const std::size_t n = memory.unknowns();
  for (std::size_t i = 0; i < n; ++i) {
    text += "  - [";
    for (std::size_t j = 0; j <= i; ++j)
      text += fmt::format("{}{:.3g}", j == 0 ? "" : ", ",
                          memory.covariance.empty() ? (i == j ? 1.0 : 0.0) : memory.covariance[i * n + j]);
    text += "]\n";
  }
  return text;
}

}  // namespace slipway::scenarios
