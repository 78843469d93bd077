// The ways from a Scenario to the fields that keys are bound to. Private to keys_*.cpp.
// Guarded by tests/scenarios/scenario_keys_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/model/dtype.h"
#include "scenarios/language/binding.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/layer_lists.h"
#include "scenarios/language/scenario.h"
#include "scenarios/language/settings.h"
#include "schedules/step/step.h"

namespace slipway::scenarios {

using Names = std::vector<std::string_view>;

constexpr auto step = &Scenario::step;
constexpr auto layout = &Step::layout;
constexpr auto optimizer = &Step::optimizer;
constexpr auto routing = &Step::routing;
constexpr auto levers = &Step::levers;
constexpr auto narrow_habits = &Step::narrow_habits;
constexpr auto lora = &Levers::lora;
constexpr auto rate = &Optimizer::lr_schedule;
constexpr auto run = &Scenario::run;
constexpr auto faults = &Scenario::faults;
constexpr auto training = &FaultModel::training;
constexpr auto growth = &Scenario::growth;
constexpr auto dynamics = &GrowthChoice::dynamics;

// A word, or a list of layers per stage.
constexpr Binding split_field{
    [](const Settings& settings, std::string_view path, Scenario& scenario) {
      Layout& layout = scenario.step.layout;
      layout.split_list = settings.integers(path);
      if (const auto stages = pipeline_stages(settings.text(path)))
        layout.split_list.assign(stages->layers.begin(), stages->layers.end());
      layout.split = layout.split_list.empty() ? value_in(split_names, settings.text(path)).value_or(SplitKind::even)
                                               : SplitKind::list;
    },
    [](const Scenario& scenario) {
      const Layout& layout = scenario.step.layout;
      return layout.split == SplitKind::list ? binding::written(layout.split_list)
                                             : std::string(name_in(split_names, layout.split));
    }};

// A set, written as a list of its names.
template <const auto& names, auto... members>
constexpr Binding words_field{[](const Settings& settings, std::string_view path, Scenario& scenario) {
                                auto& set = binding::member<members...>(scenario);
                                set = {};
                                for (const std::string& word : settings.words(path))
                                  if (const auto value = value_in(names, word)) set.add(*value);
                              },
                              [](const Scenario& scenario) {
                                std::string text;
                                for (const auto& each : names)
                                  if (binding::member<members...>(scenario).has(each.value))
                                    text += (text.empty() ? "" : ", ") + std::string(each.name);
                                return "[" + text + "]";
                              }};

// By its name or an alias ("bf16").
constexpr Binding dtype_field{[](const Settings& settings, std::string_view path, Scenario& scenario) {
                                scenario.step.dtype = dtype_named(settings.text(path)).value_or(Dtype::bfloat16);
                              },
                              [](const Scenario& scenario) { return name_of(scenario.step.dtype); }};
constexpr Binding gradient_dtype_field{[](const Settings& settings, std::string_view path, Scenario& scenario) {
                                         scenario.step.gradient_dtype =
                                             dtype_named(settings.text(path)).value_or(Dtype::float32);
                                       },
                                       [](const Scenario& scenario) { return name_of(scenario.step.gradient_dtype); }};
constexpr Binding moment_dtype_field{
    [](const Settings& settings, std::string_view path, Scenario& scenario) {
      scenario.step.optimizer.moment_dtype = dtype_named(settings.text(path)).value_or(Dtype::float32);
    },
    [](const Scenario& scenario) { return name_of(scenario.step.optimizer.moment_dtype); }};

}  // namespace slipway::scenarios
