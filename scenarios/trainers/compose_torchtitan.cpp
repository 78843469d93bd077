// The meaning of several settings of torchtitan together, where it takes arithmetic or a list. All else is in
// models/trainers/arguments/torchtitan.yaml.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/language/profiles.h"
#include "scenarios/language/quantity.h"
#include "scenarios/trainers/compose_torchtitan.h"

namespace slipway::scenarios {

namespace {

// Names of `models` of the dictionary, "llama3 8B, llama3 70B".
std::string model_names(const Dictionary& dictionary) {
  std::string text;
  for (const NamedModel& each : dictionary.models) text += (text.empty() ? "" : ", ") + each.module + " " + each.flavor;
  return text;
}

std::int64_t number_of(const std::string& built_in, const char* field, std::int64_t otherwise) {
  Defects ignored;
  const std::optional<ModelFields> fields = built_in.empty() ? std::nullopt : library_model(built_in, ignored);
  if (!fields || !fields->numbers.contains(field)) return otherwise;
  return static_cast<std::int64_t>(fields->numbers.find(field)->second);
}

bool is_mixture(const Reading& reading) {
  return number_of(reading.value("model.name"), "experts", reading.count("model.experts", 0)) > 0;
}

bool is_true(Reading& reading, std::string_view argument, bool otherwise) {
  const std::string text = reading.text(argument, otherwise ? "true" : "false");
  return text != "false" && text != "False";
}

// Words of a list: "a,b", "a b" and "['a', 'b']".
std::vector<std::string> listed(Reading& reading, std::string_view argument) {
  std::vector<std::string> words(1);
  for (const char c : reading.text(argument) + " ")
    if (std::string_view(" ,[]'\"").find(c) == std::string_view::npos)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  words.pop_back();
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The converter's recipe as one of run.fp8. float8 has a scale per tensor where no recipe is named, or one per row.
void compose_recipe(Reading& reading, const std::string& kind) {
  const std::string argument = "quantize.linear." + kind + ".recipe_name";
  const std::string recipe = reading.text(argument, kind == "mx" ? "mxfp8_cublas" : "tensorwise");
  if (kind == "mx" ? recipe.starts_with("mxfp8") && recipe != "mxfp8_emulated" : recipe == "tensorwise")
    return reading.set("run.fp8", kind == "mx" ? "mxfp8" : recipe, "model.converters");
  reading.not_modelled(argument, "the recipe " + recipe + ", which is not modelled; allowed: " +
                                     (kind == "mx" ? "mxfp8_cublas, mxfp8_cublas_rceil" : "tensorwise"));
}

// Linears that are left in run.dtype. The head always is in Slipway; routers are, with experts.
void compose_filter(Reading& reading, const std::string& kind) {
  const std::string argument = "quantize.linear." + kind + ".filter_fqns";
  std::vector<std::string> names = listed(reading, argument);
  if (names.empty() && kind == "mx") names = {"output"};  // its default
  if (!has(names, "output") && !has(names, "lm_head"))
    reading.note(NoteKind::nearest, "--" + argument + " without output", "the head's product is priced in run.dtype");
  for (const std::string& name : names) {
    if (name == "output" || name == "lm_head" || name.find("router") != std::string::npos) continue;
    if (name == "auto_filter_small_kn")
      reading.note(NoteKind::nearest, "--" + argument + " " + name, "small Linears are priced in run.fp8 too");
    else
      reading.not_modelled(argument, "Linears of layers that stay in run.dtype (" + name + "), which is not modelled");
  }
}

// With tensorwise scales, torchtitan gathers inputs over tensor ranks in float8, as weights on request.
void compose_float8_messages(Reading& reading) {
  constexpr const char* gather = "quantize.linear.float8.enable_fsdp_float8_all_gather";
  reading.set("run.fp8_param_gather", is_true(reading, gather, false) ? "true" : "false", gather);
  reading.set("run.fp8_sequence_gather", reading.count("layout.tensor", 1) > 1 ? "true" : "false", "model.converters");
  for (const char* argument : {"precompute_float8_dynamic_scale_for_fsdp", "emulate"}) {
    const std::string name = std::string("quantize.linear.float8.") + argument;
    if (!reading.given(name) || !is_true(reading, name, false)) continue;
    if (std::string_view(argument) == "emulate")
      reading.not_modelled(name, "products that are emulated, which is not modelled");
    else
      reading.note(NoteKind::no_effect, reading.find(name)->text(), "reductions of scales are a small part of a step");
  }
}

// [tok_embeddings, layers.0, ...] of each part: its number of layers.
std::vector<std::int64_t> layers_of_parts(const Argument& parts) {
  std::vector<std::int64_t> layers;
  for (const std::string& part : parts.values) {
    std::int64_t count = 0;
    for (std::size_t at = 0; (at = part.find("layers.", at)) != std::string::npos; ++at) ++count;
    layers.push_back(count);
  }
  return layers;
}

}  // namespace

// model.converters: float8 or mx, of Linears and of the products of experts (torchtitan/components/quantization).
void torchtitan_converters(Reading& reading) {
  const std::vector<std::string> converters = listed(reading, "model.converters");
  std::string kind;
  bool linear = false, grouped = false;
  for (const std::string& converter : converters) {
    const bool mx = converter == "mx" || converter.ends_with(".mx");
    const bool of_experts = converter.starts_with("quantize.grouped_mm.");
    if (!mx && converter != "float8" && !converter.ends_with(".float8"))
      return reading.not_modelled("model.converters", "the converter " + converter + ", which is not modelled");
    const std::string its_kind = mx ? "mx" : "float8";
    if (!kind.empty() && kind != its_kind)
      return reading.refuse("model.converters", "float8 and mx contradict each other; allowed: one of them",
                            "remove one of the two");
    kind = its_kind;
    (of_experts ? grouped : linear) = true;
  }
  for (const Term& term : reading.dictionary().terms) {
    const std::string_view name = term.argument;
    const std::string of = "." + kind + ".";
    const bool used = name.starts_with("quantize.linear.") ? linear : grouped;
    if (name.starts_with("quantize.") && reading.given(name) && (!used || name.find(of) == std::string_view::npos))
      reading.note(NoteKind::no_effect, reading.find(name)->text(),
                   "it belongs to a converter of the model that is not asked for");
  }
  if (kind.empty()) return;
  const bool experts = is_mixture(reading);
  if (!linear || (experts && !(grouped && has(listed(reading, "quantize.grouped_mm." + kind + ".fqns"), "experts"))))
    return reading.not_modelled("model.converters",
                                linear ? "experts in run.dtype beside Linears in " + kind + ", which is not modelled"
                                       : "Linears in run.dtype beside experts in " + kind + ", which is not modelled");
  compose_recipe(reading, kind);
  compose_filter(reading, kind);
  if (kind == "float8") compose_float8_messages(reading);
}

// A flavor of a module as a model of the library, or as shapes.
void torchtitan_model(Reading& reading) {
  const std::string name = reading.text("model.name"), flavor = reading.text("model.flavor");
  if (reading.has("model.name") || reading.has("model.config") || reading.has("model.family")) return;
  const std::vector<NamedModel>& models = reading.dictionary().models;
  const auto model = std::find_if(models.begin(), models.end(),
                                  [&](const NamedModel& each) { return each.module == name && each.flavor == flavor; });
  if (model == models.end())
    return reading.refuse("model.flavor",
                          fmt::format("the model {} {} is unknown to import; allowed: {}", name, flavor,
                                      model_names(reading.dictionary())),
                          "give the model: --set model.name=NAME (slipway list models)");
  for (const auto& [key, value] : model->keys) reading.set("model." + key, value, "model.flavor");
}

void add_torchtitan_registry(const Dictionary& dictionary, Arguments& arguments, Defects& defects) {
  const auto given = [&](std::string_view name) -> const Argument* {
    const auto found =
        std::find_if(arguments.list.begin(), arguments.list.end(), [&](const Argument& a) { return a.name == name; });
    return found == arguments.list.end() ? nullptr : &*found;
  };
  const auto text = [](const Argument* argument) {
    return argument == nullptr || argument->values.empty() ? "" : argument->values[0];
  };
  const std::string module = text(given("module")), config = text(given("config"));
  if (module.empty() && config.empty()) return;
  const Origin origin = (given("config") != nullptr ? given("config") : given("module"))->origin;
  const Recipe* recipe = dictionary.recipe(config);
  const bool is_of_module =
      recipe != nullptr && std::any_of(recipe->arguments.begin(), recipe->arguments.end(), [&](const auto& each) {
        return each.first == "model.name" && each.second == std::vector<std::string>{module};
      });
  if (is_of_module) return add_recipe(dictionary, config, origin, arguments, defects);
  defects.push_back({origin.file, origin.line, "--config",
                     "the config '" + config + "' of module '" + module +
                         "' is unknown to import; allowed: configs of " + model_names(dictionary),
                     "choose one of them, or give the settings as a TOML"});
}

void torchtitan_expert_tensor(Reading& reading) {
  constexpr const char* degree = "parallelism.expert_tensor_parallel_degree";
  if (reading.given(degree) && is_mixture(reading))
    reading.set("layout.expert_tensor", reading.text(degree, "1"), degree);
}

void torchtitan_betas(Reading& reading) {
  const Argument* betas = reading.find("optimizer.param_groups.0.optimizer_kwargs.betas");
  if (betas == nullptr || betas->values.size() != 2) return;
  reading.set("run.optimizer.beta1", betas->values[0], betas->name);
  reading.set("run.optimizer.beta2", betas->values[1], betas->name);
}

// Weights are sharded over shard ranks; all ranks where it is -1.
void torchtitan_data(Reading& reading) {
  const std::int64_t replicas = reading.whole("parallelism.data_parallel_replicate_degree");
  const std::string shard_text = reading.text("parallelism.data_parallel_shard_degree");
  const bool rest = shard_text == "-1";
  const std::int64_t shards = rest ? -1 : whole_number(shard_text).value_or(0);
  if (!rest && shards < 1)
    return reading.refuse("parallelism.data_parallel_shard_degree",
                          "'" + shard_text + "' is no degree; allowed: -1 or a positive number", "correct it");
  if (!rest) reading.set("layout.data", std::to_string(replicas * shards), "parallelism.data_parallel_shard_degree");
  if (replicas > 1 && shards != 1) {
    reading.set("layout.replicate", std::to_string(replicas), "parallelism.data_parallel_replicate_degree");
    if (!reading.has("layout.replicate")) return;
  }
  const bool pipelined = reading.count("layout.pipeline", 1) > 1;
  const std::string reshard = reading.text("parallelism.fsdp_reshard_after_forward");
  const bool keeps = reshard == "never" || (reshard == "default" && pipelined);
  reading.set("layout.zero", shards == 1 ? "0" : keeps ? "2" : "3", "parallelism.fsdp_reshard_after_forward");
}

void torchtitan_pipeline(Reading& reading) {
  const std::int64_t pipeline = reading.count("layout.pipeline", 1);
  if (pipeline == 1) return;
  constexpr const char* schedule = "parallelism.pipeline_parallel_schedule";
  const std::string name = reading.text(schedule);
  const std::optional<std::string> ours = reading.dictionary().word("schedules", name);
  const std::string csv = reading.text("parallelism.pipeline_parallel_schedule_csv");
  if (!csv.empty()) reading.set("schedule.csv", csv, "parallelism.pipeline_parallel_schedule_csv");
  if (!ours && csv.empty()) {
    std::string known;
    for (const auto& [word, meaning] : reading.dictionary().table("schedules"))
      known += (known.empty() ? "" : ", ") + word;
    return reading.refuse(schedule, "the class " + name + " is unknown; allowed: " + known, "choose one of them");
  }
  if (csv.empty()) reading.set("schedule.name", *ours, schedule);
  const std::int64_t layers = number_of(reading.value("model.name"), "layers", reading.count("model.layers", 0));
  std::vector<std::int64_t> list;
  std::int64_t chunks = whole_number(reading.dictionary().word("chunks", name).value_or("1")).value_or(1);
  if (const Argument* parts = reading.find("parallelism.module_fqns_per_model_part")) {
    list = layers_of_parts(*parts);
  } else {
    const std::int64_t first = reading.whole("parallelism.pipeline_parallel_first_stage_less_layers"),
                       last = reading.whole("parallelism.pipeline_parallel_last_stage_less_layers");
    const std::int64_t each = reading.whole("parallelism.pipeline_parallel_layers_per_stage"),
                       all = layers + first + last;
    const std::int64_t stages = each > 0 ? (all + each - 1) / each : pipeline * chunks;
    // Early stages get one more of what counts as a layer.
    for (std::int64_t stage = 0; stage < stages; ++stage) list.push_back(all / stages + (stage < all % stages ? 1 : 0));
    list.front() -= first;
    list.back() -= last;
  }
  if (static_cast<std::int64_t>(list.size()) % pipeline != 0)
    return reading.refuse("parallelism.pipeline_parallel_degree",
                          fmt::format("{} stages are no multiple of {} pipeline ranks", list.size(), pipeline),
                          "change one of them");
  chunks = static_cast<std::int64_t>(list.size()) / pipeline;
  if (chunks > 1)
    reading.set("layout.chunks", std::to_string(chunks), "parallelism.pipeline_parallel_layers_per_stage");
  reading.set("layout.split", list, "parallelism.pipeline_parallel_degree");
}

void torchtitan_batch(Reading& reading) {
  const std::int64_t local = reading.whole("training.local_batch_size");
  const bool pipelined = reading.count("layout.pipeline", 1) > 1;
  const std::int64_t micro = pipelined ? reading.whole("parallelism.pipeline_parallel_microbatch_size") : local;
  reading.set("schedule.micro_batch", std::to_string(micro), "training.local_batch_size");
  const std::string global = reading.text("training.global_batch_size");
  if (global != "-1") return reading.set("schedule.global_batch", global, "training.global_batch_size");
  const std::int64_t others =
      reading.count("layout.tensor", 1) * reading.count("layout.context", 1) * reading.count("layout.pipeline", 1);
  const std::int64_t gpus = reading.count("cluster.nodes", 1) * reading.count("cluster.gpus_per_node", 8);
  const std::int64_t replicas =
      reading.count("layout.data", std::max<std::int64_t>(1, gpus / std::max<std::int64_t>(1, others)));
  reading.set("schedule.global_batch", std::to_string(local * replicas), "training.local_batch_size");
}

void torchtitan_length(Reading& reading) {
  const std::int64_t batch = reading.count("schedule.global_batch", 1), steps = reading.whole("training.steps");
  const std::int64_t sequence = reading.count("model.sequence", 2048);
  reading.set("run.tokens",
              number_text(static_cast<double>(steps) * static_cast<double>(batch) * static_cast<double>(sequence)),
              "training.steps");
  const std::int64_t warmup = reading.whole("lr_scheduler.warmup_steps");
  if (warmup > 0)
    reading.set("run.optimizer.lr_warmup_samples", std::to_string(std::min(warmup, steps) * batch),
                "lr_scheduler.warmup_steps");
  const double ratio = reading.number("lr_scheduler.decay_ratio");
  const std::string type = reading.text("lr_scheduler.decay_type");
  if (type == "sqrt" && ratio > 0)
    return reading.note(NoteKind::no_effect, "--lr_scheduler.decay_type sqrt",
                        "it changes numbers, not a step's time or memory");
  if (ratio > 0 && ratio < 1)
    reading.note(NoteKind::no_effect, "--lr_scheduler.decay_ratio", "it changes numbers, not a step's time or memory");
  reading.set("run.optimizer.lr_decay_style", ratio == 0 ? "constant" : type, "lr_scheduler.decay_type");
  const double factor = reading.number("lr_scheduler.min_lr_factor"),
               lr = quantity(reading.value("run.lr"), Unit::pure).value_or(0);
  if (factor > 0 && ratio > 0)
    reading.set("run.optimizer.min_lr", number_text(factor * lr), "lr_scheduler.min_lr_factor");
}

}  // namespace slipway::scenarios
