// Keys of --json that say on what times and memory rest (basis.h): the same in every table that has them.
#pragma once

#include <algorithm>
#include <array>

#include "scenarios/json_summary.h"

namespace slipway {

inline constexpr std::array basis_json_keys{
    JsonKey{"basis", "text",
            "trainer of cluster.stack whose constants price the step; book: built-in machine profiles alone; profile: "
            "a profile or block table of your own; in plan of the winner, present where something fits",
            true},
    JsonKey{"book_error", "0..1",
            "list: from, to; how far step times by book values are off published runs; present with basis book", true},
    JsonKey{"fitted_stacks", "list", "stacks that were fitted on these machines; present with basis book", true},
    JsonKey{"own_sources", "list",
            "what times rest on that is not built in: machine profiles (file: source, date), the table of cluster.block_times; "
            "in plan present where something fits",
            true},
    JsonKey{"not_priced", "list",
            "features that the trainer's formula of step time has no term for; present with a trainer's pace", true},
    JsonKey{"outside_fit", "list",
            "what lies outside the runs that the trainer's times were fitted to: what, here, and least, most (of a "
            "quantity) or fitted (the choices of these runs); slices with fewer tokens than any published run computed at once; "
            "present with a trainer's pace, or such slices",
            true},
    JsonKey{"memory_outside_fit", "list",
            "the same of the runs that its memory was fitted to; present with cluster.stack, where memory is told", true},
};

// Those of memory, the last, only where it is told.
template <bool of_memory, std::size_t count>
constexpr auto with_keys_of_basis(const std::array<JsonKey, count>& own) {
  constexpr std::size_t more = basis_json_keys.size() - (of_memory ? 0 : 1);
  std::array<JsonKey, count + more> all{};
  std::copy_n(basis_json_keys.begin(), more, std::copy(own.begin(), own.end(), all.begin()));
  return all;
}
template <std::size_t count>
constexpr auto with_basis_keys(const std::array<JsonKey, count>& own) {
  return with_keys_of_basis<true>(own);
}
template <std::size_t count>
constexpr auto with_time_basis_keys(const std::array<JsonKey, count>& own) {
  return with_keys_of_basis<false>(own);
}

}  // namespace slipway
