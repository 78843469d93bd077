#include "sim/load_engine.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace slipway::sim {
namespace {

constexpr const char* file = "libslipway-simgrid.so";

[[noreturn]] void fail() {
  const char* reason = dlerror();
  throw std::runtime_error(std::string("cannot load ") + file + ", the simulator's part with SimGrid: " +
                           (reason != nullptr ? reason : "no reason is known") +
                           "; put the file of this build beside libslipway.so, or its folder into LD_LIBRARY_PATH");
}

}  // namespace

RunEngine& loaded_engine() {
  static RunEngine& engine = []() -> RunEngine& {
    void* library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);  // never closed: SimGrid does not clean up
    void* function = library != nullptr ? dlsym(library, "slipway_run_engine") : nullptr;
    if (function == nullptr) fail();
    return *reinterpret_cast<RunEngine*>(function);
  }();
  return engine;
}

}  // namespace slipway::sim
