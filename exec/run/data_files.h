// The files that run.data names, and the identity of their contents. A training that continued with other data would
// silently read other samples in another order.
//
//   identity   bytes of the files, and a checksum over all of them, for which they are read once
//
// The path is not part of it: the same data may be elsewhere on another machine. `slipway execute` uses this too: plain
// C++, no LibTorch. Guarded by tests/exec/token_source_test.cpp and tests/scenarios/resume_command_test.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "models/model/model.h"

namespace slipway::exec {

// True if `path` names token files (both exist). Then *prefix is their common part.
bool names_token_files(const std::string& path, std::string* prefix = nullptr);

// The reason why `size` bytes or tokens hold no sample; empty: they hold one.
std::string why_no_sample(const std::string& path, std::uint64_t size, bool is_bytes, std::int64_t sequence);

// The reason why the bytes of a text are not tokens of `model`; empty: they are. A model that is not causal needs one
// more token, the mask.
std::string why_no_bytes(const std::string& path, const Model& model);

// The same for a text file, before anything starts. Empty also for token files, whose index only ranks read.
std::string why_no_sample(const std::string& path, const Model& model);

struct DataIdentity {
  std::uint64_t bytes = 0;     // of all files; 0: unknown
  std::uint64_t checksum = 0;  // 0: unknown, only the bytes count
  std::string path;            // for messages

  bool is_same(const DataIdentity& other) const {
    return bytes == other.bytes && (checksum == other.checksum || checksum == 0 || other.checksum == 0);
  }
};

// Reads the files once. Throws std::runtime_error with the file that cannot be read.
DataIdentity data_identity(const std::string& path);

}  // namespace slipway::exec
