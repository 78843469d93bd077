// Mutations for files of words and numbers. Those that change single bytes rarely give another sound number, so a reader's
// checks of numbers stay untried. Guarded by tests/fuzz/fuzz_targets_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace slipway::test {

// Another input of at most `most` bytes: a number replaced by a remarkable one, a word by another word of the input, a
// piece left out, repeated or moved, or some bytes changed. The same arguments give the same result.
std::string mutated(std::string_view input, std::uint32_t seed, std::size_t most);

// One character of the input, `count` times in its place: a reader that calls itself once a character runs out of stack,
// and one that looks back at each runs without end.
std::string with_a_long_run(std::string_view input, std::uint32_t seed, std::size_t count);

}  // namespace slipway::test
