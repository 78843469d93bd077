// The memory constants that all trainers share (models/memory/pooled.yaml) as PooledMemory, and back.
//
//   constants:
//     layer_factor: {value: 1.04, prior: 1, spread: 0.05, source: "..."}
//   deviations:
//     fragmentation: {spread: 0.5, source: "..."}       library: {spread: 0.5, source: "..."}
//     values: {fragmentation of nanotron: 1.4, library of nanotron on h100-80gb: 1.1}
//   noise: {row: 0.04, table: 0.03, other: 0.01, source: "..."}
//   covariance: [[1], [0.1, 1], ...]                     of z, lower triangle
//
// Guarded by tests/models/pooled_memory_test.cpp: the built-in file reads back as written, and each constant has a
// source.
#pragma once

#include <string>

#include "models/memory/pooled_memory.h"

namespace slipway::scenarios {

// The built-in constants. They live as long as the program.
const PooledMemory& built_in_memory();

// Throws std::invalid_argument with line, key and remedy.
PooledMemory memory_from_yaml(const std::string& text, const std::string& file);
// A file that reads back as the same constants. `heading`: comment lines without "# ".
std::string memory_to_yaml(const PooledMemory& memory, const std::string& heading);

}  // namespace slipway::scenarios
