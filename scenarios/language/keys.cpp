#include "scenarios/language/keys.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <set>

#include "models/machine/topology.h"
#include "models/model/dtype.h"
#include "scenarios/files/embedded_files.h"
#include "scenarios/language/binding.h"
#include "scenarios/language/layer_lists.h"
#include "scenarios/language/nearest.h"
#include "schedules/step/action.h"

namespace slipway::scenarios {

std::string bound_text(double bound, Unit unit) {
  const std::string_view name = name_of(unit);
  const std::string number = bound < 1e9 && bound == static_cast<double>(static_cast<std::int64_t>(bound))
                                 ? std::to_string(static_cast<std::int64_t>(bound))
                                 : number_text(bound);
  return name.empty() ? number : number + " " + std::string(name);
}

namespace {

// Same path up to list indices: "cluster.groups.*.nodes" is the key of "cluster.groups.0.nodes".
bool matches(std::string_view pattern, std::string_view path) {
  // Nearly all keys differ early, and in no index.
  const auto differs = std::mismatch(pattern.begin(), pattern.end(), path.begin(), path.end());
  if (differs.first == pattern.end() || differs.second == path.end()) return pattern.size() == path.size();
  if (*differs.first != '*') return false;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view a = pattern.substr(0, pattern.find('.'));
    const std::string_view b = path.substr(0, path.find('.'));
    const bool index = a == "*" && !b.empty() && b.find_first_not_of("0123456789") == std::string_view::npos;
    if (a != b && !index) return false;
    pattern.remove_prefix(std::min(pattern.size(), a.size() + 1));
    path.remove_prefix(std::min(path.size(), b.size() + 1));
  }
  return pattern.empty() && path.empty();
}

std::string range_of(const Key& key) {
  const bool open = key.max >= largest_int64;
  if (key.above_min)
    return open ? " above " + bound_text(key.min, key.unit)
                : " above " + bound_text(key.min, key.unit) + " and up to " + bound_text(key.max, key.unit);
  if (open) return " of at least " + bound_text(key.min, key.unit);
  return " from " + bound_text(key.min, key.unit) + " to " + bound_text(key.max, key.unit);
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

}  // namespace

const Key* key_of(std::span<const Key> table, std::string_view path) {
  for (const Key& key : table)
    if (matches(key.path, path)) return &key;
  return nullptr;
}

bool looks_like_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".yaml") || text.ends_with(".yml") ||
         text.ends_with(".json");
}

std::string_view leaf_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::vector<const Key*> keys_below(std::span<const Key> table, std::string_view section) {
  std::vector<const Key*> found;
  for (const Key& key : table) {
    const std::size_t dot = key.path.rfind('.');
    const std::string_view parent = dot == std::string_view::npos ? "" : key.path.substr(0, dot);
    if (parent.empty() ? section.empty() : matches(parent, section)) found.push_back(&key);
  }
  return found;
}

std::string allowed_by(const Key& key) {
  switch (key.type) {
    case KeyType::section:
      return key.shorthand.empty() ? "a map of keys" : "a map of keys, or the " + std::string(key.shorthand) + " alone";
    case KeyType::sections:
      return "a list of maps";
    case KeyType::integer:
      return "a whole number" + range_of(key);
    case KeyType::number: {
      const std::string range = key.max >= largest_int64 && key.min < -largest_int64 ? "" : range_of(key);
      if (key.wants_unit) return "a number" + range + " with its unit, as '30 min', '2000 h' or '90 days'";
      return "a number" + range + (key.unit == Unit::pure ? "" : ", as " + std::string(examples_of(key.unit)));
    }
    case KeyType::text:
      return "text";
    case KeyType::flag:
      return "true or false";
    case KeyType::choice:
      return "one of: " + listed(key.choices());
    case KeyType::integers:
      return "a list of whole numbers" + range_of(key);
    case KeyType::split:
      return "one of: " + listed(key.choices()) + "; a list of whole numbers" + range_of(key) +
             "; or a layout of stages (E, t, m, L)";
    case KeyType::words:
      return "a list of: " + listed(key.choices());
  }
  return "";
}

std::string default_of(const Key& key) {
  if (key.required) return "required";
  if (!key.fallback.empty()) return std::string(key.fallback);
  return key.derived.empty() ? "unset" : std::string(key.derived);
}

std::string_view name_of(KeyType type) {
  switch (type) {
    case KeyType::section:
      return "map";
    case KeyType::sections:
      return "list of maps";
    case KeyType::integer:
      return "integer";
    case KeyType::number:
      return "number";
    case KeyType::text:
      return "text";
    case KeyType::flag:
      return "true/false";
    case KeyType::choice:
      return "choice";
    case KeyType::integers:
      return "list of integers";
    case KeyType::split:
      return "choice or list";
    case KeyType::words:
      return "list of choices";
  }
  return "";
}

// The table of a block table (cluster.block_times): the fields of struct BlockTable, by their names.

namespace {

using enum KeyType;

std::vector<std::string_view> summed_dtypes() { return {"float64", "float32", "bfloat16"}; }

// clang-format off
const Key block_table[] = {
    {.path = "source", .type = text, .meaning = "who measured this, with what, where it is published",
     .required = true},
    {.path = "hidden", .type = integer, .meaning = "model.hidden of the measured block", .required = true,
     .min = 1, .max = 1e7},
    {.path = "ffn", .type = integer, .meaning = "model.ffn of the measured block", .required = true,
     .min = 1, .max = 1e8},
    {.path = "heads", .type = integer, .meaning = "model.heads of the measured block", .required = true,
     .min = 1, .max = 1e6},
    {.path = "sequence", .type = integer, .meaning = "tokens per sequence", .required = true,
     .min = 1, .max = 1e8},
    {.path = "dtype", .type = choice, .meaning = "dtype of the measurement", .required = true,
     .choices = summed_dtypes},
    {.path = "rows", .type = sections, .meaning = "one per micro-batch size", .required = true},
    {.path = "rows.*.micro_batch", .type = integer, .meaning = "sequences", .required = true,
     .min = 1, .max = 1e9},
    {.path = "rows.*.forward", .type = number, .meaning = "forward pass of the block", .required = true, .max = 1e6,
     .above_min = true, .unit = Unit::seconds},
    {.path = "rows.*.backward", .type = number, .meaning = "both gradients", .required = true, .max = 1e6,
     .above_min = true, .unit = Unit::seconds},
    {.path = "rows.*.curvature", .type = number, .meaning = "K-FAC factors A and B of all Linears",
     .fallback = "0", .max = 1e6, .unit = Unit::seconds},
    {.path = "rows.*.inversion", .type = number, .meaning = "inverses of all factors",
     .fallback = "0", .max = 1e6, .unit = Unit::seconds},
    {.path = "rows.*.precondition", .type = number, .meaning = "gradients times inverses, once per step",
     .fallback = "0", .max = 1e6, .unit = Unit::seconds},
    {.path = "rows.*.parameters", .type = number, .meaning = "one copy", .fallback = "0", .max = 1e18,
     .unit = Unit::bytes},
    {.path = "rows.*.activations", .type = number, .meaning = "kept from forward to backward",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes},
    {.path = "rows.*.peak_error", .type = number, .meaning = "working memory of one backward",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes},
    {.path = "rows.*.saved_error", .type = number, .meaning = "output gradients of the Linears",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes},
    {.path = "rows.*.factors", .type = number, .meaning = "Kronecker factors", .fallback = "0",
     .max = 1e18, .unit = Unit::bytes},
};
// clang-format on

}  // namespace

std::span<const Key> block_table_keys() { return block_table; }

// The ways from a Scenario to the fields that keys are bound to.

namespace {

constexpr auto step = &Scenario::step;
constexpr auto layout = &Step::layout;
constexpr auto optimizer = &Step::optimizer;
constexpr auto routing = &Step::routing;
constexpr auto levers = &Step::levers;
constexpr auto narrow_habits = &Step::narrow_habits;
constexpr auto lora = &Levers::lora;
constexpr auto rate = &Optimizer::lr_schedule;
constexpr auto run = &Scenario::run;
constexpr auto faults = &Scenario::faults;
constexpr auto training = &FaultModel::training;
constexpr auto growth = &Scenario::growth;
constexpr auto dynamics = &GrowthChoice::dynamics;

// A word, or a list of layers per stage.
constexpr Binding split_field{
    [](const Settings& settings, std::string_view path, Scenario& scenario) {
      Layout& layout = scenario.step.layout;
      layout.split_list = settings.integers(path);
      if (const auto stages = pipeline_stages(settings.text(path)))
        layout.split_list.assign(stages->layers.begin(), stages->layers.end());
      layout.split = layout.split_list.empty() ? value_in(split_names, settings.text(path)).value_or(SplitKind::even)
                                               : SplitKind::list;
    },
    [](const Scenario& scenario) {
      const Layout& layout = scenario.step.layout;
      return layout.split == SplitKind::list ? binding::written(layout.split_list)
                                             : std::string(name_in(split_names, layout.split));
    }};

// A set, written as a list of its names.
template <const auto& names, auto... members>
constexpr Binding words_field{[](const Settings& settings, std::string_view path, Scenario& scenario) {
                                auto& set = binding::member<members...>(scenario);
                                set = {};
                                for (const std::string& word : settings.words(path))
                                  if (const auto value = value_in(names, word)) set.add(*value);
                              },
                              [](const Scenario& scenario) {
                                std::string text;
                                for (const auto& each : names)
                                  if (binding::member<members...>(scenario).has(each.value))
                                    text += (text.empty() ? "" : ", ") + std::string(each.name);
                                return "[" + text + "]";
                              }};

// By its name or an alias ("bf16").
constexpr Binding dtype_field{[](const Settings& settings, std::string_view path, Scenario& scenario) {
                                scenario.step.dtype = dtype_named(settings.text(path)).value_or(Dtype::bfloat16);
                              },
                              [](const Scenario& scenario) { return name_of(scenario.step.dtype); }};
constexpr Binding gradient_dtype_field{[](const Settings& settings, std::string_view path, Scenario& scenario) {
                                         scenario.step.gradient_dtype =
                                             dtype_named(settings.text(path)).value_or(Dtype::float32);
                                       },
                                       [](const Scenario& scenario) { return name_of(scenario.step.gradient_dtype); }};
constexpr Binding moment_dtype_field{
    [](const Settings& settings, std::string_view path, Scenario& scenario) {
      scenario.step.optimizer.moment_dtype = dtype_named(settings.text(path)).value_or(Dtype::float32);
    },
    [](const Scenario& scenario) { return name_of(scenario.step.optimizer.moment_dtype); }};

}  // namespace

// Keys of `training`: how the batch grows, and how the loss falls by batches of any size. A part of the scenario's
// table.

namespace {

using enum KeyType;

// clang-format off
const Key training_table[] = {
    {.path = "training", .type = section,
     .meaning = "how the batch grows and the loss falls (`slipway growth`, `slipway execute`)", .derived = "none"},
    {.path = "training.target_loss", .type = number, .meaning = "loss in nats, to which the time is computed; ends training without run.tokens",
     .derived = "run.tokens end it", .max = 1e3, .above_min = true,
     .bound = field<growth, &GrowthChoice::target_loss>},
    {.path = "training.source", .type = text, .meaning = "who measured training.loss and training.noise, on what",
     .derived = "unknown, with a note",
     .bound = field<growth, &GrowthChoice::source>},
    {.path = "training.fitted", .type = section, .meaning = "the runs that training.loss and training.noise were fitted to; answers outside them get a note",
     .derived = "unknown"},
    {.path = "training.fitted.batches", .type = integers, .meaning = "least and most sequences per step", .derived = "unknown", .min = 1,
     .bound = field<growth, &GrowthChoice::fitted_batches>},
    {.path = "training.fitted.lowest_loss", .type = number, .meaning = "lowest loss, nats", .derived = "unknown", .max = 1e3, .above_min = true,
     .bound = field<growth, &GrowthChoice::fitted_loss>},
    {.path = "training.growth", .type = section, .meaning = "how the batch grows from schedule.global_batch on",
     .derived = "the batch stays"},
    {.path = "training.growth.rule", .type = choice,
     .meaning = "norm-test: by the gradient's noise (Lau et al. 2024); linear and stages: by the sequences seen",
     .derived = "needed by `growth` and `execute`", .choices = words_of<batch_rule_names>,
     .bound = choice_field<batch_rule_names, growth, &GrowthChoice::rule>},
    {.path = "training.growth.largest", .type = integer, .meaning = "largest batch of every rule, sequences per step",
     .derived = "needed by `growth` and `execute`", .min = 1, .max = 1e12,
     .bound = field<growth, &GrowthChoice::largest>},
    {.path = "training.growth.sizes", .type = integer,
     .meaning = "number of batches from the first to the largest, evenly on a logarithmic scale; a rule's batch is rounded up to the next",
     .derived = "every batch that the schedule can run", .min = 2, .max = 1e6,
     .bound = field<growth, &GrowthChoice::sizes>},
    {.path = "training.growth.eta", .type = number,
     .meaning = "norm test: allowed noise as a share of the gradient's norm; smaller values need larger batches",
     .derived = "needed by norm-test", .max = 1e3, .above_min = true,
     .bound = field<growth, &GrowthChoice::eta>},
    {.path = "training.growth.test_every", .type = integer, .meaning = "norm test: steps between two tests",
     .derived = "1", .min = 1, .max = 1e9,
     .bound = field<growth, &GrowthChoice::test_every>},
    {.path = "training.growth.warmup", .type = integer,
     .meaning = "linear: sequences until the largest batch", .derived = "needed by linear", .min = 1, .max = 1e15,
     .bound = field<growth, &GrowthChoice::warmup>},
    {.path = "training.growth.stages", .type = sections, .meaning = "stages: batches, each from some sequence on",
     .derived = "needed by stages"},
    {.path = "training.growth.stages.*.from", .type = integer, .meaning = "sequences seen", .required = true,
     .min = 1, .max = 1e15},
    {.path = "training.growth.stages.*.batch", .type = integer, .meaning = "sequences per step", .required = true,
     .min = 1, .max = 1e12},
    {.path = "training.loss", .type = section,
     .meaning = "floor + (start - floor) (1 + S/offset)^-exponent after S noiseless steps; `slipway growth --fit` measures it",
     .derived = "needed by `slipway growth`"},
    {.path = "training.loss.start", .type = number, .meaning = "nats, at the beginning",
     .derived = "needed by `slipway growth`", .max = 1e3, .above_min = true,
     .bound = field<growth, dynamics, &LossDynamics::start>},
    {.path = "training.loss.floor", .type = number, .meaning = "lower limit of the loss, nats",
     .derived = "needed by `slipway growth`", .max = 1e3,
     .bound = field<growth, dynamics, &LossDynamics::floor>},
    {.path = "training.loss.offset", .type = number, .meaning = "noiseless steps before the beginning",
     .derived = "needed by `slipway growth`", .max = 1e12, .above_min = true,
     .bound = field<growth, dynamics, &LossDynamics::offset>},
    {.path = "training.loss.exponent", .type = number, .meaning = "exponent of the power law",
     .derived = "needed by `slipway growth`", .max = 100, .above_min = true,
     .bound = field<growth, dynamics, &LossDynamics::exponent>},
    {.path = "training.noise", .type = section,
     .meaning = "gradient noise scale (McCandlish et al. 2018): the batch whose steps get half as far as a noiseless one",
     .derived = "needed by `slipway growth`"},
    {.path = "training.noise.scale", .type = number, .meaning = "noise scale at at_loss",
     .derived = "needed by `slipway growth`", .max = 1e15, .above_min = true, .unit = Unit::tokens,
     .bound = field<growth, dynamics, &LossDynamics::noise_tokens>},
    {.path = "training.noise.at_loss", .type = number, .meaning = "loss at which scale was measured, nats",
     .derived = "needed by `slipway growth`", .max = 1e3, .above_min = true,
     .bound = field<growth, dynamics, &LossDynamics::noise_loss>},
    {.path = "training.noise.exponent", .type = number,
     .meaning = "scale grows as loss^-exponent; 0: it stays", .derived = "1/0.21 (Kaplan et al. 2020)", .max = 100,
     .bound = field<growth, dynamics, &LossDynamics::noise_exponent>},
    {.path = "training.noise.least", .type = number, .meaning = "lower end of scale's range, for a range of answers",
     .derived = "no range", .max = 1e15, .above_min = true, .unit = Unit::tokens,
     .bound = field<growth, &GrowthChoice::noise_least>},
    {.path = "training.noise.most", .type = number, .meaning = "upper end of scale's range",
     .derived = "no range", .max = 1e15, .above_min = true, .unit = Unit::tokens,
     .bound = field<growth, &GrowthChoice::noise_most>},
};
// clang-format on

}  // namespace

std::span<const Key> training_keys() { return training_table; }

// The table of a machine profile: the fields of struct Machine, by their names.

namespace {

using enum KeyType;

// One key, one or two lines.
// Zero peaks are of dtypes that the machine does not have.
template <Format format>
constexpr BindingTo<Machine> peak_field{[](const Settings& settings, std::string_view path, Machine& machine) {
                                          machine.peak_flops[static_cast<std::size_t>(format)] = settings.number(path);
                                        },
                                        [](const Machine& machine) {
                                          const double peak = machine.peak_flops[static_cast<std::size_t>(format)];
                                          return peak > 0 ? binding::written(peak) : std::string();
                                        }};

constexpr BindingTo<Machine> generation_field{
    [](const Settings& settings, std::string_view path, Machine& machine) {
      if (const int index = settings.choice(path); index >= 0) machine.generation = generation_names[index].value;
    },
    [](const Machine& machine) {
      return machine.generation == Generation::other ? std::string() : std::string(name_of(machine.generation));
    }};

// Empty links are not written.
template <Link Machine::*link, auto member>
constexpr BindingTo<Machine> link_field{machine_field<link, member>.read, [](const Machine& machine) {
                                          const Link& given = machine.*link;
                                          const bool is_empty =
                                              given.name.empty() && given.bandwidth == 0 && given.latency == 0;
                                          return is_empty ? std::string() : binding::written(given.*member);
                                        }};

// clang-format off
const Key machine_table[] = {
    {.path = "name", .type = text, .meaning = "name of the machine", .derived = "the file's name",
     .of_machine = machine_field<&Machine::name>},
    {.path = "memory_bytes", .type = number, .meaning = "capacity of one GPU, or of one rank's share",
     .required = true,
     .max = 1e18, .above_min = true, .unit = Unit::bytes,
     .of_machine = machine_field<&Machine::memory_bytes>},
    {.path = "generation", .type = choice, .meaning = "of the GPU: which attention kernels a trainer has for it",
     .fallback = "other", .choices = words_of<generation_names>,
     .of_machine = generation_field},
    {.path = "peak_flops", .type = section, .meaning = "dense FLOP/s per dtype; absent = not supported",
     .derived = "required of GPUs; cores: until calibrated"},
    {.path = "peak_flops.float64", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::float64>},
    {.path = "peak_flops.float32", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::float32>},
    {.path = "peak_flops.tf32", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::tf32>},
    {.path = "peak_flops.bfloat16", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::bfloat16>},
    {.path = "peak_flops.float16", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::float16>},
    {.path = "peak_flops.fp8", .type = number, .meaning = "peak, also of scales per block", .max = 1e21,
     .unit = Unit::flops,
     .of_machine = peak_field<Format::fp8>},
    {.path = "peak_flops.nvfp4", .type = number, .meaning = "peak", .max = 1e21, .unit = Unit::flops,
     .of_machine = peak_field<Format::nvfp4>},
    {.path = "memory_bandwidth", .type = number, .meaning = "memory bandwidth of one GPU, or of one rank",
     .derived = "required of GPUs; cores: until calibrated", .max = 1e18, .above_min = true,
     .unit = Unit::bytes_per_second,
     .of_machine = machine_field<&Machine::memory_bandwidth>},
    {.path = "gemm_efficiency", .type = number, .meaning = "share of peak of a large GEMM",
     .fallback = "1", .max = 1,
     .above_min = true,
     .of_machine = machine_field<&Machine::gemm_efficiency>},
    {.path = "gemm_half", .type = number, .meaning = "smallest GEMM side that reaches half of gemm_efficiency",
     .fallback = "0", .max = 1e9,
     .of_machine = machine_field<&Machine::gemm_half>},
    {.path = "factorization_half", .type = number,
     .meaning = "side at which a Cholesky factorization and inversion reach half of gemm_efficiency",
     .fallback = "0", .max = 1e9,
     .of_machine = machine_field<&Machine::factorization_half>},
    {.path = "attention_efficiency", .type = number, .meaning = "share of peak of the attention kernel",
     .fallback = "1", .max = 1, .above_min = true,
     .of_machine = machine_field<&Machine::attention_efficiency>},
    {.path = "memory_efficiency", .type = number,
     .meaning = "share of memory_bandwidth of element-wise kernels",
     .fallback = "1", .max = 1, .above_min = true,
     .of_machine = machine_field<&Machine::memory_efficiency>},
    {.path = "launch_overhead", .type = number, .meaning = "time per kernel", .fallback = "0", .max = 10,
     .unit = Unit::seconds,
     .of_machine = machine_field<&Machine::launch_overhead>},
    {.path = "task_overhead", .type = number, .meaning = "time per graph task", .fallback = "0", .max = 10,
     .unit = Unit::seconds,
     .of_machine = machine_field<&Machine::task_overhead>},
    {.path = "overlap_slowdown", .type = number, .meaning = "compute time factor beside communication",
     .fallback = "1",
     .min = 1, .max = 100,
     .of_machine = machine_field<&Machine::overlap_slowdown>},
    {.path = "spread", .type = number,
     .meaning = "standard deviation of ln(duration) of work that the profile's fit had not seen, written by calibrate; 0: unknown, and predictions have no interval",
     .fallback = "0", .max = 10,
     .of_machine = machine_field<&Machine::spread>},
    {.path = "cores", .type = integer, .meaning = "cores that a node's ranks share; 0 = GPUs",
     .fallback = "0", .max = 1e6,
     .of_machine = machine_field<&Machine::cores>},
    {.path = "node_link", .type = section, .meaning = "between ranks of one node"},
    {.path = "node_link.name", .type = text, .meaning = "name of the link",
     .of_machine = link_field<&Machine::node_link, &Link::name>},
    {.path = "node_link.bandwidth", .type = number, .meaning = "per port and direction", .fallback = "0",
     .max = 1e18,
     .unit = Unit::bytes_per_second,
     .of_machine = link_field<&Machine::node_link, &Link::bandwidth>},
    {.path = "node_link.latency", .type = number, .meaning = "latency of one message", .fallback = "0", .max = 1e3,
     .unit = Unit::seconds,
     .of_machine = link_field<&Machine::node_link, &Link::latency>},
    {.path = "node_link.efficiency", .type = number,
     .meaning = "share of bandwidth that a large message reaches",
     .fallback = "1", .max = 1, .above_min = true,
     .of_machine = link_field<&Machine::node_link, &Link::efficiency>},
    {.path = "node_link.mesh", .type = integer,
     .meaning = "GPUs of a node that are joined pairwise, without a switch: a pair has bandwidth / (mesh - 1); 0 = a switch",
     .fallback = "0", .max = 1e3,
     .of_machine = link_field<&Machine::node_link, &Link::mesh>},
    {.path = "network_link", .type = section, .meaning = "between nodes"},
    {.path = "network_link.name", .type = text, .meaning = "name of the link",
     .of_machine = link_field<&Machine::network_link, &Link::name>},
    {.path = "network_link.bandwidth", .type = number, .meaning = "per port and direction",
     .fallback = "0", .max = 1e18,
     .unit = Unit::bytes_per_second,
     .of_machine = link_field<&Machine::network_link, &Link::bandwidth>},
    {.path = "network_link.latency", .type = number, .meaning = "latency of one message", .fallback = "0",
     .max = 1e3,
     .unit = Unit::seconds,
     .of_machine = link_field<&Machine::network_link, &Link::latency>},
    {.path = "network_link.efficiency", .type = number,
     .meaning = "share of bandwidth that a large message reaches",
     .fallback = "1", .max = 1, .above_min = true,
     .of_machine = link_field<&Machine::network_link, &Link::efficiency>},
    {.path = "host_to_device", .type = section,
     .meaning = "copies from pinned memory of the host to a GPU (schedule.offload)"},
    {.path = "host_to_device.name", .type = text, .meaning = "name of the link",
     .of_machine = link_field<&Machine::host_to_device, &Link::name>},
    {.path = "host_to_device.bandwidth", .type = number, .meaning = "bandwidth of one GPU while all GPUs of a node copy",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes_per_second,
     .of_machine = link_field<&Machine::host_to_device, &Link::bandwidth>},
    {.path = "host_to_device.latency", .type = number, .meaning = "latency of one copy",
     .fallback = "0", .max = 1e3, .unit = Unit::seconds,
     .of_machine = link_field<&Machine::host_to_device, &Link::latency>},
    {.path = "host_to_device.efficiency", .type = number,
     .meaning = "share of bandwidth that a large copy reaches", .fallback = "1", .max = 1, .above_min = true,
     .of_machine = link_field<&Machine::host_to_device, &Link::efficiency>},
    {.path = "device_to_host", .type = section,
     .meaning = "copies back"},
    {.path = "device_to_host.name", .type = text, .meaning = "name of the link",
     .of_machine = link_field<&Machine::device_to_host, &Link::name>},
    {.path = "device_to_host.bandwidth", .type = number, .meaning = "bandwidth of one GPU while all GPUs of a node copy",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes_per_second,
     .of_machine = link_field<&Machine::device_to_host, &Link::bandwidth>},
    {.path = "device_to_host.latency", .type = number, .meaning = "latency of one copy",
     .fallback = "0", .max = 1e3, .unit = Unit::seconds,
     .of_machine = link_field<&Machine::device_to_host, &Link::latency>},
    {.path = "device_to_host.efficiency", .type = number,
     .meaning = "share of bandwidth that a large copy reaches", .fallback = "1", .max = 1, .above_min = true,
     .of_machine = link_field<&Machine::device_to_host, &Link::efficiency>},
    {.path = "host_memory_bandwidth", .type = number,
     .meaning = "a GPU's share of the bandwidth of its host's memory, for states in it (run.optimizer.offload_fraction); 0 = unknown",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes_per_second,
     .of_machine = machine_field<&Machine::host_memory_bandwidth>},
    {.path = "reduce_bandwidth", .type = number, .meaning = "rate at which a rank adds incoming data; 0 = free",
     .fallback = "0", .max = unbounded, .unit = Unit::bytes_per_second,
     .of_machine = machine_field<&Machine::reduce_bandwidth>},
    {.path = "provenance", .type = section, .meaning = "where the numbers come from"},
    {.path = "provenance.source", .type = text, .meaning = "citation, data sheet or command",
     .of_machine = machine_field<&Machine::provenance, &Provenance::source>},
    {.path = "provenance.date", .type = text, .meaning = "ISO date of a measurement",
     .of_machine = machine_field<&Machine::provenance, &Provenance::date>},
    {.path = "provenance.machine", .type = text, .meaning = "host of a measurement",
     .of_machine = machine_field<&Machine::provenance, &Provenance::machine>},
};
// clang-format on

}  // namespace

std::span<const Key> machine_keys() { return machine_table; }

// Keys of `model`: a part of the scenario's table.

namespace {

using Names = std::vector<std::string_view>;

Names families() { return {"llama", "gpt", "bert"}; }

Names models() {
  Names names;
  for (const EmbeddedFile& file : embedded_models()) names.push_back(file.name);
  return names;
}

constexpr std::string_view own = "the model's own";

using enum KeyType;

// clang-format off
const Key model_table[] = {
    {.path = "model", .type = section,
     .meaning = "what is trained: a built-in model, a config.json, or shapes",
     .required = true, .shorthand = "name"},
    {.path = "model.name", .type = choice, .meaning = "a built-in model",
     .derived = "or give config or family",
     .choices = models},
    {.path = "model.config", .type = text,
     .meaning = "path of a Hugging Face config.json (`slipway list models` has the families), relative to the scenario",
     .derived = "or give name or family", .names_file = true},
    {.path = "model.family", .type = choice,
     .meaning = "block structure when neither name nor config is given",
     .derived = "or give name or config", .choices = families},
    {.path = "model.sequence", .type = integer, .meaning = "tokens per sequence", .derived = own,
     .min = 1, .max = 1e8},
    {.path = "model.layers", .type = integer, .meaning = "transformer blocks", .derived = own, .min = 1,
     .max = 1e4},
    {.path = "model.hidden", .type = integer, .meaning = "width of the residual stream", .derived = own,
     .min = 1, .max = 1e7},
    {.path = "model.ffn", .type = integer, .meaning = "width of the MLP; of one expert where there are experts", .derived = own, .min = 1,
     .max = 1e8},
    {.path = "model.experts", .type = integer,
     .meaning = "experts in place of each MLP (llama; Mixtral and Qwen3-MoE have them); 0: a plain MLP", .derived = own, .min = 0, .max = 1e5},
    {.path = "model.experts_per_token", .type = integer,
     .meaning = "experts that a token goes through (llama)", .derived = own, .min = 1, .max = 1e5},
    {.path = "model.shared_ffn", .type = integer,
     .meaning = "width of the experts that every token goes through, all together (llama); 0: none", .derived = own,
     .min = 0, .max = 1e9},
    {.path = "model.heads", .type = integer, .meaning = "attention heads", .derived = own, .min = 1,
     .max = 1e6},
    {.path = "model.kv_heads", .type = integer, .meaning = "key and value heads (llama)", .derived = own,
     .min = 1, .max = 1e6},
    {.path = "model.head_dim", .type = integer, .meaning = "width of one head (llama)",
     .derived = "hidden / heads",
     .min = 1, .max = 1e6},
    {.path = "model.vocab", .type = integer, .meaning = "vocabulary, padded", .derived = own, .min = 1,
     .max = 1e8},
    {.path = "model.max_positions", .type = integer,
     .meaning = "rows of the learned position table (gpt, bert; llama with positions learned)",
     .derived = own, .min = 1, .max = 1e8},
    {.path = "model.token_types", .type = integer, .meaning = "rows of the token-type table (bert)",
     .derived = own,
     .min = 0, .max = 1e4},
    {.path = "model.tied", .type = flag, .meaning = "the head's matrix is the embedding's", .derived = own},
    {.path = "model.qkv_bias", .type = flag,
     .meaning = "biases of the query, key and value projections (llama; Qwen2 has them)", .derived = own},
    {.path = "model.qk_norm", .type = flag,
     .meaning = "an RMSNorm on each head's query and key, before the rotary turn (llama; Qwen3 has it)", .derived = own},
    {.path = "model.qk_norm_over", .type = choice,
     .meaning = "what these norms go over: each head, all heads at once (OLMo 2), or each head and without weights (Llama 4) (llama)",
     .derived = own, .choices = words_of<qk_norm_names>},
    {.path = "model.rope_head_dim", .type = integer,
     .meaning = "numbers of a head that rotary positions turn (llama); 0: all", .derived = own, .min = 0, .max = 1e6},
    {.path = "model.kv_latent", .type = integer,
     .meaning = "multi-head latent attention: width of the latent of keys and values (llama; DeepSeek-V3: 512); 0: none",
     .derived = own, .min = 0, .max = 1e6},
    {.path = "model.q_latent", .type = integer,
     .meaning = "latent attention: width of the queries' latent; 0: they come from the input", .derived = own, .min = 0, .max = 1e6},
    {.path = "model.qk_head_dim", .type = integer,
     .meaning = "latent attention: numbers of a query's or key's head without positions; rope_head_dim more have them",
     .derived = own, .min = 1, .max = 1e6},
    {.path = "model.v_head_dim", .type = integer, .meaning = "width of one head's values (llama)",
     .derived = "head_dim; with latent attention qk_head_dim", .min = 1, .max = 1e6},
    {.path = "model.window", .type = integer,
     .meaning = "sliding window: tokens that a token attends to, itself included (llama); 0: all before it", .derived = own,
     .min = 0, .max = 1e8},
    {.path = "model.window_chunks", .type = flag,
     .meaning = "the window does not slide: tokens attend within chunks of its length (llama; Llama 4)", .derived = own},
    {.path = "model.full_every", .type = integer,
     .meaning = "one of so many layers has no window, the last of them (llama; Gemma 2: 2, Gemma 3: 6); 0: none", .derived = own,
     .min = 0, .max = 1e4},
    {.path = "model.full_positions", .type = choice,
     .meaning = "positions of the layers without a window; with none, queries and keys have no norm there (llama; Llama 4: none)",
     .derived = "model.positions", .choices = words_of<positions_names>},
    {.path = "model.window_rope_theta", .type = number,
     .meaning = "base of the rotary angles in layers with a window (llama; Gemma 3: 10000)", .derived = "model.rope_theta",
     .max = unbounded, .above_min = true},
    {.path = "model.sinks", .type = flag, .meaning = "a learned logit a head in attention's softmax (llama; gpt-oss)", .derived = own},
    {.path = "model.dense_layers", .type = integer,
     .meaning = "with experts: the first so many layers have an MLP instead (llama; DeepSeek-V3: 3)", .derived = own, .min = 0,
     .max = 1e4},
    {.path = "model.dense_ffn", .type = integer, .meaning = "width of the MLP in layers without experts (llama)", .derived = "ffn",
     .min = 1, .max = 1e8},
    {.path = "model.experts_every", .type = integer,
     .meaning = "one of so many layers has experts, the last of them (llama; Llama 4 Maverick: 2)", .derived = own, .min = 1,
     .max = 1e4},
    {.path = "model.expert_groups", .type = integer, .meaning = "equally large groups of experts (llama; DeepSeek-V3: 8)",
     .derived = own, .min = 1, .max = 1e5},
    {.path = "model.groups_per_token", .type = integer,
     .meaning = "groups that a token's experts are in (llama; DeepSeek-V3: 4)", .derived = own, .min = 1, .max = 1e5},
    {.path = "model.router_scores", .type = choice, .meaning = "how the router weighs experts (llama; DeepSeek-V3: sigmoid)",
     .derived = own, .choices = words_of<router_scores_names>},
    {.path = "model.normalised_scores", .type = flag,
     .meaning = "the weights of a token's experts are divided by their sum (llama)", .derived = own},
    {.path = "model.score_scale", .type = number, .meaning = "factor on these weights (llama; DeepSeek-V3: 2.5)", .derived = own,
     .max = unbounded, .above_min = true},
    {.path = "model.predicted_tokens", .type = integer,
     .meaning = "multi-token prediction: modules behind the last layer, on the head's stage (llama; DeepSeek-V3: 1)", .derived = own,
     .min = 0, .max = 1},
    {.path = "model.mlp", .type = choice, .meaning = "the MLP's kind (llama); swiglu and geglu have a third matrix", .derived = own,
     .choices = words_of<mlp_names>},
    {.path = "model.norm", .type = choice, .meaning = "RMSNorm or LayerNorm (llama)", .derived = own, .choices = words_of<norm_names>},
    {.path = "model.norms", .type = choice,
     .meaning = "norms of a sub-layer's input, of its result (OLMo 2), or of both (Gemma 2) (llama)", .derived = own,
     .choices = words_of<norm_place_names>},
    {.path = "model.embedding_norm", .type = flag, .meaning = "a norm behind the embedding (llama; BLOOM)", .derived = own},
    {.path = "model.parallel", .type = choice,
     .meaning = "attention and MLP side by side, with one norm (GPT-J) or two (GPT-NeoX) (llama)", .derived = own,
     .choices = words_of<parallel_names>},
    {.path = "model.positions", .type = choice, .meaning = "how positions enter (llama)", .derived = own,
     .choices = words_of<positions_names>},
    {.path = "model.bias", .type = flag, .meaning = "biases of all Linears in layers, routers included (llama)", .derived = own},
    {.path = "model.out_bias", .type = flag, .meaning = "a bias of attention's output projection (llama)", .derived = own},
    {.path = "model.mlp_bias", .type = flag, .meaning = "biases of the MLPs, experts and routers (llama)", .derived = own},
    {.path = "model.head_bias", .type = flag, .meaning = "a bias of the vocabulary projection (llama; GPT-J)", .derived = own},
    {.path = "model.rope_theta", .type = number, .meaning = "base of the rotary angles (llama)",
     .derived = own,
     .max = unbounded, .above_min = true},
    {.path = "model.norm_epsilon", .type = number, .meaning = "added to the variance in norms",
     .derived = own,
     .max = 1, .above_min = true},
};
// clang-format on

}  // namespace

std::span<const Key> model_keys() { return model_table; }

// The keys of `run`: training and execution.

namespace {

Names optimizers() { return {"adamw", "kfac"}; }
Names dtypes() { return {"float64", "float32", "bfloat16", "float16"}; }
Names moment_dtypes() { return {"float32", "bfloat16", "float16"}; }

// "bf16" and the like (models/model/dtype.h), and what other programs say.
std::string meant_dtype(std::string_view word) {
  if (const auto dtype = dtype_named(word); dtype && dtype != Dtype::tf32) return did_you_mean({name_of(*dtype)});
  if (word.starts_with("fp8") || word.starts_with("float8") || word.starts_with("e4m3") || word.starts_with("e5m2"))
    return "products in FP8 are run.fp8; weights and activations stay in bfloat16";
  if (word == "half") return did_you_mean({"float16"});
  if (word == "float" || word == "single") return did_you_mean({"float32"});
  return word == "double" ? did_you_mean({"float64"}) : "";
}

using enum KeyType;

// One key, one or two lines.
// clang-format off
const Key run_table[] = {
    {.path = "run", .type = section, .meaning = "training and execution"},
    {.path = "run.steps", .type = integer, .meaning = "steps that execute runs", .fallback = "10",
     .min = 1, .max = 1e9,
     .bound = field<run, &Run::steps>},
    {.path = "run.seed", .type = integer, .meaning = "seed of parameters and data order", .fallback = "0",
     .max = largest_int64,
     .bound = field<run, &Run::seed>},
    {.path = "run.routing_skew", .type = number,
     .meaning = "how unevenly tokens go to experts on other ranks: popularity of the i-th expert i^-skew; 0: evenly; of predictions",
     .fallback = "0", .max = 10,
     .bound = field<step, routing, &Routing::skew>},
    {.path = "run.routing_seed", .type = integer,
     .meaning = "seed of which experts of each layer are the popular ones",
     .fallback = "0", .max = largest_int64,
     .bound = field<step, routing, &Routing::seed>},
    {.path = "run.forced_routing", .type = flag,
     .meaning = "tokens take turns among the experts, whatever the router says (--moe-router-force-load-balancing of Megatron-Core)",
     .fallback = "false",
     .bound = field<step, routing, &Routing::forced>},
    {.path = "run.balancing_loss", .type = number,
     .meaning = "weight of the loss that balances the load of experts (Switch Transformer, equation 4); 0: none",
     .fallback = "0", .max = unbounded,
     .bound = field<step, routing, &Routing::balancing_loss>},
    {.path = "run.balancing_sequences", .type = integer,
     .meaning = "sequences that the loss balances together, 1 to schedule.micro_batch x layout.data (the global micro-batch); 0: schedule.micro_batch",
     .fallback = "0", .max = 1e9,
     .bound = field<step, routing, &Routing::balancing_sequences>},
    {.path = "run.expert_capacity", .type = number,
     .meaning = "rows that an expert takes of the tokens a rank routes, by those of balanced routing; further ones are dropped; 0: all",
     .fallback = "0", .max = unbounded,
     .bound = field<step, routing, &Routing::capacity>},
    {.path = "run.router_bias_speed", .type = number,
     .meaning = "how far a step moves the router's bias of each expert against its load (DeepSeek-V3, section 2.1.2: 0.001); 0: no bias",
     .fallback = "0", .max = unbounded,
     .bound = field<step, optimizer, &Optimizer::router_bias_speed>},
    {.path = "run.data", .type = text,
     .meaning = "path of a text file, read as bytes, or of Megatron token files (PREFIX.bin beside PREFIX.idx), relative to the scenario",
     .names_file = true},
    {.path = "run.evaluation_data", .type = text,
     .meaning = "the same for held-out data, which schedule.fill evaluation uses when it is executed",
     .names_file = true},
    {.path = "run.checkpoint_steps", .type = integer,
     .meaning = "steps between two checkpoints in the run's folder, which execute --resume goes on from; 0 = none",
     .fallback = "0", .max = 1e9,
     .bound = field<run, &Run::checkpoint_steps>},
    {.path = "run.checkpoints_kept", .type = integer, .meaning = "number of newest checkpoints to keep",
     .fallback = "2", .min = 1, .max = 1e6,
     .bound = field<run, &Run::checkpoints_kept>},
    {.path = "run.heartbeat_seconds", .type = number,
     .meaning = "how long a rank may be stopped (SIGSTOP) before the run ends; one of another host counts as lost after 6 s of silence",
     .fallback = "10", .max = 1e6, .above_min = true, .unit = Unit::seconds,
     .bound = field<run, &Run::heartbeat_s>},
    {.path = "run.optimizer", .type = section, .meaning = "the optimizer and its numbers",
     .shorthand = "name"},
    {.path = "run.optimizer.name", .type = choice, .meaning = "the optimizer; kfac: natural gradient for the matrices of Transformer blocks, AdamW for the rest",
     .fallback = "adamw",
     .choices = optimizers,
     .bound = field<step, optimizer, &Optimizer::name>},
    {.path = "run.optimizer.refresh_steps", .type = integer,
     .meaning = "steps between two refreshes of K-FAC's inverses without bubble work; a refresh runs behind the last of them and serves the next ones",
     .derived = "filled: as the bubbles allow; else 1", .min = 1, .max = 1e5,
     .bound = field<step, optimizer, &Optimizer::refresh_steps>},
    {.path = "run.optimizer.damping", .type = number,
     .meaning = "damping of K-FAC's factors, divided between the two of a matrix (factored Tikhonov)", .fallback = "0.001",
     .max = unbounded, .above_min = true,
     .bound = field<step, optimizer, &Optimizer::damping>},
    {.path = "run.optimizer.lr", .type = number, .meaning = "the same as run.lr", .derived = "run.lr",
     .max = unbounded,
     .bound = field<step, optimizer, &Optimizer::lr>},
    {.path = "run.optimizer.lr_warmup_samples", .type = integer,
     .meaning = "sequences over which the learning rate rises to run.lr, including those of the step; 0 = no warm-up",
     .fallback = "0", .max = largest_int64,
     .bound = field<step, optimizer, rate, &LearningRateSchedule::warmup_samples>},
    {.path = "run.optimizer.lr_decay_style", .type = choice,
     .meaning = "decay of the learning rate after the warm-up: none, or down to min_lr along a line or half a cosine",
     .fallback = "constant", .choices = words_of<decay_names>,
     .bound = choice_field<decay_names, step, optimizer, rate, &LearningRateSchedule::decay>},
    {.path = "run.optimizer.lr_decay_samples", .type = integer,
     .meaning = "sequences from the beginning of the training, warm-up included, after which the rate is min_lr",
     .derived = "the end of the training: run.steps (plan --emit: run.tokens)", .min = 1, .max = largest_int64,
     .bound = field<step, optimizer, rate, &LearningRateSchedule::decay_samples>},
    {.path = "run.optimizer.min_lr", .type = number, .meaning = "learning rate after the decay", .fallback = "0",
     .max = unbounded,
     .bound = field<step, optimizer, rate, &LearningRateSchedule::least>},
    {.path = "run.optimizer.beta1", .type = number, .meaning = "decay of the first moment",
     .fallback = "0.9", .max = 0.999999,
     .bound = field<step, optimizer, &Optimizer::beta1>},
    {.path = "run.optimizer.beta2", .type = number, .meaning = "decay of the second moment",
     .fallback = "0.95", .max = 0.999999,
     .bound = field<step, optimizer, &Optimizer::beta2>},
    {.path = "run.optimizer.epsilon", .type = number, .meaning = "added to the root of the second moment",
     .fallback = "1e-8", .max = 1,
     .bound = field<step, optimizer, &Optimizer::epsilon>},
    {.path = "run.optimizer.weight_decay", .type = number, .meaning = "decoupled, on matrices only",
     .fallback = "0.1",
     .max = unbounded,
     .bound = field<step, optimizer, &Optimizer::weight_decay>},
    {.path = "run.optimizer.moment_dtype", .type = choice,
     .meaning = "dtype of adamw's moments beside weights of 2 bytes and their float32 copy, as --exp-avg-dtype of Megatron-Core's precision-aware optimizer; of predictions",
     .fallback = "float32", .choices = moment_dtypes,
     .bound = moment_dtype_field},
    {.path = "run.optimizer.offload_fraction", .type = number,
     .meaning = "share of adamw's states that are in the host's memory and updated by its cores, as --optimizer-offload-fraction of Megatron-Core; of predictions",
     .fallback = "0", .max = 1,
     .bound = field<step, optimizer, &Optimizer::offload_fraction>},
    {.path = "run.lora", .type = section, .meaning = "low-rank adapters beside frozen weights (Hu et al. 2021); of predictions",
     .shorthand = "rank"},
    {.path = "run.lora.rank", .type = integer, .meaning = "rank of the adapters; 0: all weights are trained",
     .fallback = "0", .min = 0, .max = 1e5,
     .bound = field<step, levers, lora, &Lora::rank>},
    {.path = "run.lora.modules", .type = words, .meaning = "Linears that have an adapter: of queries, keys and values, of attention's result, of the MLP or the experts",
     .derived = "all four", .choices = words_of<lora_module_names>,
     .bound = words_field<lora_module_names, step, levers, lora, &Lora::modules>},
    {.path = "run.lr", .type = number, .meaning = "learning rate", .derived = "0.001", .max = unbounded,
     .writes_derived = true, .bound = field<step, optimizer, &Optimizer::lr>},
    {.path = "run.clip_norm", .type = number, .meaning = "global gradient norm; 0 = no clipping",
     .fallback = "0",
     .max = unbounded,
     .bound = field<step, &Step::clip_norm>},
    {.path = "run.tokens", .type = number,
     .meaning = "planned length of training, for days and cost; 0 = unknown",
     .fallback = "0", .max = unbounded, .unit = Unit::tokens,
     .bound = field<&Scenario::tokens>},
    {.path = "run.checkpoint_interval", .type = number,
     .meaning = "training between two checkpoints, in whole steps (`slipway goodput`)",
     .derived = "run.checkpoint_steps, else the best by Daly 2006", .max = 1e9, .above_min = true, .unit = Unit::seconds,
     .bound = field<faults, &FaultModel::checkpoint_interval>},
    {.path = "run.checkpoint_cost", .type = number, .meaning = "time that a checkpoint stops training",
     .derived = "needed by `slipway goodput`", .max = 1e9, .unit = Unit::seconds,
     .bound = field<faults, &FaultModel::checkpoint_cost>},
    {.path = "run.dtype", .type = choice, .meaning = "dtype of weights, activations and messages",
     .derived = "bfloat16 if all machines are GPUs that have it, else float16 if they have that, else float32", .choices = dtypes, .hint = meant_dtype,
     .writes_derived = true, .bound = dtype_field},
    {.path = "run.gradient_dtype", .type = choice,
     .meaning = "dtype in which gradients are summed over micro-batches and replicas; as --grad-reduce-in-bf16 of Megatron-Core",
     .derived = "as cluster.trainer does it, else float32; float64 with run.dtype float64", .choices = dtypes, .hint = meant_dtype,
     .writes_derived = true, .bound = gradient_dtype_field},
    {.path = "run.fp8", .type = choice,
     .meaning = "narrow format of the products of layers, as the recipes of Transformer Engine: delayed and tensorwise (FP8, a scale per tensor), blockwise (per 128 numbers), mxfp8 (per 32), nvfp4 (4 bits, per 16)",
     .fallback = "none", .choices = words_of<narrow_recipe_names>,
     .bound = choice_field<narrow_recipe_names, step, &Step::narrow>},
    {.path = "run.fp8_param_gather", .type = flag,
     .meaning = "with run.fp8 and ZeRO, weights are gathered and kept in the narrow format, as --fp8-param-gather of Megatron-LM and enable_fsdp_float8_all_gather of torchtitan; those of mxfp8 are gathered in the dtype",
     .derived = "as cluster.trainer does it, else false", .writes_derived = true,
     .bound = field<step, narrow_habits, &NarrowHabits::gathers_weights>},
    {.path = "run.fp8_sequence_gather", .type = flag,
     .meaning = "with run.fp8, sequence parallelism gathers inputs and gradients of Linears in the narrow format, as Transformer Engine does",
     .derived = "as cluster.trainer does it, else false", .writes_derived = true,
     .bound = field<step, narrow_habits, &NarrowHabits::gathers_inputs>},
    {.path = "run.fp8_dispatch", .type = flag,
     .meaning = "with run.fp8, tokens travel to experts in 8 bits, and backward the gradients of experts' results (DeepSeek-V3, section 3.3.3); both ways back stay in the dtype",
     .fallback = "false",
     .bound = field<step, narrow_habits, &NarrowHabits::dispatches>},
};
// clang-format on

}  // namespace

std::span<const Key> run_keys() { return run_table; }

// Keys of `cluster` for what is slow or fails: a part of the scenario's table.

namespace {

std::vector<std::string_view> spreads() { return {"half-normal", "lognormal"}; }

using enum KeyType;

// clang-format off
const Key degradation_table[] = {
    {.path = "cluster.stragglers", .type = sections,
     .meaning = "slow GPUs; several entries of one GPU multiply", .derived = "none"},
    {.path = "cluster.stragglers.*.node", .type = integer, .meaning = "node, counted from 0 over all groups",
     .derived = "every node", .max = 1e6},
    {.path = "cluster.stragglers.*.gpu", .type = integer, .meaning = "GPU of the node, counted from 0",
     .derived = "every GPU", .max = 1023},
    {.path = "cluster.stragglers.*.slowdown", .type = number,
     .meaning = "its compute takes this many times as long", .fallback = "1", .min = 1, .max = 1e6},
    {.path = "cluster.stragglers.*.sigma", .type = number,
     .meaning = "spread: each GPU gets one more factor, drawn once", .fallback = "0", .max = 10},
    {.path = "cluster.stragglers.*.distribution", .type = choice,
     .meaning = "distribution of that factor, z standard normal: half-normal 1 + sigma |z|, lognormal exp(sigma z)",
     .fallback = "half-normal", .choices = spreads},
    {.path = "cluster.stragglers.*.seed", .type = integer, .meaning = "seed of the draw", .derived = "run.seed",
     .max = largest_int64},
    {.path = "cluster.slow_links", .type = sections,
     .meaning = "slow or flapping ports, both directions; several entries of one port multiply",
     .derived = "none"},
    {.path = "cluster.slow_links.*.node", .type = integer, .meaning = "node, counted from 0 over all groups",
     .required = true, .max = 1e6},
    {.path = "cluster.slow_links.*.gpu", .type = integer, .meaning = "the port of this GPU of the node",
     .derived = "all its ports", .max = 1023},
    {.path = "cluster.slow_links.*.fabric", .type = integer, .meaning = "index of the fabric",
     .derived = "all of scope cluster", .max = 1e6},
    {.path = "cluster.slow_links.*.bandwidth", .type = number, .meaning = "remaining share of the bandwidth",
     .fallback = "1", .max = 1, .above_min = true},
    {.path = "cluster.slow_links.*.period", .type = number,
     .meaning = "period of a flapping link from 0 s on: up, then down for the share `down` of it",
     .derived = "does not flap", .max = 1e6, .above_min = true, .unit = Unit::seconds},
    {.path = "cluster.slow_links.*.down", .type = number, .meaning = "share of each period in which the link is down",
     .fallback = "0", .max = 0.999},
    {.path = "cluster.link_factors", .type = sections,
     .meaning = "pairs of nodes between which messages get less than the fabrics' bandwidth", .derived = "none"},
    {.path = "cluster.link_factors.*.nodes", .type = integers, .meaning = "the two nodes, counted from 0",
     .required = true, .max = 1e6},
    {.path = "cluster.link_factors.*.factor", .type = number,
     .meaning = "largest share of the bandwidth for one message, both directions", .required = true,
     .max = 1, .above_min = true},
    {.path = "cluster.mtbf_per_node", .type = number,
     .meaning = "mean time between failures of one node, drawn from an exponential distribution",
     .derived = "nodes do not fail", .max = 1e12, .above_min = true, .unit = Unit::seconds, .wants_unit = true,
     .bound = field<faults, training, &FaultyTraining::node_mtbf_s>},
    {.path = "cluster.failures", .type = sections, .meaning = "failures at known times, for `slipway goodput`",
     .derived = "none"},
    {.path = "cluster.failures.*.at", .type = number, .meaning = "time from the beginning of training",
     .required = true, .max = 1e12, .unit = Unit::seconds},
    {.path = "cluster.failures.*.nodes", .type = integer, .meaning = "nodes that fail together", .fallback = "1",
     .min = 1, .max = 1e6},
    {.path = "cluster.restart", .type = number,
     .meaning = "time from the replacement of a failed node to the first step: start, load the checkpoint",
     .fallback = "0", .max = 1e9, .unit = Unit::seconds,
     .bound = field<faults, training, &FaultyTraining::restart_s>},
    {.path = "cluster.repair", .type = number, .meaning = "time from the failure of a node until it can be used again",
     .fallback = "0", .max = 1e12, .unit = Unit::seconds,
     .bound = field<faults, training, &FaultyTraining::repair_s>},
    {.path = "cluster.spare_nodes", .type = integer,
     .meaning = "nodes that wait to take a failed one's place; 0: training waits for the repair",
     .fallback = "0", .max = 1e6,
     .bound = field<faults, training, &FaultyTraining::spare_nodes>},
};
// clang-format on

}  // namespace

std::span<const Key> degradation_keys() { return degradation_table; }

// The scenario's own table. With the parts above it is the whole language.

namespace {

Names scopes() { return {"node", "cluster"}; }

// A schedule may go by the name of its paper: the first part of such a name is enough.
std::string meant_schedule(std::string_view word) {
  std::vector<std::string> meant;
  for (const Schedule& schedule : all_schedules())
    if (!schedule.also_called.empty() &&
        word.starts_with(schedule.also_called.substr(0, schedule.also_called.find('-'))))
      meant.push_back(schedule.name);
  return meant.empty() ? "" : did_you_mean(meant);
}

Names schedules() {
  Names names;
  for (const Schedule& schedule : all_schedules()) names.push_back(schedule.name);
  return names;
}

Names topologies() {
  Names names{"star"};
  for (const Topology& topology : all_topologies()) names.push_back(topology.name);
  return names;
}

using enum KeyType;

// One key, one or two lines.
// clang-format off
const Key cluster_table[] = {
    {.path = "cluster", .type = section, .meaning = "the hardware of the training", .required = true},
    {.path = "cluster.machine", .type = text,
     .meaning = "machine profile of the only group: a built-in name or the path of a profile.yaml",
     .derived = "or give groups", .names_file = true, .built_in = true},
    {.path = "cluster.nodes", .type = integer, .meaning = "nodes of the only group", .derived = "1",
     .min = 1, .max = 1e6},
    {.path = "cluster.gpus_per_node", .type = integer,
     .meaning = "GPUs (or CPU ranks) per node of the only group: those that the node link joins, so up to 72 of a GB200 NVL72",
     .derived = "required with machine", .min = 1, .max = 1024},
    {.path = "cluster.ranks_per_gpu", .type = integer,
     .meaning = "ranks that share one GPU: its memory, its speed, and one process of execute", .fallback = "1",
     .min = 1, .max = 64},
    {.path = "cluster.groups", .type = sections,
     .meaning = "node groups, for a cluster of several kinds of nodes",
     .derived = "one group of machine"},
    {.path = "cluster.groups.*.machine", .type = text,
     .meaning = "machine profile: a built-in name or a path",
     .required = true, .names_file = true, .built_in = true},
    {.path = "cluster.groups.*.nodes", .type = integer, .meaning = "nodes of the group", .fallback = "1",
     .min = 1, .max = 1e6},
    {.path = "cluster.groups.*.gpus_per_node", .type = integer, .meaning = "GPUs (or CPU ranks) per node",
     .required = true, .min = 1, .max = 1024},
    {.path = "cluster.fabrics", .type = sections,
     .meaning = "networks; two ranks use the first one that both are members of, node scope first",
     .derived = "the machines' own links"},
    {.path = "cluster.fabrics.*.name", .type = text, .meaning = "name in tables and traces",
     .derived = "its scope"},
    {.path = "cluster.fabrics.*.scope", .type = choice, .meaning = "node: one copy inside every node",
     .required = true,
     .choices = scopes},
    {.path = "cluster.fabrics.*.members", .type = integers, .meaning = "indices of the member groups",
     .derived = "all groups", .min = 0, .max = 1e6},
    {.path = "cluster.fabrics.*.bandwidth", .type = number,
     .meaning = "bandwidth of one port in each direction, as a large message reaches it",
     .derived = "the members' own link of that scope",
     .max = 1e18, .above_min = true, .unit = Unit::bytes_per_second},
    {.path = "cluster.fabrics.*.latency", .type = number, .meaning = "latency of one message",
     .derived = "the members' own link of that scope", .max = 1e3, .unit = Unit::seconds},
    {.path = "cluster.fabrics.*.gpus_per_port", .type = integer,
     .meaning = "GPUs of a node that share one port",
     .derived = "1; on processors, between nodes: all of the node", .min = 1, .max = 1024},
    {.path = "cluster.fabrics.*.topology", .type = section,
     .meaning = "the shared network between the ports", .derived = "star", .shorthand = "kind"},
    {.path = "cluster.fabrics.*.topology.kind", .type = choice,
     .meaning = "star: non-blocking, only ports are shared", .derived = "star", .choices = topologies},
    {.path = "cluster.collectives", .type = section,
     .meaning = "algorithm of collectives: ring (in rank order), multi-ring (one per member of a node, over all its ports), tree (all-reduces), hierarchical, nccl (multi-ring or tree, whichever takes less), gloo (all-reduces in rings, all-gathers and reduce-scatters between all pairs); the gradient norm over all ranks takes nccl unless it or all is named",
     .derived = "nccl where GPUs have measured kernels; gloo on processors; else ring", .shorthand = "all"},
    {.path = "cluster.collectives.all", .type = choice, .meaning = "algorithm of every communicator that is not named",
     .derived = "gloo on processors; else ring", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.tensor", .type = choice, .meaning = "algorithm of tensor parallel groups",
     .derived = "all's", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.context", .type = choice, .meaning = "algorithm of context parallel groups",
     .derived = "all's", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.data", .type = choice, .meaning = "algorithm of data parallel groups",
     .derived = "all's", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.embedding", .type = choice, .meaning = "algorithm between first and last stage, for tied embeddings",
     .derived = "all's", .choices = words_of<algorithm_names>},
    {.path = "cluster.collectives.world", .type = choice, .meaning = "algorithm over all ranks, for the gradient norm",
     .derived = "all's, else gloo on processors and nccl on GPUs: it is a few bytes", .choices = words_of<algorithm_names>},
    {.path = "cluster.trainer", .type = text,
     .meaning = "the software that trains, as facts about its kernels, messages and memory: a built-in name or the path of a trainer.yaml, with a version behind an @ (megatron-core@0.12); without one, the last that is described",
     .derived = "generic", .names_file = true, .built_in = true},
    {.path = "cluster.constants", .type = text,
     .meaning = "path of the constants of a step that `slipway calibrate --runs` fitted to your runs",
     .derived = "fitted to published runs of all trainers", .names_file = true},
    {.path = "cluster.block_times", .type = text,
     .meaning = "path of a table of measured times per Transformer block, relative to the scenario; all other work is then free",
     .derived = "priced from the machine", .names_file = true},
    {.path = "cluster.price_per_gpu_hour", .type = number, .meaning = "price in your currency; 0 = unknown",
     .fallback = "0", .max = 1e9},
};

const Key work_table[] = {
    {.path = "layout", .type = section,
     .meaning = "how the work is divided; ranks = tensor x context x data x pipeline"},
    {.path = "layout.tensor", .type = integer, .meaning = "tensor parallel degree", .fallback = "1",
     .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::tensor>},
    {.path = "layout.sequence_parallel", .type = flag,
     .meaning = "norms and residual sharded over the sequence inside the tensor group", .fallback = "false",
     .bound = field<step, layout, &Layout::sequence_parallel>},
    {.path = "layout.pipeline", .type = integer, .meaning = "pipeline parallel degree", .fallback = "1",
     .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::pipeline>},
    {.path = "layout.chunks", .type = integer, .meaning = "stages per pipeline rank",
     .derived = "the schedule's own",
     .min = 1, .max = 1e5,
     .writes_derived = true, .bound = field<step, layout, &Layout::chunks>},
    {.path = "layout.context", .type = integer, .meaning = "context parallel degree", .fallback = "1",
     .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::context>},
    {.path = "layout.context_exchange", .type = choice,
     .meaning = "keys and values of the context group: gathered before attention, or sent around while it computes",
     .derived = "as cluster.trainer does it, else all-gather", .choices = words_of<exchange_names>,
     .writes_derived = true, .bound = choice_field<exchange_names, step, layout, &Layout::context_exchange>},
    {.path = "layout.data", .type = integer, .meaning = "data parallel degree",
     .derived = "GPUs / (tensor x context x pipeline)", .min = 1, .max = 1e6,
     .writes_derived = true, .bound = field<step, layout, &Layout::data>},
    {.path = "layout.expert", .type = integer,
     .meaning = "expert parallel degree: ranks that divide a layer's experts, out of tensor x context x data",
     .fallback = "1", .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::expert>},
    {.path = "layout.expert_tensor", .type = integer,
     .meaning = "ranks that cut each expert's matrices; 0: those of layout.tensor", .fallback = "0", .min = 0, .max = 1e6,
     .bound = field<step, layout, &Layout::expert_tensor>},
    {.path = "layout.dispatcher", .type = choice,
     .meaning = "how tokens get to the ranks of their experts; deepep and hybridep send each once to a node",
     .fallback = "alltoall", .choices = words_of<dispatcher_names>,
     .bound = choice_field<dispatcher_names, step, layout, &Layout::dispatcher>},
    {.path = "layout.zero", .type = integer, .meaning = "ZeRO stage over the data group", .fallback = "0",
     .min = 0, .max = 3,
     .bound = field<step, layout, &Layout::zero>},
    {.path = "layout.replicate", .type = integer,
     .meaning = "copies of what ZeRO shards, each on data / replicate ranks (hybrid sharding, HSDP; Megatron-Core's --num-distributed-optimizer-instances); of predictions",
     .fallback = "1", .min = 1, .max = 1e6,
     .bound = field<step, layout, &Layout::replicate>},
    {.path = "layout.split", .type = split,
     .meaning = "layers per stage: even (early stages get one more), balanced (by FLOPs, head counted; by time where GPUs differ or ranks have several chunks), a list, or the layout of --pipeline-model-parallel-layout of Megatron-Core",
     .derived = "as cluster.trainer does it, else even", .min = 0, .max = 1e4, .choices = words_of<split_names>,
     .bound = split_field},
    {.path = "layout.vocab_multiple", .type = integer,
     .meaning = "the vocabulary is padded to a multiple of this x tensor, as Megatron-LM's --make-vocab-size-divisible-by (128) does; 0: as given",
     .fallback = "0", .min = 0, .max = 1e6,
     .bound = field<&Scenario::vocab_multiple>},
    {.path = "layout.placement", .type = integers,
     .meaning = "order in which ranks fill the nodes: a list of all node indices, counted from 0 over all groups",
     .derived = "0, 1, 2, ...", .max = 1e6,
     .bound = field<step, layout, &Layout::placement>},

    {.path = "schedule", .type = section, .meaning = "the order of micro-batches", .required = true,
     .shorthand = "name"},
    {.path = "schedule.name", .type = choice, .meaning = "the pipeline schedule",
     .choices = schedules, .hint = meant_schedule,
     .bound = field<step, &Step::schedule>},
    {.path = "schedule.csv", .type = text,
     .meaning = "path of a PyTorch schedule CSV whose actions replace the named schedule's, relative to the scenario",
     .names_file = true},
    {.path = "schedule.micro_batch", .type = integer, .meaning = "sequences per micro-batch",
     .fallback = "1", .min = 1,
     .max = 1e9,
     .bound = field<step, &Step::micro_batch>},
    {.path = "schedule.global_batch", .type = integer,
     .meaning = "sequences per step, over all data parallel replicas",
     .required = true, .min = 1, .max = 1e12,
     .bound = field<step, &Step::global_batch>},
    {.path = "schedule.recompute", .type = choice, .meaning = "activations recomputed in the backward pass",
     .fallback = "none", .choices = words_of<recompute_names>,
     .bound = choice_field<recompute_names, step, &Step::recompute>},
    {.path = "schedule.recompute_modules", .type = words,
     .meaning = "parts of layers that are recomputed in the backward pass, as Megatron-Core's --recompute-modules; stands in place of schedule.recompute",
     .derived = "none", .choices = words_of<recomputed_module_names>,
     .bound = words_field<recomputed_module_names, step, levers, &Levers::recomputed>},
    {.path = "schedule.offload", .type = words,
     .meaning = "inputs that are kept in the host's memory between the passes, by copy lanes, as Megatron-Core's --offload-modules; layer_inputs: of layers that are recomputed whole; of predictions",
     .derived = "none", .choices = words_of<offloaded_input_names>,
     .bound = words_field<offloaded_input_names, step, levers, &Levers::offloaded>},
    {.path = "schedule.offload_layers", .type = integer,
     .meaning = "of the first so many layers, everything that is kept for the backward pass is kept in the host's memory, as cpu_offloading_num_layers of Transformer Engine; of predictions",
     .fallback = "0", .min = 0, .max = 1e5,
     .bound = field<step, levers, &Levers::offloaded_layers>},
    {.path = "schedule.cuda_graphs", .type = words,
     .meaning = "parts of layers that CUDA graphs launch, as Megatron-Core's --cuda-graph-modules; full: the whole step",
     .derived = "as cluster.trainer does it", .choices = words_of<graph_scope_names>,
     .bound = words_field<graph_scope_names, step, levers, &Levers::graphs>},
    {.path = "schedule.kernels", .type = choice, .meaning = "attention and norm kernels",
     .fallback = "flash2_rmsnorm",
     .choices = words_of<kernels_names>,
     .bound = choice_field<kernels_names, step, &Step::kernels>},
    {.path = "schedule.slices", .type = integer, .meaning = "slices of a sequence (token-level pipelines)",
     .derived = "the schedule's own", .min = 1, .max = 1e5,
     .writes_derived = true, .bound = field<step, &Step::slices>},

    {.path = "schedule.group", .type = integer,
     .meaning = "micro-batches that an interleaved schedule runs through one chunk before the next one, as Megatron-Core's microbatch_group_size_per_vp_stage; 0: layout.pipeline, or a few more where the number of micro-batches is no multiple of it",
     .fallback = "0", .min = 0, .max = 1e6,
     .bound = field<step, &Step::group>},
    {.path = "schedule.overlap_tensor", .type = flag,
     .meaning = "gathers and scatters of sequence parallelism run beside their product, but for one piece of tensor (tp_comm_overlap of Transformer Engine)",
     .fallback = "false",
     .bound = field<step, &Step::overlap_tensor>},
    {.path = "schedule.delay_wgrad", .type = flag,
     .meaning = "in a schedule of pairs that hide exchanges of tokens, weight gradients run while the message of their input gradient is on its way, as --delay-wgrad-compute of Megatron-Core; of predictions",
     .fallback = "false",
     .bound = field<step, &Step::delay_weight_grads>},
    {.path = "schedule.fill", .type = choice,
     .meaning = "bubble work: K-FAC's curvature and inversions, or forward passes for evaluation",
     .derived = "kfac with run.optimizer kfac, else none", .choices = words_of<fill_names>,
     .writes_derived = true, .bound = choice_field<fill_names, step, &Step::fill>},
    {.path = "schedule.evaluation_micro_batches", .type = integer,
     .meaning = "micro-batches of schedule.fill evaluation, per replica and window",
     .fallback = "8", .min = 1, .max = 1e6,
     .bound = field<step, &Step::evaluation_micro_batches>},
};
// clang-format on

}  // namespace

// Keys of what topologies declare (models/machine/topology.h): one row for all that have a parameter of this name.

namespace {

constexpr std::string_view topology_kind = "cluster.fabrics.*.topology.kind";

KeyType type_of(TopologyParameter::Kind kind) {
  switch (kind) {
    case TopologyParameter::Kind::number:
      return number;
    case TopologyParameter::Kind::integer:
      return integer;
    case TopologyParameter::Kind::integers:
      return integers;
    case TopologyParameter::Kind::word:
      return choice;
  }
  return text;
}

Unit unit_of(ParameterUnit unit) {
  switch (unit) {
    case ParameterUnit::pure:
      return Unit::pure;
    case ParameterUnit::bytes:
      return Unit::bytes;
    case ParameterUnit::bytes_per_second:
      return Unit::bytes_per_second;
    case ParameterUnit::seconds:
      return Unit::seconds;
  }
  return Unit::pure;
}

// Each different text with the topologies that have it. One that all topologies share stands alone.
std::string texts_of(std::string_view parameter, std::string TopologyParameter::*text) {
  std::vector<std::pair<std::string, std::vector<std::string>>> texts;
  for (const Topology& topology : all_topologies()) {
    const TopologyParameter* own = parameter_named(topology, parameter);
    if (own == nullptr) continue;
    auto at = std::find_if(texts.begin(), texts.end(), [&](const auto& each) { return each.first == own->*text; });
    if (at == texts.end()) at = texts.insert(at, {own->*text, {}});
    at->second.push_back(topology.name);
  }
  if (texts.size() == 1 && texts[0].second.size() == all_topologies().size()) return texts[0].first;
  std::string all;
  for (const auto& [each, kinds] : texts) {
    all += (all.empty() ? "" : "; ") + each + " (";
    for (const std::string& kind : kinds) all += (kind == kinds.front() ? "" : ", ") + kind;
    all += ")";
  }
  return all;
}

std::string defaults_of(std::string_view parameter) {
  std::set<std::string> defaults;
  for (const Topology& topology : all_topologies())
    if (const TopologyParameter* own = parameter_named(topology, parameter)) defaults.insert(own->otherwise);
  return defaults.size() == 1 ? *defaults.begin() : texts_of(parameter, &TopologyParameter::otherwise);
}

std::vector<Key> topology_rows() {
  static std::deque<std::string> texts;  // what the rows' views show
  const auto kept = [](std::string each) { return std::string_view(texts.emplace_back(std::move(each))); };
  std::vector<Key> rows;
  std::set<std::string> seen;
  for (const Topology& topology : all_topologies())
    for (const TopologyParameter& each : topology.parameters)
      if (seen.insert(each.name).second)
        rows.push_back({.path = kept("cluster.fabrics.*.topology." + each.name),
                        .type = type_of(each.kind),
                        .meaning = kept(texts_of(each.name, &TopologyParameter::meaning)),
                        .derived = kept(defaults_of(each.name)),
                        .min = each.min,
                        .max = each.max,
                        .above_min = each.above_min,
                        .unit = unit_of(each.unit),
                        .choices = each.words});
  return rows;
}

std::vector<Key> cluster_rows() {
  std::vector<Key> rows;
  for (const Key& key : cluster_table) {
    rows.push_back(key);
    if (key.path != topology_kind) continue;
    for (Key& row : topology_rows()) rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::span<const Key> scenario_keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> keys(model_keys().begin(), model_keys().end());
    const std::vector<Key> cluster = cluster_rows();
    keys.insert(keys.end(), cluster.begin(), cluster.end());
    keys.insert(keys.end(), degradation_keys().begin(), degradation_keys().end());
    keys.insert(keys.end(), std::begin(work_table), std::end(work_table));
    for (Key& key : keys)  // the catalogue's, which is whole only once main runs
      if (key.path == "schedule.name") key.fallback = default_schedule().name;
    keys.insert(keys.end(), run_keys().begin(), run_keys().end());
    keys.insert(keys.end(), training_keys().begin(), training_keys().end());
    return keys;
  }();
  return all;
}

}  // namespace slipway::scenarios
