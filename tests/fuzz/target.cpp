#include "tests/fuzz/target.h"

#include <algorithm>
#include <typeinfo>

#include "scenarios/files/usage_error.h"

namespace slipway::test {
namespace {

std::vector<Target>& registered() {
  static std::vector<Target> targets;
  return targets;
}

}  // namespace

const std::vector<Target>& all_targets() { return registered(); }

RegisterTarget::RegisterTarget(Target target) {
  std::vector<Target>& targets = registered();
  const auto after = std::find_if(targets.begin(), targets.end(), [&](const auto& t) { return t.name > target.name; });
  targets.insert(after, std::move(target));
}

void try_one(const Target& target, std::string_view input) {
  try {
    target.try_input(input);
  } catch (const scenarios::UsageError&) {
    return;
  } catch (const std::runtime_error& error) {
    if (typeid(error) != typeid(std::runtime_error)) throw;
  }
}

}  // namespace slipway::test
