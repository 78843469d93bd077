#include "exec/run/checksum.h"

namespace slipway::exec {

std::uint64_t checksum_of(std::string_view bytes) {
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
