#include "tests/cuda_double/kernels.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

namespace cuda_double {
namespace {

// Kept for ever: programs register kernels before constructors run here, and launch some while they end.
struct Launches {
  std::mutex mutex;
  std::unordered_map<const void*, const char*> names;
  std::map<std::string, long> counts;
};

void write_counts();

Launches& launches() {
  static Launches* const all = [] {
    std::atexit(write_counts);
    return new Launches;
  }();
  return *all;
}

void write_counts() {
  const char* folder = std::getenv("SLIPWAY_DOUBLE_LAUNCHES");
  if (folder == nullptr) return;
  Launches& all = launches();
  const std::lock_guard lock(all.mutex);
  const std::string path = std::string(folder) + "/launches." + std::to_string(getpid());
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return std::perror(path.c_str());
  for (const auto& [name, count] : all.counts) std::fprintf(file, "%ld\t%s\n", count, name.c_str());
  std::fclose(file);
}

}  // namespace

void name_kernel(const void* host, const char* name) {
  Launches& all = launches();
  const std::lock_guard lock(all.mutex);
  all.names[host] = name;
}

// Only then is it launched: by then it is loaded.
void count_launch(const void* host) {
  Launches& all = launches();
  std::string name;
  bool first = false;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.names.find(host);
    name = found == all.names.end() ? "a kernel without a name" : found->second;
    first = ++all.counts[name] == 1;
  }
  if (first) load(name.c_str());
}

void load(const char* what) {
  using Wait = void (*)(const char* what);
  static const auto wait = reinterpret_cast<Wait>(dlsym(RTLD_DEFAULT, "slipway_double_wait_until_idle"));
  if (wait) wait(what);
}

void count_call(const char* name) {
  Launches& all = launches();
  const std::lock_guard lock(all.mutex);
  ++all.counts[name];
}

}  // namespace cuda_double
