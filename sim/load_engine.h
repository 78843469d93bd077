// SimGrid and its libraries take longer to load than most commands run, so they are loaded by the first simulation:
//
//   slipway, libslipway.so, a test ──dlopen, once──► libslipway-simgrid.so ──► libsimgrid.so.3.32 ──► ...
//                                                    engine, flows, flapping, platform
//
// The loader finds it as it finds libraries that are linked: beside libslipway.so, or where LD_LIBRARY_PATH or the run path of
// the program says. It has code of models/ and schedules/ of its own, from the same build, and shows one function.
// Guarded by tests/sim/load_engine_test.cpp.
#pragma once

#include "sim/engine.h"

namespace slipway::sim {

// Loads it if that has not been done. Throws std::runtime_error with the file and the loader's reason.
RunEngine& loaded_engine();

}  // namespace slipway::sim
