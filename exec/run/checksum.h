// FNV-1a over words of 8 bytes (the last one filled with zeros), fast enough for a disk. Guarded by
// tests/exec/checkpoint_file_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::exec {

std::uint64_t checksum_of(std::string_view bytes);

}  // namespace slipway::exec
