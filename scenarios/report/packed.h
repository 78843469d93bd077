// Whole numbers in few characters, for data inside a page: seven bits a byte, the sign in the lowest bit, then base64.
//
//   0 → 0    −1 → 1    1 → 2    ...    300 → 600 → bytes D8 04
//
// page/numbers.js reads them. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "models/namespaces.h"

namespace slipway::scenarios {

class Packed {
 public:
  void add(std::int64_t value) {
    auto rest = static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
    for (; rest >= 0x80; rest >>= 7) bytes_ += static_cast<char>(rest | 0x80);
    bytes_ += static_cast<char>(rest);
  }

  std::string base64() const {
    constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve(bytes_.size() * 4 / 3 + 4);
    const auto byte = [&](std::size_t i) {
      return i < bytes_.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes_[i])) : 0U;
    };
    for (std::size_t i = 0; i < bytes_.size(); i += 3) {
      const std::uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
      for (int k = 0; k < 4; ++k)
        text += i + static_cast<std::size_t>(k) > bytes_.size() ? '=' : digits[three >> (18 - 6 * k) & 63];
    }
    return text;
  }

 private:
  std::string bytes_;
};

}  // namespace slipway::scenarios
