// Which limits a program can be started with, and how much slower it may be. A sanitizer reserves terabytes of addresses
// before main (`ulimit -v`), and ThreadSanitizer keeps its shadow in a file (`ulimit -f`).
#pragma once

namespace slipway::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool addresses_can_be_limited = false, file_sizes_can_be_limited = false;
inline constexpr int times_slower = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool addresses_can_be_limited = false, file_sizes_can_be_limited = true;
inline constexpr int times_slower = 4;
#else
inline constexpr bool addresses_can_be_limited = true, file_sizes_can_be_limited = true;
inline constexpr int times_slower = 1;
#endif

}  // namespace slipway::test
