// FNV-1a over words of 8 bytes (the last one filled with zeros), fast enough for a disk. Guarded by
// tests/exec/checkpoint_file_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::exec {

inline std::uint64_t checksum_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    bytes.substr(at, 8).copy(reinterpret_cast<char*>(&word), 8);
    hash = (hash ^ word) * 0x100000001b3ULL;
    hash ^= hash >> 32;
  }
  return (hash ^ bytes.size()) * 0x100000001b3ULL;
}

}  // namespace slipway::exec
