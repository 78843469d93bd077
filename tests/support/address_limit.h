// Whether a program can be run under a limit of its addresses (`ulimit -v`): a sanitizer reserves terabytes before main.
#pragma once

namespace slipway::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool addresses_can_be_limited = false;
#else
inline constexpr bool addresses_can_be_limited = true;
#endif

}  // namespace slipway::test
