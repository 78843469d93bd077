// Files of tensors in the safetensors format of Hugging Face:
//
//   8 bytes   length n of the header, little-endian
//   n bytes   JSON: {"name": {"dtype": "F32", "shape": [4, 8], "data_offsets": [begin, end]}, ..., "__metadata__": {...}}
//   the rest  the tensors' elements, row by row, little-endian, without holes; offsets count from here
//
// A file comes from elsewhere, so nothing in its header is believed before it is checked.
// Guarded by tests/scenarios/safetensors_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/model/dtype.h"

namespace slipway::scenarios {

struct StoredShape {
  std::string dtype;  // as written there: "BF16"
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes from the beginning of the file
};

struct SafetensorsHeader {
  std::uint64_t file_bytes = 0;
  std::string bytes;  // of the header with its length, as they are in the file
  std::map<std::string, StoredShape> tensors;
};

// Throws std::runtime_error with the path, the defect and a remedy.
SafetensorsHeader read_safetensors_header(const std::string& path);

// The number format with this name there; empty for others, such as integers.
std::optional<Dtype> dtype_of_safetensors(const std::string& name);
// "F32". Throws std::invalid_argument for a dtype that has no name there.
std::string safetensors_name(Dtype dtype);

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;
};
// The header, with its length, of a file that holds these tensors in this order.
std::string safetensors_header(const std::vector<NamedShape>& tensors, Dtype dtype);

}  // namespace slipway::scenarios
