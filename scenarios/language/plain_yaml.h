// A reader of the plain part of YAML, in which nearly all files are written. The files behind `slipway simulate` of
// llama-8b-64xh100 took 46.6 million instructions with yaml-cpp and take 6.3 with it (callgrind, GCC 12, 2026-11-28).
//
//   block maps and lists of plain or quoted words, one a line      layout:
//                                                                     split: [3, 5]   # a comment
//   flow maps and lists, over any number of lines                  cluster: {machine: h100-80gb, nodes: 8}
//
// It gives the events that yaml-cpp would give, or says that it cannot: anchors, tags, several documents, words over several
// lines, tabs, characters beyond ASCII, and all that could be a mistake. Then yaml-cpp reads the text and words the error.
// Guarded by tests/scenarios/plain_yaml_test.cpp: both give the same trees, for every file of the source tree and made-up ones.
#pragma once

#include <yaml-cpp/eventhandler.h>

#include <string_view>

#include "scenarios/language/document.h"

namespace slipway::scenarios {

// False: what `to` got so far is to be forgotten.
bool read_plain_yaml(std::string_view text, YAML::EventHandler& to);
// parse_document without it.
std::optional<Value> parse_by_yaml_cpp(const std::string& text, const std::string& file, Defects& defects);

}  // namespace slipway::scenarios
