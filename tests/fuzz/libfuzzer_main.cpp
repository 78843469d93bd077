// What libFuzzer calls. Each program holds one target.
#include <cxxabi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <typeinfo>

#include "tests/fuzz/mutation.h"
#include "tests/fuzz/target.h"

namespace {

const slipway::test::Target& target() { return slipway::test::all_targets().at(0); }

std::string name_of(const std::type_info& type) {
  int status = 0;
  char* const plain = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? plain : type.name();
  std::free(plain);
  return name;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// With SLIPWAY_FUZZ_SEEDS=FOLDER the program writes its seeds and ends.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("SLIPWAY_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : target().seeds())
    std::ofstream(std::filesystem::path(folder) / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    slipway::test::try_one(target(), {reinterpret_cast<const char*>(data), size});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: a reader must not throw %s: %s\n", target().name.c_str(), name_of(typeid(error)).c_str(),
                 error.what());
    std::abort();
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string text = slipway::test::mutated({reinterpret_cast<const char*>(data), size}, seed, most);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
