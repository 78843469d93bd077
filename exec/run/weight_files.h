// The weights that a training starts from: the files, and where each parameter is in them. `slipway execute --weights`
// reads the headers of the files and writes this down for the ranks, which then need no parser for them:
//
//   slipway-weights 1
//   folder PATH
//   file BYTES HEADER-BYTES CHECKSUM-OF-THE-HEADER NAME
//   part PARAMETER DTYPE ROWS COLUMNS FILE OFFSET      parts of one parameter lie one below the other
//   checksum OF-THE-LINES-ABOVE
//
// Plain C++, no LibTorch. Guarded by tests/exec/initial_weights_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model/dtype.h"

namespace slipway::exec {

struct WeightFile {
  std::string name;                   // in the folder
  std::uint64_t bytes = 0;            // of the file
  std::uint64_t header_bytes = 0;     // at its beginning
  std::uint64_t header_checksum = 0;  // a file with another header is another file
};

// Rows of a parameter, stored row by row, little-endian.
struct WeightPart {
  std::string parameter;  // models/model/parameters.h
  Dtype dtype = Dtype::float32;
  std::int64_t rows = 0, columns = 0;
  int file = 0;              // in `files`
  std::uint64_t offset = 0;  // bytes from the file's beginning
};

struct WeightFiles {
  std::string folder;  // absolute
  std::vector<WeightFile> files;
  std::vector<WeightPart> parts;
};

std::string to_text(const WeightFiles& weights);
// Throws std::runtime_error with the path and its defect; then no part lies outside its file.
WeightFiles read_weight_files(const std::string& path);

}  // namespace slipway::exec
