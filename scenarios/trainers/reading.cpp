#include "scenarios/trainers/reading.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/language/keys.h"
#include "scenarios/language/nearest.h"
#include "scenarios/language/quantity.h"
#include "scenarios/language/settings.h"
#include "scenarios/trainers/composers.h"

namespace slipway::scenarios {

namespace {

std::string without(std::string_view argument) { return fmt::format("import without it: --without {}", argument); }

// The same argument twice is a contradiction, unless the values are the same.
std::vector<Argument> each_once(std::vector<Argument> list, Defects& defects) {
  std::vector<Argument> once;
  for (Argument& argument : list) {
    const auto first =
        std::find_if(once.begin(), once.end(), [&](const Argument& a) { return a.name == argument.name; });
    if (first == once.end())
      once.push_back(std::move(argument));
    else if (first->values != argument.values)
      defects.push_back(
          {argument.origin.file, argument.origin.line, "--" + argument.name,
           fmt::format("it is given twice, as '{}' and as '{}'; allowed: one value", first->text(), argument.text()),
           "remove one of the two"});
  }
  return once;
}

const Value* at(const Value& document, std::string_view key) {
  const Value* value = &document;
  while (value != nullptr && !key.empty()) {
    const std::size_t dot = key.find('.');
    value = value->find(key.substr(0, dot));
    key.remove_prefix(dot == std::string_view::npos ? key.size() : dot + 1);
  }
  return value;
}

// The scenario's word for the trainer's, or its number.
std::string converted(const Term& term, const std::string& value) {
  for (const auto& [theirs, ours] : term.values)
    if (theirs == value || theirs == "*") return ours;
  if (term.negated) return value == "true" ? "false" : value == "false" ? "true" : value;
  const std::optional<double> number = term.factor == 1 ? std::nullopt : quantity(value, Unit::pure);
  return number ? number_text(*number * term.factor) : value;
}

}  // namespace

Reading::Reading(const Dictionary& dictionary, Arguments arguments, ImportChoices choices)
    : dictionary_(&dictionary), arguments_(std::move(arguments)), choices_(std::move(choices)) {
  document_.kind = Value::Kind::map;
  arguments_.list = each_once(std::move(arguments_.list), defects_);
  for (const std::string& option : choices_.keys) {
    const std::size_t equals = option.find('=');
    const std::string path = option.substr(0, equals);
    if (equals == std::string::npos || key_of(scenario_keys(), path) == nullptr) {
      std::vector<std::string> words;
      for (const Key& each : scenario_keys()) words.emplace_back(each.path);
      defects_.push_back({"--set " + option, 0, path,
                          "there is no such key" + suggestion(path, words) +
                              "; allowed: NAME=VALUE of a variable, or KEY=VALUE of a scenario key",
                          "correct it (slipway list keys)"});
      continue;
    }
    Defects of_value;
    const std::optional<Value> value = parse_document(option.substr(equals + 1), "--set " + option, of_value);
    if (value) set_value(path, *value, "--set " + option, {});
  }
}

const Argument* Reading::find(std::string_view argument) const {
  for (const Argument& each : arguments_.list)
    if (each.name == argument) return &each;
  return nullptr;
}

std::string Reading::text(std::string_view argument) {
  const Term* term = dictionary().find(argument);
  return text(argument, term == nullptr ? "" : term->fallback);
}

std::string Reading::text(std::string_view argument, const std::string& otherwise) {
  const Argument* found = find(argument);
  if (found == nullptr) return otherwise;
  std::string text;
  for (const std::string& value : found->values) text += (text.empty() ? "" : " ") + value;
  text = with_variables(text, choices_.variables);
  if (const std::string name = unset_variable(text); !name.empty()) {
    refuse(argument, fmt::format("the variable {} is not set", name),
           fmt::format("give its value: --set {}=...", name));
    return otherwise;
  }
  return text.empty() && !found->values.empty() ? otherwise : text;
}

double Reading::number(std::string_view argument) {
  const std::string text = this->text(argument);
  if (text.empty()) return 0;
  if (const std::optional<double> number = quantity(text, Unit::pure)) return *number;
  refuse(argument, "'" + text + "' is no number; allowed: a number", "correct it");
  return 0;
}

std::int64_t Reading::whole(std::string_view argument) {
  const std::string text = this->text(argument);
  if (text.empty()) return 0;
  if (const std::optional<std::int64_t> number = whole_number(text)) return *number;
  refuse(argument, "'" + text + "' is no whole number; allowed: a whole number", "correct it");
  return 0;
}

void Reading::exclude(std::string_view first, std::string_view second, const std::string& remedy) {
  if (given(first) && given(second))
    refuse(second, fmt::format("it contradicts --{}; allowed: one of the two", first), remedy);
}

void Reading::set_value(const std::string& key, Value value, std::string_view argument, std::string_view nearest) {
  if (has(key)) return;
  const Key* known = key_of(scenario_keys(), key);
  const std::string wrong =
      known == nullptr ? "it is not modelled yet (the key would be " + key + ")" : wrong_with(*known, value);
  if (!wrong.empty()) {
    if (!nearest.empty())
      note(NoteKind::nearest, find(argument) != nullptr ? find(argument)->text() : key, std::string(nearest));
    else if (known == nullptr)
      not_modelled(argument, wrong);
    else
      refuse(argument, key + ": " + wrong + "; allowed: " + allowed_by(*known), "correct it, or " + without(argument));
    return;
  }
  Value* map = &document_;
  std::string_view rest = key;
  for (std::size_t dot; (dot = rest.find('.')) != std::string_view::npos; rest.remove_prefix(dot + 1)) {
    const std::string name(rest.substr(0, dot));
    if (map->find(name) == nullptr) {
      map->entries.push_back({name, {}, {}});
      map->entries.back().value.kind = Value::Kind::map;
    }
    map = map->find(name);
  }
  map->entries.push_back({std::string(rest), {}, std::move(value)});
  said_by_[key] = argument;
}

void Reading::set(const std::string& key, const std::string& value, std::string_view argument,
                  std::string_view nearest) {
  const Key* known = key_of(scenario_keys(), key);
  if (known == nullptr || known->type != KeyType::words) return set_value(key, scalar(value, {}), argument, nearest);
  Value list;
  list.kind = Value::Kind::list;
  std::string word;
  for (const char c : value + " ") {  // "a b", "a,b" and "['a', 'b']" are lists of words
    if (std::string_view(" ,[]'\"").find(c) == std::string_view::npos) {
      word += c;
      continue;
    }
    if (!word.empty()) list.items.push_back(scalar(word, {}));
    word.clear();
  }
  set_value(key, std::move(list), argument, nearest);
}

void Reading::set(const std::string& key, const std::vector<std::int64_t>& values, std::string_view argument) {
  Value list;
  list.kind = Value::Kind::list;
  for (const std::int64_t value : values) list.items.push_back(scalar(std::to_string(value), {}));
  set_value(key, std::move(list), argument, {});
}

bool Reading::has(std::string_view key) const { return at(document_, key) != nullptr; }

std::string Reading::value(std::string_view key) const {
  const Value* value = at(document_, key);
  return value == nullptr ? "" : value->text;
}

std::int64_t Reading::count(std::string_view key, std::int64_t fallback) const {
  return whole_number(value(key)).value_or(fallback);
}

void Reading::note(NoteKind kind, const std::string& argument, const std::string& words) {
  notes_.push_back({kind, argument, words});
}

void Reading::refuse(std::string_view argument, const std::string& message, const std::string& remedy) {
  const Argument* found = find(argument);
  const std::string name = found != nullptr ? "--" + found->name : std::string(argument);
  for (const ScenarioError& defect : defects_)
    if (defect.key == name && defect.message == message) return;
  defects_.push_back({found != nullptr ? found->origin.file : "arguments", found != nullptr ? found->origin.line : 0,
                      name, message, remedy});
}

void Reading::not_modelled(std::string_view argument, const std::string& message) {
  const Argument* found = find(argument);
  if (choices_.without.contains("all"))
    note(NoteKind::left_out, found != nullptr ? found->text() : std::string(argument), message);
  else
    refuse(argument, message, without(argument));
}

const std::string& Reading::argument_of(const std::string& key) const {
  static const std::string nobody;
  const auto found = said_by_.find(key);
  return found == said_by_.end() ? nobody : found->second;
}

void Reading::apply(const Term& term, const Argument& argument) {
  const std::string first = argument.values.empty() ? "" : argument.values.front();
  const std::string shown = argument.text();
  if (std::find(term.harmless.begin(), term.harmless.end(), first) != term.harmless.end())
    return note(NoteKind::no_effect, shown, "with this value it changes nothing");
  switch (term.effect) {
    case Effect::part:
      return;
    case Effect::none:
      return note(NoteKind::no_effect, shown, term.words);
    case Effect::near:
      return note(NoteKind::nearest, shown, term.words);
    case Effect::not_modelled:
      return not_modelled(argument.name, term.words + ", which is not modelled");
    case Effect::key: {
      const std::string value = argument.values.empty() ? "true" : text(argument.name);
      if (!value.empty()) set(term.key, converted(term, value), argument.name, term.otherwise);
    }
  }
}

std::optional<std::string> Reading::value_of(std::string_view name) {
  if (name.starts_with("--")) {
    const Argument* argument = find(name.substr(2));
    if (argument == nullptr) return std::nullopt;
    if (argument->values.empty()) return "true";
    const std::string value = text(name.substr(2));
    return value.empty() ? std::nullopt : std::optional(value);
  }
  for (const auto& [condition, itself] : dictionary_->conditions)
    if (condition == name)
      return holds(itself, [&](std::string_view other) { return value_of(other); }) ? "true" : "false";
  return has(name) ? std::optional(value(name)) : std::nullopt;
}

void Reading::apply(const ImportStep& step) {
  const ValueOf value = [&](std::string_view name) { return value_of(name); };
  if (!holds(step.when, value)) return;
  switch (step.kind) {
    case StepKind::set:
      for (const auto& [key, text] : step.keys)
        if (const std::optional<std::string> filled = filled_in(text, value)) set(key, *filled, step.by, step.words);
      return;
    case StepKind::no_effect:
    case StepKind::nearest: {
      const NoteKind kind = step.kind == StepKind::nearest ? NoteKind::nearest : NoteKind::no_effect;
      const std::string words = filled_in(step.words, value).value_or(step.words);
      for (const std::string& each : step.arguments)
        if (const Argument* argument = find(each))
          note(kind, argument->text(), words);
        else if (dictionary_->find(each) == nullptr)  // "no --overlap-grad-reduce"
          note(kind, each, words);
      return;
    }
    case StepKind::contradiction:
      for (std::size_t i = 1; i < step.arguments.size(); ++i)
        exclude(step.arguments[0], step.arguments[i], step.remedy);
      return;
    case StepKind::refusal:
    case StepKind::not_modelled:
      for (const std::string& each : step.arguments) {
        const std::string words = filled_in(step.words, value).value_or(step.words);
        step.kind == StepKind::refusal ? refuse(each, words, step.remedy) : not_modelled(each, words);
      }
      return;
    case StepKind::compose:
      return import_composer(step.by)(*this);
  }
}

// Variables of the launch. Variables that change kernels or queues are noted separately.
void Reading::read_environment() {
  for (const Argument& each : arguments_.environment) {
    const WordTable& known = dictionary_->environment;
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& word) { return word.first == each.name || word.first == "*"; });
    if (found != known.end())
      note(NoteKind::no_effect, each.name + "=" + (each.values.empty() ? "" : each.values[0]), found->second);
  }
}

void Reading::read(const std::string& version) {
  std::vector<Argument> left_out;
  for (const Argument& argument : arguments_.list) {
    const Term* term = dictionary_->find(argument.name);
    if (choices_.without.contains(argument.name)) {
      note(NoteKind::left_out, argument.text(), "as --without says");
      left_out.push_back(argument);
    } else if (term == nullptr && dictionary_->has_other_readers) {
      continue;
    } else if (term == nullptr) {
      std::vector<std::string> words;
      for (const Term& each : dictionary_->terms) words.push_back(each.argument);
      not_modelled(argument.name, "it is unknown to import" + suggestion(argument.name, words, "--"));
    } else if (const std::string reason = version.empty() ? "" : lacks(*dictionary_, *term, version); !reason.empty()) {
      refuse(argument.name, fmt::format("{}; cluster.trainer says {}", reason, version),
             "name another version of the trainer, or " + without(argument.name));
    } else {
      apply(*term, argument);
    }
  }
  for (const Argument& argument : left_out)
    std::erase_if(arguments_.list, [&](const Argument& each) { return each.name == argument.name; });
  for (const auto& [argument, key] : dictionary_->needed)
    if (!has(key) && !given(argument))
      refuse(argument, "it is missing; allowed: a whole number",
             fmt::format("add --{} N, or give --set {}=N", argument, key));
  if (!dictionary_->needed.empty() && !defects_.empty()) return;  // the steps would say what follows from these
  for (const ImportStep& step : dictionary_->import) apply(step);
  read_environment();
}

void add_recipe(const Dictionary& dictionary, const std::string& name, const Origin& origin, Arguments& arguments,
                Defects& defects) {
  const Recipe* recipe = dictionary.recipe(name);
  if (recipe == nullptr) {
    std::vector<std::string> names;
    for (const Recipe& each : dictionary.recipes) names.push_back(each.name);
    defects.push_back({origin.file, origin.line, "recipe",
                       fmt::format("there is no recipe '{}'{}; allowed: {}", name, suggestion(name, names),
                                   names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))),
                       "choose one of them"});
    return;
  }
  for (const auto& [argument, values] : recipe->arguments) {
    const auto is_given = [&, own = std::string_view(argument)](const Argument& each) { return each.name == own; };
    if (std::none_of(arguments.list.begin(), arguments.list.end(), is_given))
      arguments.list.push_back({argument, values, origin});
  }
}

}  // namespace slipway::scenarios
