#include "exec/run/launchers.h"

namespace slipway::exec {

const Launcher* launcher_in(const std::function<const char*(const char*)>& value) {
  const auto set = [&](const char* name) {
    const char* text = value(name);
    return text != nullptr && *text != '\0';
  };
  for (const Launcher& launcher : launchers) {
    if (set(launcher.rank) && (launcher.inside == nullptr || set(launcher.inside))) return &launcher;
  }
  return nullptr;
}

}  // namespace slipway::exec
