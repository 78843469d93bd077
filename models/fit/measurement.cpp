#include "models/fit/measurement.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <istream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "models/machine/collectives.h"
#include "models/machine/cost.h"
#include "models/machine/gloo.h"
#include "models/machine/ring.h"

namespace slipway::models {
namespace {

// The fields that each kind must have besides seconds.
const std::map<std::string, std::vector<std::string>>& known_kinds() {
  static const std::map<std::string, std::vector<std::string>> kinds = {
      {"gemm", {"m", "n", "k", "dtype"}},
      {"attention", {"pass", "batch_heads", "s", "d", "dtype"}},
      {"elementwise", {"bytes", "dtype"}},
      {"launch", {"dtype"}},
      {"optimizer", {"elements", "dtype"}},
      {"task_overhead", {"lanes"}},
      {"transfer", {"bytes"}},
      {"all-reduce", {"bytes", "members"}},
      {"all-gather", {"bytes", "members"}},
      {"reduce-scatter", {"bytes", "members"}},
      {"all-to-all", {"bytes", "members"}},
      {"host-to-device", {"bytes"}},
      {"device-to-host", {"bytes"}},
  };
  return kinds;
}

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw std::runtime_error(place + ": " + what);
}

// The range of a field. The largest values keep every product of them (flops, bytes) far inside a double and an int64.
struct Range {
  double min = 0, max = 0;
  bool whole = false;
};

Range range_of(std::string_view field) {
  if (field == "seconds") return {1e-12, 1e6};
  if (field == "bytes") return {0, 1e15};
  return {1, field == "elements" ? 1e12 : 1e9, true};  // sizes, members, lanes
}

double number_of(const std::string& place, const std::string& key, const std::string& text) {
  const Range range = range_of(key);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (is_number && value >= range.min && value <= range.max && (!range.whole || value == std::floor(value)))
    return value;
  std::ostringstream allowed;
  allowed << (range.whole ? "whole number" : "number") << " from " << range.min << " to " << range.max;
  fail(place, key + "=" + text + " is no " + allowed.str());
}

// Checks the words of fields that are no numbers. A field that is not listed is not checked.
void check_word(const std::string& place, const std::string& key, const std::string& word) {
  static const std::map<std::string, std::vector<std::string>> known = {
      {"pass", {"forward", "backward", "input_grad", "weight_grad"}},
      {"op", {"add", "silu_mul", "rms_norm", "rms_norm_fused"}},
      {"link", {"node", "network"}}};
  const auto words = known.find(key);
  if (words == known.end() || std::find(words->second.begin(), words->second.end(), word) != words->second.end())
    return;
  std::string all;
  for (const std::string& each : words->second) all += (all.empty() ? "" : ", ") + each;
  fail(place, key + "=" + word + " is not known; allowed: " + all);
}

Measurement parse(const std::string& line, const std::string& place) {
  std::istringstream words(line);
  std::string word;
  Measurement result;
  if (!(words >> word) || word != "measure" || !(words >> result.what)) {
    fail(place, "expected a line 'measure <what> key=value ... seconds=<s>', found: " + line);
  }
  const auto kind = known_kinds().find(result.what);
  if (kind == known_kinds().end()) {
    std::string names;
    for (const auto& [name, fields] : known_kinds()) names += (names.empty() ? "" : ", ") + name;
    fail(place, "'" + result.what + "' is no measurement that calibrate knows; known: " + names);
  }
  while (words >> word) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) fail(place, "expected key=value, found: " + word);
    result.fields[word.substr(0, equals)] = word.substr(equals + 1);
  }
  const auto seconds = result.fields.extract("seconds");
  if (seconds.empty()) fail(place, "seconds= is missing; the line may be cut off");
  result.seconds = number_of(place, "seconds", seconds.mapped());
  for (const std::string& field : kind->second) {
    const auto found = result.fields.find(field);
    if (found == result.fields.end()) fail(place, field + "= is missing in a measurement of " + result.what);
    if (field == "dtype" && !dtype_named(found->second)) fail(place, "dtype=" + found->second + " is no number format");
    if (field != "dtype" && field != "pass") number_of(place, field, found->second);
  }
  for (const auto& [key, word] : result.fields) check_word(place, key, word);
  return result;
}

std::string name_of(const Measurement& measurement) {
  std::string name = measurement.what;
  for (const auto& [key, value] : measurement.fields) name += " " + key + "=" + value;
  return name;
}

double field(const Measurement& measurement, const char* key) {
  return number_of(measurement.what, key, measurement.fields.at(key));
}
Dtype dtype_field(const Measurement& measurement) { return *dtype_named(measurement.fields.at("dtype")); }

double gemm_flops(const Measurement& gemm) { return 2 * field(gemm, "m") * field(gemm, "n") * field(gemm, "k"); }

Operator gemm_operator(const Measurement& gemm) {
  Operator op;
  op.kind = OpKind::qkv;
  op.dtype = dtype_field(gemm);
  const double m = field(gemm, "m"), n = field(gemm, "n"), k = field(gemm, "k");
  op.m = static_cast<std::int64_t>(m), op.n = static_cast<std::int64_t>(n), op.k = static_cast<std::int64_t>(k);
  op.forward_flops = gemm_flops(gemm);
  op.forward_bytes = bytes_of(op.dtype) * (m * k + k * n + m * n);
  return op;
}

// Causal attention as models/model/operator_cost_attention.cpp counts it: half of 4·s²·d per head, 2.5 times that backward.
Operator attention_operator(const Measurement& attention) {
  Operator op;
  op.kind = OpKind::attention;
  op.dtype = dtype_field(attention);
  const bool backward = attention.fields.at("pass") == "backward";
  const double heads = field(attention, "batch_heads"), s = field(attention, "s"), d = field(attention, "d");
  op.m = op.n = static_cast<std::int64_t>(s), op.k = static_cast<std::int64_t>(d);
  op.forward_flops = 2 * heads * s * s * d * (backward ? 2.5 : 1);
  op.forward_bytes = bytes_of(op.dtype) * heads * s * d * (backward ? 8 : 4);
  return op;
}

Operator streaming_operator(const Measurement& measurement, double bytes) {
  Operator op;
  op.kind = OpKind::add;
  op.dtype = dtype_field(measurement);
  op.forward_bytes = bytes;
  return op;
}

// `bytes` counts every tensor once, as if one kernel did it. silu_mul is two kernels with a tensor between them,
// counted already. PyTorch's RMSNorm on a CPU is six kernels that move 7 tensors for 2 (models/model/operator_cost_parts.h,
// unfused norm).
Operator elementwise_operator(const Measurement& measurement) {
  const auto kind = measurement.fields.find("op");
  const std::string name = kind == measurement.fields.end() ? "" : kind->second;
  const bool is_norm = name == "rms_norm";
  Operator op = streaming_operator(measurement, field(measurement, "bytes") * (is_norm ? 3.5 : 1));
  op.kernels = is_norm ? 6 : name == "silu_mul" ? 2 : 1;
  return op;
}

std::function<double(const Machine&)> one_operator(const Operator& op) {
  return [op](const Machine& machine) { return operator_seconds(machine, op, Direction::forward); };
}

std::function<double(const Machine&)> one_message(Link Machine::*between, Collective collective, int members,
                                                  double bytes) {
  return [=](const Machine& machine) {
    const Link& link = machine.*between;
    const bool rounds = collective != Collective::send && between == &Machine::network_link;
    const double latency = rounds ? round_latency(machine) : link.latency;
    return ring_seconds(collective, members, bytes, latency, link.bandwidth * link.efficiency,
                        machine.reduce_bandwidth);
  };
}

// Gloo's all-gathers, reduce-scatters and all-to-alls, whose members on a node share its port (Algorithm::gloo).
std::function<double(const Machine&)> one_exchange(Collective collective, int nodes, int per_node, double bytes) {
  return [=](const Machine& machine) {
    const Links pairs = links_of_pairs(machine, nodes, per_node);
    return ring_seconds(collective, nodes * per_node, bytes, pairs.latency, pairs.bandwidth, machine.reduce_bandwidth);
  };
}

std::function<double(const Machine&)> one_copy(Link Machine::*link, double bytes) {
  return [=](const Machine& machine) {
    const Link& way = machine.*link;
    return way.latency + bytes / (way.bandwidth * way.efficiency);
  };
}

// True for a message between nodes, by its field `link`. Micro-benchmarks of ranks have no such field, because they run
// on one node.
bool is_between_nodes(const Measurement& measurement) {
  const auto link = measurement.fields.find("link");
  return link != measurement.fields.end() && link->second == "network";
}

std::function<double(const Machine&)> prediction(const Measurement& measurement) {
  const std::string& what = measurement.what;
  if (what == "gemm") return one_operator(gemm_operator(measurement));
  if (what == "attention") return one_operator(attention_operator(measurement));
  if (what == "elementwise") return one_operator(elementwise_operator(measurement));
  if (what == "launch") return one_operator(streaming_operator(measurement, 3.0 * bytes_of(dtype_field(measurement))));
  if (what == "optimizer") {
    return [elements = field(measurement, "elements"), dtype = dtype_field(measurement)](const Machine& machine) {
      return optimizer_seconds(machine, elements, dtype);
    };
  }
  if (what == "task_overhead") return [](const Machine& machine) { return machine.task_overhead; };
  const double bytes = field(measurement, "bytes");
  if (what == "host-to-device") return one_copy(&Machine::host_to_device, bytes);
  if (what == "device-to-host") return one_copy(&Machine::device_to_host, bytes);
  const auto link = is_between_nodes(measurement) ? &Machine::network_link : &Machine::node_link;
  if (what == "transfer") return one_message(link, Collective::send, 2, bytes);
  const int members = members_of(measurement);
  const Collective collective = *value_in(collective_names, what);
  if (measurement.fields.contains("per_node") && collective != Collective::all_reduce) {
    const int per_node = static_cast<int>(field(measurement, "per_node"));
    if (per_node > 1 && members % per_node == 0) return one_exchange(collective, members / per_node, per_node, bytes);
  }
  return one_message(link, collective, members, bytes);
}

ObservationGroup group_of(const Measurement& measurement) {
  const std::string& what = measurement.what;
  if (what == "host-to-device") return ObservationGroup::host_to_device;
  if (what == "device-to-host") return ObservationGroup::device_to_host;
  const bool is_message = what == "transfer" || value_in(collective_names, what);
  if (!is_message) return ObservationGroup::compute;
  return is_between_nodes(measurement) ? ObservationGroup::network_link : ObservationGroup::node_link;
}

// The sum that a weight gradient is added to is float32 for narrower weights; it is read and written.
GemmShape gemm_shape(const Measurement& gemm) {
  const double m = field(gemm, "m"), n = field(gemm, "n"), k = field(gemm, "k"), wide = bytes_of(dtype_field(gemm));
  const auto pass = gemm.fields.find("pass");
  const bool is_added = pass != gemm.fields.end() && pass->second == "weight_grad";
  return {m, n, k, wide * (m * k + k * n) + (is_added ? 2 * std::max(wide, 4.0) : wide) * m * n};
}

AttentionShape attention_shape(const Measurement& attention) {
  const Operator op = attention_operator(attention);
  return {1, field(attention, "batch_heads"), field(attention, "s"), op.forward_flops, op.forward_bytes};
}

CollectiveShape collective_shape(const Measurement& message, Collective collective) {
  const double bytes = field(message, "bytes");
  const int members = static_cast<int>(field(message, "members"));
  return {static_cast<double>(members), bytes, ring_traffic(collective, members, bytes).bytes_per_link};
}

struct MeasuredAs {
  KernelKey key;
  MeasuredKernel kernel;
};

// Nothing for what is no kernel of a trained step.
std::optional<MeasuredAs> kernel_of(const Measurement& measurement) {
  MeasuredAs result{{}, {{}, name_of(measurement), measurement.seconds}};
  if (measurement.what == "gemm") {
    result.key = {KernelKind::gemm, static_cast<Format>(dtype_field(measurement))};
    result.kernel.shape = gemm_shape(measurement);
    return result;
  }
  if (measurement.what == "attention" && measurement.fields.at("pass") == "forward") {
    result.key = {KernelKind::attention, static_cast<Format>(dtype_field(measurement)),
                  static_cast<int>(field(measurement, "d"))};
    result.kernel.shape = attention_shape(measurement);
    return result;
  }
  constexpr double least_message = 1 << 20;  // smaller ones are latency (kernel_rows.h)
  const auto collective = value_in(collective_names, measurement.what);
  if (!collective || is_between_nodes(measurement) || field(measurement, "bytes") < least_message) return std::nullopt;
  result.key = {KernelKind::collective, Format::bfloat16, 0, *collective};
  result.kernel.shape = collective_shape(measurement, *collective);
  return result;
}

}  // namespace

std::vector<Measurement> read_measurements(std::istream& in, const std::string& name_for_errors) {
  std::vector<Measurement> result;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    result.push_back(parse(line, name_for_errors + ":" + std::to_string(number)));
  }
  return result;
}

Links links_of_pairs(const Machine& machine, int nodes, int per_node) {
  const Link &inside = machine.node_link, &between = machine.network_link;
  return pairwise_as_ring({nodes,
                           per_node,
                           1,
                           {inside.latency, inside.bandwidth * inside.efficiency},
                           {round_latency(machine), between.bandwidth * between.efficiency}});
}

int members_of(const Measurement& measurement) {
  if (measurement.what == "transfer") return 2;
  return measurement.fields.contains("members") ? static_cast<int>(field(measurement, "members")) : 0;
}

std::vector<Measurement> merged(std::vector<Measurement> measurements) {
  std::map<std::string, std::vector<double>> seconds;
  std::map<std::string, Measurement> first;
  for (Measurement& measurement : measurements) {
    const std::string name = name_of(measurement);
    seconds[name].push_back(measurement.seconds);
    first.emplace(name, std::move(measurement));
  }
  std::vector<Measurement> result;
  for (auto& [name, measurement] : first) {
    std::vector<double>& values = seconds[name];
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    measurement.seconds = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    result.push_back(std::move(measurement));
  }
  return result;
}

std::vector<Observation> observations_of(const std::vector<Measurement>& measurements) {
  double most_lanes = 0;
  for (const Measurement& measurement : measurements) {
    if (measurement.what == "task_overhead") most_lanes = std::max(most_lanes, field(measurement, "lanes"));
  }
  std::vector<Observation> result;
  for (const Measurement& measurement : measurements) {
    if (measurement.what == "task_overhead" && field(measurement, "lanes") < most_lanes) continue;
    Observation observation;
    observation.group = group_of(measurement);
    observation.kind = measurement.what;
    observation.name = name_of(measurement);
    observation.seconds = measurement.seconds;
    observation.isolated = true;
    observation.predict = prediction(measurement);
    result.push_back(std::move(observation));
  }
  return result;
}

std::map<KernelKey, KernelTable> kernel_tables(const std::vector<Measurement>& measurements, const Machine& machine) {
  std::map<KernelKey, KernelTable> tables;
  for (const Measurement& measurement : measurements) {
    std::optional<MeasuredAs> measured = kernel_of(measurement);
    if (!measured) continue;
    const KernelKey& key = measured->key;
    const Rates rates{machine.peak_flops[static_cast<std::size_t>(key.format)], machine.memory_bandwidth};
    if (key.kind != KernelKind::collective && !(rates.flops > 0 && rates.memory > 0)) continue;
    KernelTable& table = tables[key];
    if (table.rows.empty()) {
      table.kind = key.kind;
      table.rates = rates;
      table.bandwidth = machine.node_link.bandwidth;
      table.around = values_of(machine.kernels, key);
    }
    table.rows.push_back(std::move(measured->kernel));
  }
  return tables;
}

std::array<double, formats> best_gemm_rates(const std::vector<Measurement>& measurements) {
  std::array<double, formats> rates{};
  for (const Measurement& measurement : measurements) {
    if (measurement.what != "gemm" || !(measurement.seconds > 0)) continue;
    double& best = rates[static_cast<std::size_t>(dtype_field(measurement))];
    best = std::max(best, gemm_flops(measurement) / measurement.seconds);
  }
  return rates;
}

}  // namespace slipway::models
