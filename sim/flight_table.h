// Address → task instance: open addressing, linear probing, no tombstones. Flows (flows.h) find the task of an ended one
// in it. Guarded by tests/sim/collective_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/calendar.h"

namespace slipway::sim {

class FlightTable {
 public:
  FlightTable() : slots_(1024) {}
  void insert(const void* key, Instance instance);
  Instance take(const void* key);  // requires that key is there
  bool empty() const { return used_ == 0; }

 private:
  struct Slot {
    const void* key = nullptr;
    Instance instance = 0;
  };
  std::size_t home(const void* key) const {
    return (reinterpret_cast<std::uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15U >> shift_;
  }
  std::size_t find(const void* key) const;
  void grow();

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  int shift_ = 64 - 10;  // log2 of the slots
};

}  // namespace slipway::sim
