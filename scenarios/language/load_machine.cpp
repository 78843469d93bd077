// Machine profiles: reading and writing.
#include <filesystem>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/profiles.h"

namespace slipway::scenarios {

namespace {

constexpr Dtype all_dtypes[] = {Dtype::float64, Dtype::float32, Dtype::tf32, Dtype::bfloat16, Dtype::float16};
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

Link link_of(const Settings& settings, const std::string& path) {
  return {settings.text(path + ".name"), settings.number(path + ".bandwidth"), settings.number(path + ".latency"),
          settings.number(path + ".efficiency")};
}

Machine machine_of(const Settings& settings) {
  Machine machine;
  machine.name = settings.text("name");
  machine.memory_bytes = settings.number("memory_bytes");
  for (const Dtype dtype : all_dtypes)
    machine.peak_flops[static_cast<std::size_t>(dtype)] = settings.number("peak_flops." + name_of(dtype));
  machine.memory_bandwidth = settings.number("memory_bandwidth");
  machine.gemm_efficiency = settings.number("gemm_efficiency");
  machine.gemm_half = settings.number("gemm_half");
  machine.factorization_half = settings.number("factorization_half");
  machine.attention_efficiency = settings.number("attention_efficiency");
  machine.memory_efficiency = settings.number("memory_efficiency");
  machine.launch_overhead = settings.number("launch_overhead");
  machine.task_overhead = settings.number("task_overhead");
  machine.overlap_slowdown = settings.number("overlap_slowdown");
  machine.cores = settings.small_integer("cores");
  machine.node_link = link_of(settings, "node_link");
  machine.network_link = link_of(settings, "network_link");
  machine.host_to_device = link_of(settings, "host_to_device");
  machine.device_to_host = link_of(settings, "device_to_host");
  machine.reduce_bandwidth = settings.number("reduce_bandwidth");
  machine.provenance = {settings.text("provenance.source"), settings.text("provenance.date"),
                        settings.text("provenance.machine")};
  return machine;
}

// Data sheets tell these of a GPU. Of a CPU's ranks nobody does: `slipway calibrate` measures them, and
// until then pricing refuses.
void require_rates(Settings& settings) {
  if (!settings.good({"cores"}) || settings.integer("cores") > 0) return;
  for (const char* key : {"peak_flops", "memory_bandwidth"}) {
    if (!settings.good({key}) || settings.given(key)) continue;
    settings.refuse(key, "this required key is missing; allowed: " + allowed_by(*key_of(machine_keys(), key)),
                    std::string("add '") + key + ":' at the top level with the data sheet's figure");
  }
}

std::optional<Machine> machine_from(std::optional<Value> document, const std::string& file, Defects& defects) {
  const std::size_t before = defects.size();
  if (!document) return std::nullopt;
  unwrap(*document, "", defects);
  Settings settings(std::move(*document), machine_keys(), defects);
  require_rates(settings);
  if (defects.size() != before) return std::nullopt;
  Machine machine = machine_of(settings);
  if (machine.name.empty()) machine.name = std::filesystem::path(file).stem().string();
  return machine;
}

void add(Value& map, const std::string& key, Value value) { map.entries.push_back({key, {}, std::move(value)}); }

void add(Value& map, const std::string& key, double number) { add(map, key, scalar(number_text(number), {})); }

void add_text(Value& map, const std::string& key, const std::string& text) {
  if (text.empty()) return;
  Value value = scalar(text, {});
  value.quoted = true;
  add(map, key, std::move(value));
}

Value empty_map() {
  Value map;
  map.kind = Value::Kind::map;
  return map;
}

void add_link(Value& map, const std::string& key, const Link& link) {
  if (link.name.empty() && link.bandwidth == 0 && link.latency == 0) return;
  Value section = empty_map();
  add_text(section, "name", link.name);
  add(section, "bandwidth", link.bandwidth);
  add(section, "latency", link.latency);
  add(section, "efficiency", link.efficiency);
  add(map, key, std::move(section));
}

}  // namespace

std::optional<Machine> machine_from_yaml(const std::string& text, const std::string& file, Defects& defects) {
  return machine_from(parse_document(text, file, defects), file, defects);
}

std::optional<Machine> load_machine(const std::string& name_or_path, const Reference& from, Defects& defects) {
  const auto built_in = embedded_named(embedded_machines(), name_or_path, "machine", from, defects);
  if (built_in) return machine_from_yaml(std::string(built_in->text), std::string(built_in->path), defects);
  if (!looks_like_path(name_or_path)) return std::nullopt;
  const std::string file = resolve_path(from.folder, name_or_path);
  return machine_from(read_document(file, from.origin, from.key, defects), file, defects);
}

std::string machine_to_yaml(const Machine& machine) {
  Value root = empty_map(), peaks = empty_map(), provenance = empty_map();
  add_text(root, "name", machine.name);
  add(root, "memory_bytes", machine.memory_bytes);
  for (const Dtype dtype : all_dtypes)
    if (const double peak = machine.peak_flops[static_cast<std::size_t>(dtype)]; peak > 0)
      add(peaks, name_of(dtype), peak);
  add(root, "peak_flops", std::move(peaks));
  add(root, "memory_bandwidth", machine.memory_bandwidth);
  add(root, "gemm_efficiency", machine.gemm_efficiency);
  add(root, "gemm_half", machine.gemm_half);
  add(root, "factorization_half", machine.factorization_half);
  add(root, "attention_efficiency", machine.attention_efficiency);
  add(root, "memory_efficiency", machine.memory_efficiency);
  add(root, "launch_overhead", machine.launch_overhead);
  add(root, "task_overhead", machine.task_overhead);
  add(root, "overlap_slowdown", machine.overlap_slowdown);
  add(root, "cores", machine.cores);
  add_link(root, "node_link", machine.node_link);
  add_link(root, "network_link", machine.network_link);
  add_link(root, "host_to_device", machine.host_to_device);
  add_link(root, "device_to_host", machine.device_to_host);
  add(root, "reduce_bandwidth", machine.reduce_bandwidth);
  add_text(provenance, "source", machine.provenance.source);
  add_text(provenance, "date", machine.provenance.date);
  add_text(provenance, "machine", machine.provenance.machine);
  if (!provenance.entries.empty()) add(root, "provenance", std::move(provenance));
  return to_yaml(root);
}

// Block tables (cluster.block_times): models/machine/block_times.h from YAML.

namespace {

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
