// Hugging Face, The Ultra-Scale Playbook (2025): Llamas of 1.3B to 9B on H100-80GB, eight per node, trained with
// nanotron: 1F1B, sequence parallel (tp_mode REDUCE_SCATTER; ALL_REDUCE has none), fp32 sums of gradients
// (accumulate_grad_in_fp32). `after_pp_fix` separates two versions of the trainer. A run out of memory has no columns
// of its own, so its layout is read from its name "3.57G_dp16_tp2_pp1_acc8_mbs1_seq4096_zero1_...". Without a column
// tie_word_embeddings, the widest model has an untied head and the others a tied one, as the parameter counts of
// successful runs show. `Mem Alloc` is the memory after the step, `Mem Res` the peak of PyTorch's
// caching allocator; both are printed in units of 2^30 bytes.
#include <fmt/format.h>

#include <regex>

#include "scenarios/tables/formats.h"

namespace slipway::scenarios {
namespace {

constexpr double gibibyte = 1073741824.0;

// The number after "dp", "tp", ... in the run's name.
std::int64_t named(const std::string& name, const char* part) {
  std::smatch match;
  if (!std::regex_search(name, match, std::regex("_" + std::string(part) + "([0-9]{1,9})(\\.0)?(_|$)")))
    throw CellError("column name: '" + name + "' has no _" + part + "N_");
  return std::stoll(match[1]);
}

void read_layout(const Cells& cells, PublishedRow& row) {
  const std::string& name = cells.text("name");
  const bool own = row.status == RowStatus::ok;
  const auto figure = [&](const char* column, const char* part) {
    return own ? cells.integer(column) : named(name, part);
  };
  row.step.layout.data = static_cast<int>(figure("dp", "dp"));
  const bool scattered =
      cells.empty("tp_mode") || cells.choice<bool>("tp_mode", {{"REDUCE_SCATTER", true}, {"ALL_REDUCE", false}});
  row.step.layout.tensor = static_cast<int>(figure("tp", "tp"));
  row.step.layout.sequence_parallel = scattered;
  row.step.layout.pipeline = static_cast<int>(figure("pp", "pp"));
  row.step.micro_batch = figure("mbs", "mbs");
  row.step.layout.zero = cells.empty("zero_stage") ? static_cast<int>(named(name, "zero")) : cells.whole("zero_stage");
  // Each is at most 1e9: a product of three may be beyond 64 bits.
  const double ranks = 1.0 * row.step.layout.data * row.step.layout.tensor * row.step.layout.pipeline;
  if (ranks != static_cast<double>(row.gpus)) throw CellError("dp x tp x pp is not the number of GPUs");
  const std::int64_t accumulated = figure("batch_accum", "acc");
  constexpr double most = 1e18;
  if (static_cast<double>(accumulated) * static_cast<double>(row.step.micro_batch) * row.step.layout.data > most)
    throw CellError("acc x mbs x dp is beyond 1e18 sequences");
  row.step.global_batch = accumulated * row.step.micro_batch * row.step.layout.data;
}

Model nanotron_model(const Cells& cells) {
  const std::int64_t hidden = cells.integer("hidden_size"), heads = cells.integer("num_heads");
  const std::int64_t kv_heads = cells.empty("num_kv_heads") ? heads : cells.integer("num_kv_heads");
  constexpr std::int64_t widest = 4096;
  const bool tied = cells.empty("tie_word_embeddings") ? hidden < widest : cells.flag("tie_word_embeddings");
  const std::string& name = cells.text("name");
  return llama("llama-" + name.substr(0, name.find('_')),
               {cells.integer("num_layers"), hidden, cells.integer("interm_dim"), heads, kv_heads,
                cells.integer("vocab_size"), cells.integer("seq_len"), tied});
}

}  // namespace

void read_nanotron(const Cells& cells, PublishedRow& row) {
  row.status = cells.status("Success", "OOM");
  row.trainer = "nanotron";
  row.machine = "h100-80gb";
  row.fixed_pipeline = cells.empty("after_pp_fix") || cells.flag("after_pp_fix");
  row.gpus = cells.count("gpus");
  row.step.model = nanotron_model(cells);
  row.group = row.choice = row.step.model->name;
  row.table = fmt::format("{} on {} GPUs", row.step.model->name, row.gpus);
  read_layout(cells, row);
  if (!cells.empty("accumulate_grad_in_fp32") && !cells.flag("accumulate_grad_in_fp32"))
    row.step.gradient_dtype = Dtype::bfloat16;
  if (row.status != RowStatus::ok) return;
  const double tokens = static_cast<double>(row.step.global_batch * row.step.model->sequence);
  row.step_s =
      cells.empty("step_s_derived") ? tokens / (row.gpus * cells.number("tok/s/gpu")) : cells.number("step_s_derived");
  row.allocated_bytes = cells.number_or("Mem Alloc (GB)", 0) * gibibyte;
  row.reserved_bytes = cells.number_or("Mem Res (GB)", 0) * gibibyte;
  row.all_reduce_bytes_per_s = cells.number_or("AR Intra-node (GB/s)", 0) * 1e9;
}

}  // namespace slipway::scenarios
