// Block tables (cluster.block_times): models/block_times.h from YAML.
#include <filesystem>

#include "scenarios/language/profiles.h"

namespace slipway {
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

std::optional<BlockTable> load_block_table(const std::string& path, const Reference& from,
                                           Defects& defects) {
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

}  // namespace slipway
