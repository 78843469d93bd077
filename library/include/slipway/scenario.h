// A scenario: model × cluster × layout × schedule × training, as the keys of `slipway list keys` describe it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "slipway/error.h"
#include "slipway/schedule.h"

namespace slipway {

// Keys and their values as YAML, set in this order: {{"layout.tensor", "4"}, {"schedule.name", "zb-h1"}}.
using Settings = std::vector<std::pair<std::string, std::string>>;

// Cheap to copy; never changes. Its text, or file, is read and checked by the functions that take it, which throw Refusal
// with all defects at once. So a plan may start from a layout that cannot be run.
class Scenario {
 public:
  static Scenario from_file(const std::string& path);
  // `path`: its name, and the folder of the relative paths in it. No file is there.
  static Scenario from_text(const std::string& yaml, const std::string& path = "scenario.yaml");
  static Scenario from_settings(const Settings& settings, const std::string& path = "scenario.yaml");

  Scenario with(const Settings& settings) const;
  // The caller's order of passes instead of schedule.name.
  Scenario with_schedule(Schedule schedule) const;

  // All that is wrong with it as it is written; empty: it can be simulated.
  std::vector<Defect> defects() const;
  std::string name() const;
  // The whole scenario as YAML, with every default and derived value. Throws Refusal.
  std::string resolved() const;

  struct Source;  // the library's own
  const Source& source() const { return *source_; }

 private:
  explicit Scenario(std::shared_ptr<const Source> source);
  std::shared_ptr<const Source> source_;
};

}  // namespace slipway
