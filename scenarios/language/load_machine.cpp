// Machine profiles: reading and writing.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/aliases.h"
#include "scenarios/language/load_kernels.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

namespace {

// {value: 3.35e12, source: ...} becomes its value; what else such a map may hold is text for people.
void unwrap(Value& value, const std::string& path, Defects& defects) {
  for (Entry& entry : value.entries) unwrap(entry.value, path.empty() ? entry.key : path + "." + entry.key, defects);
  const Value* inner = value.find("value");
  if (inner == nullptr) return;
  for (const Entry& entry : value.entries)
    if (entry.key != "value" && entry.key != "source" && entry.key != "date" && entry.key != "note")
      defects.push_back({entry.origin.file, entry.origin.line, path + "." + entry.key,
                         "unknown key; allowed beside a value: source, date, note", "remove it"});
  const Value kept = *inner;
  value = kept;
}

Machine machine_of(const Settings& settings) {
  Machine machine;
  for (const Key& key : machine_keys())
    if (key.of_machine.read != nullptr) key.of_machine.read(settings, key.path, machine);
  return machine;
}

// Data sheets have these of a GPU, but not of a CPU's ranks. `slipway calibrate` measures those; until then
// pricing refuses.
void require_rates(Settings& settings) {
  if (!settings.good({"cores"}) || settings.integer("cores") > 0) return;
  for (const char* key : {"peak_flops", "memory_bandwidth"}) {
    if (!settings.good({key}) || settings.given(key)) continue;
    settings.refuse(key, "this required key is missing; allowed: " + allowed_by(*key_of(machine_keys(), key)),
                    std::string("add '") + key + ":' at the top level with the data sheet's figure");
  }
}

// The numbers of a list; the defect of one that is none.
std::vector<double> parts_of(const Entry& entry, Defects& defects) {
  std::vector<double> parts;
  for (const Value& item : entry.value.items) {
    double part = 0;
    const std::string& text = item.text;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (item.kind != Value::Kind::scalar || error != std::errc() || end != text.data() + text.size() ||
        !std::isfinite(part))
      defects.push_back({entry.origin.file, entry.origin.line, "deviations." + entry.key,
                         in_words(item) + " is no number; allowed: numbers", "calibrate again"});
    parts.push_back(part);
  }
  return parts;
}

// deviations: {gemm_efficiency: [0.01, ...], ...} (FittedDeviation).
std::vector<FittedDeviation> deviations_from(const Value& section, Defects& defects) {
  std::vector<FittedDeviation> deviations;
  Machine any;
  for (const Entry& entry : section.entries) {
    const auto refuse = [&](const std::string& problem) {
      defects.push_back({entry.origin.file, entry.origin.line, "deviations." + entry.key, problem, "calibrate again"});
    };
    if (fitted_number(any, entry.key) == nullptr)
      refuse("is no number that calibrate fits; allowed: those of a profile");
    deviations.push_back({entry.key, parts_of(entry, defects)});
    if (deviations.back().parts.size() != deviations.front().parts.size())
      refuse("has another number of parts than " + deviations.front().name + "; allowed: as many");
  }
  return deviations;
}

std::optional<Machine> machine_from(std::optional<Value> document, const std::string& file, Defects& defects) {
  const std::size_t before = defects.size();
  if (!document) return std::nullopt;
  drop_aliases(*document);
  MachineKernels kernels;
  if (const Value* section = document->find("kernels"); section != nullptr) {
    kernels = kernels_from(*section, defects);
    std::erase_if(document->entries, [](const Entry& entry) { return entry.key == "kernels"; });
  }
  std::vector<FittedDeviation> deviations;
  if (const Value* section = document->find("deviations"); section != nullptr) {
    deviations = deviations_from(*section, defects);
    std::erase_if(document->entries, [](const Entry& entry) { return entry.key == "deviations"; });
  }
  unwrap(*document, "", defects);
  Settings settings(std::move(*document), machine_keys(), defects);
  require_rates(settings);
  if (defects.size() != before) return std::nullopt;
  Machine machine = machine_of(settings);
  machine.kernels = std::move(kernels);
  machine.deviations = std::move(deviations);
  if (machine.name.empty()) machine.name = std::filesystem::path(file).stem().string();
  return machine;
}

// The map of a section, made where there is none yet.
Value& section_of(Value& map, std::string_view name) {
  for (Entry& entry : map.entries)
    if (entry.key == name) return entry.value;
  Value section;
  section.kind = Value::Kind::map;
  map.entries.push_back({std::string(name), {}, std::move(section)});
  return map.entries.back().value;
}

BlockTimes row_from(const Settings& settings, const std::string& path) {
  const auto number = [&](const char* key) { return settings.number(path + "." + key); };
  BlockTimes row;
  row.micro_batch = settings.integer(path + ".micro_batch");
  row.forward_s = number("forward");
  row.backward_s = number("backward");
  row.curvature_s = number("curvature");
  row.inversion_s = number("inversion");
  row.precondition_s = number("precondition");
  row.parameter_bytes = number("parameters");
  row.activation_bytes = number("activations");
  row.peak_error_bytes = number("peak_error");
  row.saved_error_bytes = number("saved_error");
  row.factor_bytes = number("factors");
  return row;
}

}  // namespace

std::optional<Machine> machine_from_yaml(const std::string& text, const std::string& file, Defects& defects) {
  return machine_from(parse_document(text, file, defects), file, defects);
}

std::optional<Machine> load_machine(const std::string& name_or_path, const Reference& from, Defects& defects) {
  const auto built_in = embedded_named(embedded_machines(), name_or_path, "machine", from, defects);
  if (built_in) return built_in_machine(name_or_path);
  if (!looks_like_path(name_or_path)) return std::nullopt;
  const std::string file = resolve_path(from.folder, name_or_path);
  return machine_from(read_document(file, from.origin, from.key, defects), file, defects);
}

const Machine& built_in_machine(const std::string& name) {
  static std::mutex held;  // rows of a table are priced in parallel; not while one loads, which may ask for another
  static std::map<std::string, Machine> known;
  {
    const std::lock_guard lock(held);
    const auto found = known.find(name);
    if (found != known.end()) return found->second;
  }
  for (const EmbeddedFile& file : embedded_machines()) {
    if (file.name != name) continue;
    Defects defects;
    std::optional<Machine> machine = machine_from_yaml(std::string(file.text), std::string(file.path), defects);
    if (!machine) throw std::logic_error("built-in machine " + name + " does not load");
    const std::lock_guard lock(held);
    return known.emplace(name, std::move(*machine)).first->second;
  }
  throw std::invalid_argument("no machine profile '" + name + "' (`slipway list machines`)");
}

std::string machine_to_yaml(const Machine& machine) {
  Value root;
  root.kind = Value::Kind::map;
  for (const Key& key : machine_keys()) {
    const std::string text = key.of_machine.write != nullptr ? key.of_machine.write(machine) : "";
    if (text.empty()) continue;
    Value value = scalar(text, {});
    value.quoted = key.type == KeyType::text;
    const std::size_t dot = key.path.find('.');
    Value& map = dot == std::string_view::npos ? root : section_of(root, key.path.substr(0, dot));
    map.entries.push_back({std::string(key.path.substr(dot + 1)), {}, std::move(value)});
  }
  for (const FittedDeviation& each : machine.deviations) {
    Value list;
    list.kind = Value::Kind::list;
    for (const double part : each.parts) list.items.push_back(scalar(fmt::format("{:.3g}", part), {}));
    section_of(root, "deviations").entries.push_back({each.name, {}, std::move(list)});
  }
  return to_yaml(root);
}

// Block tables (cluster.block_times): models/machine/block_times.h from YAML.

std::optional<BlockTable> load_block_table(const std::string& path, const Reference& from, Defects& defects) {
  const std::size_t before = defects.size();
  const std::string file = resolve_path(from.folder, path);
  std::optional<Value> document = read_document(file, from.origin, from.key, defects);
  if (!document) return std::nullopt;
  Settings settings(std::move(*document), block_table_keys(), defects);
  if (settings.good({"rows"}) && settings.length("rows") == 0)
    settings.refuse("rows", "the list is empty; allowed: a row per measured micro-batch size", "add one");
  BlockTable table;
  table.name = std::filesystem::path(path).stem().stem().string();  // bert-base-p100.blocks.yaml
  table.source = settings.text("source");
  table.hidden = settings.integer("hidden");
  table.ffn = settings.integer("ffn");
  table.heads = settings.integer("heads");
  table.sequence = settings.integer("sequence");
  table.dtype = dtype_named(settings.text("dtype")).value_or(Dtype::float32);
  for (int i = 0; i < settings.length("rows"); ++i)
    table.rows.push_back(row_from(settings, "rows." + std::to_string(i)));
  if (defects.size() != before) return std::nullopt;
  return table;
}

}  // namespace slipway::scenarios
