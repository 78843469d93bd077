// The numbers that communicators have in the graph of all ranks, asked of a folded one: a trace says of every rank
// what its stand-in did, in the groups that it is in itself.
//
//   folded: tp of rank 0 is 0, dp of rank 0 is 4        all: tp of ranks 0..7 is 0, of 8..15 is 1, ..., dp of rank 5 is 13
//
// Guarded by tests/folding_test.cpp: traces of folded and of whole graphs are the same.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "schedules/program.h"

namespace slipway {

class GroupNumbers {
 public:
  explicit GroupNumbers(const TaskGraph& folded);
  // `name`: of the communicator (a rank is in one of each name).
  int of(std::int32_t rank, const std::string& name) const { return numbers_.at({rank, name}); }

 private:
  std::map<std::pair<std::int32_t, std::string>, int> numbers_;
};

}  // namespace slipway
