// Lists of layers as Megatron-LM writes them: of layout.split, and of its arguments.
//
//   "Et*4|(tttt|)*14tmL"   stages between |; t: a layer, E: the embedding, m: multi-token prediction, L: the loss;
//                          x*4: x four times, (...)*14: all inside 14 times; a trailing | begins no stage
//   "([0]*3+[1]*58)"       which layers have experts, in Python; "2": every second one, from the first on
//   "([1]*5+[0])*4"        which layers have a window, in Python; "6": all but the last of every six
//
// Guarded by tests/scenarios/import_arguments_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/namespaces.h"

namespace slipway::scenarios {

struct PipelineStages {
  std::vector<std::int64_t> layers;  // of each stage
  int prediction_stage = -1;         // that of m; -1: none
};
// Empty where the text cannot be read.
std::optional<PipelineStages> pipeline_stages(const std::string& text);
// The text of stages with so many layers: "Et*9|t*8|t*8|t*7L". Modules of multi-token prediction stand before the head: "...mL".
std::string pipeline_layout(const std::vector<int>& layers, std::int64_t predicted_tokens = 0);
// 1 for each layer with experts. Empty where the text cannot be read.
std::optional<std::vector<std::int64_t>> layer_pattern(const std::string& text, std::int64_t layers);
// 1 for each layer whose attention has a window. Empty where the text cannot be read.
std::optional<std::vector<std::int64_t>> window_pattern(const std::string& text, std::int64_t layers);
// n where the last of every n layers is marked and no other; 0 where none is. Empty for other marks.
std::optional<std::int64_t> period_of_last(const std::vector<bool>& marked);

}  // namespace slipway::scenarios
