// Fuzz targets: readers of files from elsewhere, each given inputs that nobody wrote on purpose.
//
//   seeds (good inputs) ──► mutations ──► try_input ──► ends, or throws what the reader promises    fine
//                                                  └──► crash, hang, another exception, 2 GB        a finding
//
// A target is one file, tests/fuzz/<name>_target.cpp, with a static RegisterTarget; nothing else names it. Two programs
// use it:
//
//   build-fuzz/fuzz/<name>       libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer (`make fuzz`)
//   build/tests/targets_test     a few thousand mutations of the seeds, and every input that was a finding, in `make test`
//
// Inputs that were findings are in tests/fuzz/found/<name>/. Guarded by tests/fuzz/fuzz_targets_test.cpp.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace slipway::test {

struct Target {
  std::string name;
  // Gives the input to the reader, and what was read to those who use it first. Throws std::runtime_error or UsageError
  // for input that is refused.
  void (*try_input)(std::string_view input);
  // Good inputs, small ones.
  std::vector<std::string> (*seeds)();
};

// Sorted by name.
const std::vector<Target>& all_targets();

// Put one static object of this type in each target's file.
struct RegisterTarget {
  explicit RegisterTarget(Target target);
};

// What a reader claims and does not keep. No reader throws it, so it is always a finding.
class BrokenPromise : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void promise(bool holds, const std::string& what) {
  if (!holds) throw BrokenPromise(what);
}

// try_input without the exceptions that refuse an input. Others pass: those of other libraries too, though they derive
// from std::runtime_error.
void try_one(const Target& target, std::string_view input);

}  // namespace slipway::test
