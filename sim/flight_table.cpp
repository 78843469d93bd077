#include "sim/flight_table.h"

namespace slipway::sim {

std::size_t FlightTable::find(const void* key) const {
  std::size_t at = home(key);
  while (slots_[at].key != key && slots_[at].key != nullptr) at = (at + 1) & (slots_.size() - 1);
  return at;
}

void FlightTable::insert(const void* key, Instance instance) {
  if (2 * ++used_ > slots_.size()) grow();
  slots_[find(key)] = {key, instance};
}

Instance FlightTable::take(const void* key) {
  std::size_t hole = find(key);
  const Instance instance = slots_[hole].instance;
  const std::size_t mask = slots_.size() - 1;
  // Close the gap: later slots of the same run move back unless that would put them before their home.
  for (std::size_t next = (hole + 1) & mask; slots_[next].key != nullptr; next = (next + 1) & mask) {
    if (((next - home(slots_[next].key)) & mask) < ((next - hole) & mask)) continue;
    slots_[hole] = slots_[next];
    hole = next;
  }
  slots_[hole] = {};
  --used_;
  return instance;
}

void FlightTable::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  --shift_;
  for (const Slot& slot : old)
    if (slot.key != nullptr) slots_[find(slot.key)] = slot;
}

}  // namespace slipway::sim
