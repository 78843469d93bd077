// The format of Slipway's own tables: one run in the words of a scenario, in base units. `table`, `group` and `choice`
// may be left out; each is then derived from model, sequence, machine and GPUs. Also optional: `allocated_bytes`,
// `reserved_bytes`, `all_reduce_bytes_per_s`, `after_pp_fix`, `dtype` (bfloat16), `fp8` (false), `shard_group` (0),
// `gpus_per_port` (1), `scenario` (a whole scenario as YAML on one line, in place of the columns about the run) and
// `assumed`: values of the row that its source does not have, in words.
#include <fmt/format.h>

#include "scenarios/language/scenario.h"
#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

Dtype dtype_in(const Cells& cells, std::string_view column) {
  std::map<std::string, Dtype, std::less<>> choices;
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) choices.emplace(name_of(dtype), dtype);
  return cells.choice(column, choices);
}

Model model_of(const Cells& cells) {
  const std::string& name = cells.text("model");
  const bool tied = cells.flag("tied");
  const std::int64_t s = cells.integer("sequence");
  const bool is_llama = cells.choice<bool>("family", {{"llama", true}, {"gpt", false}});
  if (is_llama)
    return llama(name, {cells.integer("layers"), cells.integer("hidden"), cells.integer("ffn"), cells.integer("heads"),
                        cells.integer("kv_heads"), cells.integer("vocab"), s, tied});
  return gpt(name, {cells.integer("layers"), cells.integer("hidden"), cells.integer("ffn"), cells.integer("heads"),
                    cells.integer("vocab"), s, s, tied});
}

void read_keys(const Cells& cells, PublishedRow& row, std::int64_t batch) {
  const auto key = [&](const char* column, std::string otherwise) {
    return cells.empty(column) ? otherwise : cells.text(column);
  };
  row.group = key("group", fmt::format("{} at {} on {}", row.step.model->name, row.step.model->sequence, row.machine));
  row.table = key("table", fmt::format("{} on {} GPUs, batch {}", row.group, row.gpus, batch));
  row.choice = key("choice", row.table);
}

std::string optional_text(double value) { return value > 0 ? fmt::format("{}", value) : ""; }

}  // namespace

void read_slipway(const Cells& cells, PublishedRow& row) {
  row.status = cells.choice("status", status_names);
  row.assumed = cells.text("assumed");
  row.trainer = cells.text("trainer");
  row.machine = machine_named("machine", cells.text("machine"));
  if (!cells.empty("scenario")) {
    if (row.status == RowStatus::ok) row.step_s = cells.number("step_s");
    set_scenario(row, cells.text("scenario"));
    if (row.scenario) read_keys(cells, row, row.step.global_batch);
    return;
  }
  row.step.model = model_of(cells);
  row.gpus = cells.count("gpus");
  row.gpus_per_node = cells.count("gpus_per_node");
  if (!cells.empty("gpus_per_port")) row.gpus_per_port = cells.count("gpus_per_port");
  row.step.micro_batch = cells.integer("micro_batch");
  row.step.layout.tensor = cells.count("tensor");
  row.step.layout.sequence_parallel = cells.flag("sequence_parallel");
  row.step.layout.context = cells.count("context");
  row.step.kernels = cells.choice("kernels", kernels_names);
  row.step.layout.pipeline = cells.count("pipeline");
  row.step.layout.chunks = cells.count("chunks");
  row.step.layout.zero = cells.whole("zero");
  row.step.recompute = cells.choice("recompute", recompute_names);
  row.step.gradient_dtype = dtype_in(cells, "gradient_dtype");
  if (!cells.empty("dtype")) row.step.dtype = dtype_in(cells, "dtype");
  row.fp8 = !cells.empty("fp8") && cells.flag("fp8");
  row.shard_group = cells.whole_or("shard_group", 0);
  row.fixed_pipeline = cells.empty("after_pp_fix") || cells.flag("after_pp_fix");
  row.all_reduce_bytes_per_s = cells.number_or("all_reduce_bytes_per_s", 0);
  row.allocated_bytes = cells.number_or("allocated_bytes", 0);
  row.reserved_bytes = cells.number_or("reserved_bytes", 0);
  if (row.status == RowStatus::ok) row.step_s = cells.number("step_s");
  const std::int64_t batch = cells.integer("global_batch");
  read_keys(cells, row, batch);
  set_batch(row, batch);
}

std::vector<std::string> slipway_columns() {
  return {"trainer",
          "machine",
          "model",
          "family",
          "layers",
          "hidden",
          "ffn",
          "heads",
          "kv_heads",
          "vocab",
          "tied",
          "sequence",
          "gpus",
          "gpus_per_node",
          "tensor",
          "sequence_parallel",
          "context",
          "pipeline",
          "chunks",
          "zero",
          "micro_batch",
          "global_batch",
          "recompute",
          "kernels",
          "gradient_dtype",
          "dtype",
          "fp8",
          "shard_group",
          "gpus_per_port",
          "status",
          "step_s",
          "allocated_bytes",
          "reserved_bytes",
          "all_reduce_bytes_per_s",
          "after_pp_fix",
          "table",
          "group",
          "choice",
          "assumed",
          "scenario"};
}

std::vector<std::string> slipway_fields(const PublishedRow& row) {
  const Block& layer = row.step.model->runs[1].block;
  const Layout& cut = row.step.layout;
  const auto text = [](auto value) { return fmt::format("{}", value); };
  return {row.trainer,
          row.machine,
          row.step.model->name,
          row.step.model->family == Family::llama ? "llama" : "gpt",
          text(row.step.model->runs[1].count),
          text(layer.hidden),
          text(layer.ffn),
          text(layer.heads),
          text(layer.kv_heads),
          text(row.step.model->runs[0].block.vocab),
          text(row.step.model->runs[2].block.tied),
          text(row.step.model->sequence),
          text(row.gpus),
          text(row.gpus_per_node),
          text(cut.tensor),
          text(cut.sequence_parallel),
          text(cut.context),
          text(row.step.layout.pipeline),
          text(row.step.layout.chunks),
          text(row.step.layout.zero),
          text(row.step.micro_batch),
          text(row.step.global_batch),
          name_of(row.step.recompute),
          name_of(row.step.kernels),
          name_of(row.step.gradient_dtype),
          name_of(row.step.dtype),
          text(row.fp8),
          text(row.shard_group),
          text(row.gpus_per_port),
          name_of(row.status),
          optional_text(row.step_s),
          optional_text(row.allocated_bytes),
          optional_text(row.reserved_bytes),
          optional_text(row.all_reduce_bytes_per_s),
          text(row.fixed_pipeline),
          row.table,
          row.group,
          row.choice,
          row.assumed,
          row.scenario ? row.scenario->summary : ""};
}

}  // namespace slipway::scenarios
