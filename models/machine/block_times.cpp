#include "models/machine/block_times.h"

#include <algorithm>
#include <stdexcept>

namespace slipway::models {
namespace {

std::string micro_batches(const BlockTable& table) {
  std::string text;
  for (const BlockTimes& row : table.rows) text += (text.empty() ? "" : ", ") + std::to_string(row.micro_batch);
  return text;
}

}  // namespace

const BlockTimes& row_of(const BlockTable& table, std::int64_t micro_batch) {
  const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                [&](const BlockTimes& r) { return r.micro_batch == micro_batch; });
  if (row != table.rows.end()) return *row;
  throw std::invalid_argument("the block table " + table.name + " has no row for micro-batch " +
                              std::to_string(micro_batch) + "; measured: " + micro_batches(table));
}

std::string mismatch(const BlockTable& table, const Block& block, const WorkShape& shape) {
  const auto differs = [&](const char* what, std::int64_t measured, std::int64_t asked) {
    return "the block table " + table.name + " was measured with " + what + " " + std::to_string(measured) + ", not " +
           std::to_string(asked);
  };
  if (shape.levers != Levers{})
    return "the block table " + table.name + " was measured without recomputed modules, graphs and LoRA";
  if (block.experts > 0) return "the block table " + table.name + " was measured on blocks without experts";
  if (table.hidden != block.hidden) return differs("hidden", table.hidden, block.hidden);
  if (table.ffn != block.ffn) return differs("ffn", table.ffn, block.ffn);
  if (table.heads != block.heads) return differs("heads", table.heads, block.heads);
  if (table.sequence != shape.sequence) return differs("sequence", table.sequence, shape.sequence);
  if (table.dtype != shape.dtype)
    return "the block table " + table.name + " was measured in " + name_of(table.dtype) + ", not " +
           name_of(shape.dtype);
  if (shape.sharding.tensor > 1 || shape.sharding.context > 1)
    return "the block table " + table.name + " was measured on whole blocks (tensor 1, context 1)";
  if (std::none_of(table.rows.begin(), table.rows.end(),
                   [&](const BlockTimes& row) { return row.micro_batch == shape.micro_batch; }))
    return "the block table " + table.name + " has no row for micro-batch " + std::to_string(shape.micro_batch) +
           "; measured: " + micro_batches(table);
  return "";
}

}  // namespace slipway::models
