#include "scenarios/trainers/launch.h"

#include <algorithm>

#include "scenarios/language/keys.h"
#include "scenarios/language/load_trainer.h"
#include "scenarios/language/quantity.h"
#include "scenarios/trainers/composers.h"

namespace slipway::scenarios {

namespace {

// The trainer's word for a key's value; nothing for a flag that is not set.
std::optional<std::string> theirs(const Term& term, const std::string& value) {
  for (const auto& [theirs, ours] : term.values)
    if (ours == value && theirs != "*") return theirs;
  const Key* key = key_of(scenario_keys(), term.key);
  if (key != nullptr && key->type == KeyType::flag)
    return value == (term.negated ? "false" : "true") ? std::optional<std::string>("") : std::nullopt;
  if (const std::optional<double> number = term.factor == 1 ? std::nullopt : quantity(value, Unit::pure))
    return number_text(*number / term.factor);
  return value;
}

class Launch {
 public:
  Launch(const Dictionary& dictionary, const Scenario& scenario)
      : dictionary_(dictionary), scenario_(scenario), model_(model_values(scenario)) {}

  LaunchArguments arguments(const std::string& version) {
    const ValueOf value_of = [this](std::string_view name) { return value(name); };
    const bool is_last = version.empty() || version == dictionary_.versions.back();
    launch_.version = is_last ? dictionary_.launched : dictionary_.of + " " + version;
    launch_.program = filled_in(dictionary_.program, value_of).value_or(dictionary_.program);
    for (const Term& term : dictionary_.terms) {
      const std::string reason = lacks(dictionary_, term, version);
      const std::vector<std::string> before = launch_.arguments;
      add(term, value_of);
      leave_out_unknown(before.size(), term, version);
      if (reason.empty() || launch_.arguments == before) continue;
      launch_.arguments = before;
      if (!has_another(term, version)) launch_.refused.push_back("--" + term.argument + ": " + reason);
    }
    for (const LaunchStep& step : dictionary_.launch) {
      const std::size_t before = launch_.arguments.size();
      if (step.kind != AnswerKind::impossible && holds(step.when, value_of)) say(step, value_of);
      leave_out_unknown(before, {}, version);
    }
    return std::move(launch_);
  }

  std::vector<std::string> impossible() const {
    const ValueOf value_of = [this](std::string_view name) { return value(name); };
    std::vector<std::string> reasons;
    for (const LaunchStep& step : dictionary_.launch)
      if (step.kind == AnswerKind::impossible && holds(step.when, value_of))
        reasons.push_back(filled_in(step.words, value_of).value_or(step.words));
    return reasons;
  }

 private:
  // True if a launch of the version gives another argument for the same key.
  bool has_another(const Term& term, const std::string& version) const {
    return std::any_of(dictionary_.terms.begin(), dictionary_.terms.end(), [&](const Term& each) {
      const bool is_launched = !each.never_launched && (!each.launch.empty() || each.effect == Effect::key);
      return &each != &term && is_launched && !each.key.empty() && each.key == term.key &&
             lacks(dictionary_, each, version).empty();
    });
  }

  // What functions composed for `term` behind the first `kept` arguments, and the version has not.
  void leave_out_unknown(std::size_t kept, const Term& term, const std::string& version) {
    for (std::size_t i = kept; i < launch_.arguments.size();) {
      const std::string& text = launch_.arguments[i];
      const std::string name = text.starts_with("--") ? text.substr(2, text.find_first_of(" =") - 2) : "";
      const Term* composed = name == term.argument ? nullptr : dictionary_.find(name);
      const std::string reason = composed == nullptr ? "" : lacks(dictionary_, *composed, version);
      if (reason.empty()) {
        ++i;
        continue;
      }
      launch_.refused.push_back("--" + name + ": " + reason);
      launch_.arguments.erase(launch_.arguments.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  std::optional<std::string> value(std::string_view name) const {
    for (const auto& [condition, itself] : dictionary_.conditions)
      if (condition == name)
        return holds(itself, [this](std::string_view other) { return value(other); }) ? "true" : "false";
    return launch_value(scenario_, model_, name);
  }

  void add(const Term& term, const ValueOf& value_of) {
    if (term.never_launched) return;
    if (term.launch.empty()) {
      if (term.effect != Effect::key) return;
      const std::optional<std::string> ours = value(term.key);
      const std::optional<std::string> text = ours ? theirs(term, *ours) : std::nullopt;
      if (text && (text->empty() || *text != term.fallback)) give(term, *text);
      return;
    }
    const auto rule = std::find_if(term.launch.begin(), term.launch.end(),
                                   [&](const LaunchRule& each) { return holds(each.when, value_of); });
    if (rule == term.launch.end()) return;
    if (!rule->word.empty()) return launch_.arguments.push_back(rule->word);
    if (!rule->compose.empty()) return launch_composer(rule->compose)(scenario_, launch_);
    if (const auto text = filled_in(rule->value, value_of)) {
      const bool is_key = rule->value == "{" + term.key + "}";
      give(term, is_key ? theirs(term, *text).value_or(*text) : *text);
    }
  }

  void give(const Term& term, const std::string& value) {
    const std::string text = "--" + term.argument + (value.empty() ? "" : " " + value);
    if (term.joined && !launch_.arguments.empty())
      launch_.arguments.back() += " " + text;
    else
      launch_.arguments.push_back(text);
  }

  void say(const LaunchStep& step, const ValueOf& value_of) {
    if (step.kind == AnswerKind::compose) return launch_composer(step.words)(scenario_, launch_);
    const std::string words = filled_in(step.words, value_of).value_or(step.words);
    std::vector<std::string>& list = step.kind == AnswerKind::refused          ? launch_.refused
                                     : step.kind == AnswerKind::refused_anyway ? launch_.refused_anyway
                                     : step.kind == AnswerKind::missing        ? launch_.missing
                                     : step.kind == AnswerKind::environment    ? launch_.environment
                                                                               : launch_.to_add;
    list.push_back(words);
  }

  const Dictionary& dictionary_;
  const Scenario& scenario_;
  const LaunchValues model_;
  LaunchArguments launch_;
};

}  // namespace

LaunchArguments arguments_for(const Dictionary& dictionary, const std::string& version, const Scenario& scenario) {
  return Launch(dictionary, scenario).arguments(version);
}

std::vector<std::string> impossible_for(const Dictionary& dictionary, const Scenario& scenario) {
  return Launch(dictionary, scenario).impossible();
}

const Dictionary* launched_dictionary(const std::string& name) {
  const std::vector<std::string> names = launched_names();
  return std::find(names.begin(), names.end(), name) == names.end() ? nullptr : built_in_dictionary(name);
}

std::vector<std::string> launched_names() {
  std::vector<std::string> names;
  for (const std::string& name : dictionary_names())
    if (built_in_dictionary(name)->is_launched) names.push_back(name);
  return names;
}

std::string dictionary_version(const Dictionary& dictionary, const Scenario& scenario) {
  const Trainer* trainer = scenario.names_trainer
                               ? built_in_trainer(with_version(scenario.trainer.name, scenario.trainer_version))
                               : nullptr;
  return trainer != nullptr && trainer->dictionary == dictionary.name ? trainer->arguments_version() : "";
}

}  // namespace slipway::scenarios
