// torchtitan's runs in bf16, FP8, MXFP8 and NVFP4 on Blackwell (pytorch/torchtitan torchtitan/components/quantization,
// mxfp8.md and nvfp4.md): one node, FSDP, torch.compile. The pages say neither the exact GPU nor, in part, the model
// and the recomputation, so no row is scored.
#include <fmt/format.h>

#include "scenarios/tables/formats.h"
#include "scenarios/tables/names.h"
#include "scenarios/tables/run_keys.h"

namespace slipway::scenarios {
namespace {

// "mxfp8_cublas_rceil" and "float8 tensorwise" as recipes. Rounding of scales changes no time.
std::string precision_of(const std::string& written) {
  const std::string word = joined_words(written);
  if (word.starts_with("mxfp8")) return "mxfp8";
  if (word == "float8tensorwise") return "tensorwise";
  return written;
}

// A GPU of 184 GiB is a GB200: a B200 has 179.
std::string machine_of(const std::string& system) {
  if (system.find("184 GiB") != std::string::npos) return "gb200";
  return machine_named("system", system);
}

}  // namespace

void read_torchtitan(const Cells& cells, PublishedRow& row) {
  row.status = RowStatus::ok;
  RunKeys keys;
  row.gpus = cells.count("gpus");
  row.machine = machine_of(cells.text("system"));
  const std::string model = set_model(keys, cells.text("model"));
  row.group = row.study = fmt::format("{} on {}", model, row.machine);
  row.choice = model;
  row.table = fmt::format("{}, line {}", row.group, row.line);
  row.unknown_recipe = true;
  const std::int64_t sequence = cells.integer("seq"), batch = cells.integer("gbs");
  row.step_s = static_cast<double>(batch * sequence) / (row.gpus * cells.above_zero("tokens_per_s"));
  if (cells.text("model").find("presumably") != std::string::npos) keys.assume("the model is " + model);
  if (cells.text("tokens_per_s_is").find("presumably") != std::string::npos) keys.assume("tokens/s are of one GPU");

  keys.set("cluster.trainer", "torchtitan");
  set_cluster(keys, row.machine, row.gpus);
  set_layout(
      keys,
      {.full_shards = true, .micro_batch = cells.integer("local_batch"), .global_batch = batch, .sequence = sequence});
  keys.set("layout.vocab_multiple", 0);
  const std::string& precision = cells.text("precision");
  if (precision.find("bf16)") != std::string::npos)
    keys.refuse("layers in two precisions: " + precision);
  else
    set_precision(keys, precision_of(precision));
  if (cells.text("ac").find("SAC") != std::string::npos)
    keys.refuse("recomputation of single operators (" + cells.text("ac") + ")");
  else
    keys.assume("nothing is recomputed");
  if (cells.text("compile") == "yes") keys.assume("element-wise kernels are single, although torch.compile fuses them");
  set_scenario(row, keys);
  if (!row.keys.contains("run.fp8")) row.keys["run.fp8"] = precision;  // of pairs of levers
}

}  // namespace slipway::scenarios
