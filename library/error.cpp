#include <new>

#include "library/loading.h"
#include "slipway/error.h"
#include "slipway/version.h"

namespace slipway {

const char* version() { return SLIPWAY_VERSION; }

Refusal::Refusal(const std::string& words, std::vector<Defect> defects)
    : std::runtime_error(words), defects_(std::move(defects)) {}
Refusal::~Refusal() = default;
const std::vector<Defect>& Refusal::defects() const { return defects_; }
Failure::Failure(const std::string& words) : std::runtime_error(words) {}
Failure::~Failure() = default;
Interrupted::~Interrupted() = default;

std::vector<Defect> defects_of(const std::vector<scenarios::ScenarioError>& errors) {
  std::vector<Defect> defects;
  for (const scenarios::ScenarioError& error : errors)
    defects.push_back({error.file, error.line, error.key, error.message, error.remedy});
  return defects;
}

void rethrow() {
  try {
    throw;
  } catch (const scenarios::ScenarioRefused& error) {
    throw Refusal(error.what(), defects_of(error.errors()));
  } catch (const scenarios::UsageError& error) {
    throw Refusal(error.what(), {{"", 0, "", error.what(), ""}});
  } catch (const std::invalid_argument& error) {
    throw Refusal(error.what(), {{"", 0, "", error.what(), ""}});
  } catch (const sim::SimulationInterrupted& error) {
    throw Interrupted(error.what());
  } catch (const Refusal&) {
    throw;
  } catch (const Failure&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Failure("out of memory: the task graph is larger than this machine, or its limit (ulimit -v), has room for");
  } catch (const std::exception& error) {
    throw Failure(error.what());
  }
}

}  // namespace slipway
