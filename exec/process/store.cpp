#include "exec/process/store.h"

namespace slipway::exec {

void store_barrier(Store& store, const std::string& name, int world, double seconds) {
  if (store.add(name, 1) == world) store.set(name + "/all", "1");
  try {
    store.get(name + "/all", seconds);
  } catch (const StoreLost&) {
    throw;
  } catch (const std::runtime_error&) {
    throw std::runtime_error("only " + std::to_string(store.add(name, 0)) + " of " + std::to_string(world) +
                             " ranks reached '" + name + "' within " + std::to_string(static_cast<int>(seconds)) +
                             " s");
  }
}

void forget_barrier(Store& store, const std::string& name) {
  store.forget(name);
  store.forget(name + "/all");
}

}  // namespace slipway::exec
