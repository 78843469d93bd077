// By which algorithm the members of a communicator do a collective (models/collectives.h has the costs).
#pragma once

#include <cstdint>

namespace slipway {

// ring          every member sends to the next; all bandwidth is used, latency grows with the members
// tree          two binary trees over the nodes, chains inside them; all-reduce only
// hierarchical  inside the nodes, then between equal members of the nodes, then inside again
// automatic     whichever takes least, as NCCL chooses
enum class Algorithm : std::uint8_t { ring, tree, hierarchical, automatic };

}  // namespace slipway
