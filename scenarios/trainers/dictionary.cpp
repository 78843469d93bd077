#include "scenarios/trainers/dictionary.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"
#include "scenarios/language/keys.h"
#include "scenarios/language/nearest.h"
#include "scenarios/language/quantity.h"
#include "scenarios/trainers/composers.h"

namespace slipway::scenarios {

namespace {

bool is_same(const std::string& a, std::string_view b) {
  if (a == b) return true;
  const std::optional<double> x = quantity(a, Unit::pure), y = quantity(b, Unit::pure);
  return x && y && *x == *y;
}

// The words of "adam, sgd".
std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(", "), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return words;
}

bool is_wanted(const std::optional<std::string>& value, const std::string& wanted) {
  if (wanted == "absent") return !value;
  if (!value) return false;
  if (wanted == "given") return true;
  if (wanted.starts_with("not ")) {
    const std::vector<std::string> others = listed(std::string_view(wanted).substr(4));
    return std::none_of(others.begin(), others.end(), [&](const std::string& other) { return is_same(*value, other); });
  }
  if (wanted.starts_with("> ") || wanted.starts_with("< ")) {
    const std::optional<double> number = quantity(*value, Unit::pure), bound = quantity(wanted.substr(2), Unit::pure);
    return number && bound && (wanted[0] == '>' ? *number > *bound : *number < *bound);
  }
  return is_same(*value, wanted);
}

bool is_list(const Value& value) { return value.kind == Value::Kind::list; }

class DictionaryReader {
 public:
  DictionaryReader(Defects& defects, const std::function<const Dictionary*(std::string_view)>& base)
      : defects_(defects), base_(base) {}

  std::optional<Dictionary> read(const Value& root, const std::string& name) {
    const std::size_t before = defects_.size();
    if (root.kind != Value::Kind::map) {
      refuse(root.origin, "arguments", "the file is no map; allowed: arguments and what stands beside them",
             "start from another dictionary (models/trainers/arguments)");
      return std::nullopt;
    }
    if (const Value* other = root.find("extends")) extend(*other);
    own_.name = name;
    if (const Value* versions = root.find("versions")) own_.versions = words(*versions);
    for (const Entry& section : root.entries) read_section(section);
    // Names may be those of the dictionary as a whole.
    for (const auto& [origin, path, text] : names_) check_name(origin, path, text);
    if (own_.terms.empty() && defects_.size() == before)
      refuse(root.origin, "arguments", "there is no argument", "name one below `arguments`");
    if (defects_.size() != before) return std::nullopt;
    return std::move(own_);
  }

 private:
  void refuse(const Origin& origin, const std::string& key, const std::string& problem, const std::string& remedy) {
    defects_.push_back({origin.file, origin.line, key, problem, remedy});
  }

  void extend(const Value& other) {
    const Dictionary* found = base_ ? base_(other.text) : nullptr;
    if (found == nullptr)
      return refuse(other.origin, "extends", "there is no dictionary '" + other.text + "'", "name one that there is");
    own_ = *found;
    own_.is_launched = false;
  }

  void read_section(const Entry& section) {
    const std::map<std::string, std::string Dictionary::*, std::less<>> texts{
        {"of", &Dictionary::of},           {"source", &Dictionary::source},     {"trainer", &Dictionary::trainer},
        {"program", &Dictionary::program}, {"launched", &Dictionary::launched}, {"extends", nullptr}};
    const Value& value = section.value;
    if (const auto text = texts.find(section.key); text != texts.end()) {
      if (text->second != nullptr) own_.*text->second = value.text;
    } else if (section.key == "others") {
      own_.has_other_readers = true;
    } else if (section.key == "arguments") {
      for (const Entry& entry : value.entries) add(own_.terms, term(entry));
    } else if (section.key == "conditions") {
      for (const Entry& entry : value.entries)
        own_.conditions.emplace_back(entry.key, condition(entry.value, "conditions." + entry.key));
    } else if (section.key == "needed") {
      own_.needed = table(value);
    } else if (section.key == "environment") {
      own_.environment = table(value);
    } else if (section.key == "import") {
      for (const Value& item : value.items) import_step(item);
    } else if (section.key == "launch") {
      own_.is_launched = true;
      for (const Value& item : value.items) launch_step(item);
    } else if (section.key == "recipes") {
      for (const Entry& entry : value.entries) recipe(entry);
    } else if (section.key == "tables") {
      for (const Entry& entry : value.entries) own_.tables[entry.key] = table(entry.value);
    } else if (section.key == "models") {
      for (const Entry& module : value.entries)
        for (const Entry& flavor : module.value.entries)
          own_.models.push_back({module.key, flavor.key, model(flavor, "models." + module.key)});
    } else if (section.key != "versions") {
      refuse(section.origin, section.key,
             "unknown section; allowed: of, source, extends, versions, trainer, program, launched, others, arguments, "
             "conditions, needed, environment, import, launch, recipes, tables, models",
             "remove it");
    }
  }

  // An entry of the same name takes the place of the one that is extended.
  static void add(std::vector<Term>& terms, Term term) {
    const auto found =
        std::find_if(terms.begin(), terms.end(), [&](const Term& each) { return each.argument == term.argument; });
    if (found == terms.end())
      terms.push_back(std::move(term));
    else
      *found = std::move(term);
  }

  static std::vector<std::string> words(const Value& value) {
    if (!is_list(value)) return {value.text};
    std::vector<std::string> list;
    for (const Value& item : value.items) list.push_back(item.text);
    return list;
  }

  static WordTable table(const Value& value) {
    WordTable table;
    for (const Entry& entry : value.entries) table.emplace_back(entry.key, entry.value.text);
    return table;
  }

  WordTable model(const Entry& flavor, const std::string& path) {
    for (const Entry& entry : flavor.value.entries)
      if (key_of(scenario_keys(), "model." + entry.key) == nullptr)
        refuse(entry.origin, path + "." + flavor.key + "." + entry.key, "is no key of model (slipway list keys)",
               "remove it");
    return table(flavor.value);
  }

  std::string version(const Value& value, const std::string& path) {
    if (std::find(own_.versions.begin(), own_.versions.end(), value.text) == own_.versions.end())
      refuse(value.origin, path,
             fmt::format("there is no version '{}'; allowed: {}", value.text,
                         own_.versions.empty() ? "none, as `versions` is missing"
                                               : fmt::format("{}", fmt::join(own_.versions, ", "))),
             "name one of `versions`");
    return value.text;
  }

  Condition condition(const Value& value, const std::string& path) {
    Condition condition;
    const auto way = [&](const Value& map) {
      std::vector<Clause> clauses;
      if (map.kind != Value::Kind::map || map.entries.empty())
        refuse(map.origin, path, "a condition is " + in_words(map) + "; allowed: a map of names and values",
               "write one");
      for (const Entry& entry : map.entries) {
        clauses.push_back({entry.key, words(entry.value)});
        names_.push_back({entry.origin, path, entry.key});
      }
      condition.ways.push_back(std::move(clauses));
    };
    if (is_list(value))
      for (const Value& item : value.items) way(item);
    else
      way(value);
    return condition;
  }

  std::string text(const Value& value, const std::string& path) {
    for (std::size_t open = value.text.find('{'); open != std::string::npos; open = value.text.find('{', open + 1))
      names_.push_back(
          {value.origin, path, value.text.substr(open + 1, value.text.find_first_of("|}", open) - open - 1)});
    return value.text;
  }

  void check_name(const Origin& origin, const std::string& path, const std::string& name) {
    std::vector<std::string> known;
    if (name.starts_with("--")) {
      if (own_.find(name.substr(2)) != nullptr) return;
      for (const Term& each : own_.terms) known.push_back("--" + each.argument);
    } else {
      // A condition knows those above it alone, so none goes round in a circle.
      const auto last = std::find_if(own_.conditions.begin(), own_.conditions.end(),
                                     [&](const auto& each) { return "conditions." + each.first == path; });
      const auto is_own = [&](const auto& each) { return each.first == name; };
      if (key_of(scenario_keys(), name) != nullptr || is_launch_value(name) ||
          std::any_of(own_.conditions.begin(), last, is_own))
        return;
      for (const Key& each : scenario_keys()) known.emplace_back(each.path);
    }
    refuse(origin, path,
           "'" + name + "' is no argument, scenario key, condition or value of a launch" + suggestion(name, known),
           "correct it");
  }

  std::string composer(const Value& value, const std::string& path, bool of_launch) {
    if (of_launch ? launch_composer(value.text) == nullptr : import_composer(value.text) == nullptr)
      refuse(value.origin, path, "there is no function '" + value.text + "'; allowed: " + composer_names(of_launch),
             "name one of them");
    return value.text;
  }

  Term term(const Entry& entry) {
    const std::string path = "arguments." + entry.key;
    Term term;
    term.argument = entry.key;
    term.origin = entry.origin;
    int effects = 0;
    if (entry.value.kind != Value::Kind::map) refuse(entry.origin, path, "is no map", "write {key: ...} or an effect");
    for (const Entry& field : entry.value.entries) {
      const std::string own = path + "." + field.key;
      const Value& value = field.value;
      if (const auto effect = value_in(effect_names, field.key)) {
        ++effects;
        term.effect = *effect;
        (*effect == Effect::key || *effect == Effect::part ? term.key : term.words) = value.text;
      } else if (field.key == "otherwise") {
        term.otherwise = value.text;
      } else if (field.key == "values") {
        term.values = table(value);
      } else if (field.key == "negated" || field.key == "joined") {
        (field.key == "negated" ? term.negated : term.joined) = value.text == "true";
      } else if (field.key == "factor") {
        const std::optional<double> factor = quantity(value.text, Unit::pure);
        if (!factor || *factor == 0) refuse(field.origin, own, "is no number other than 0", "correct it");
        term.factor = factor.value_or(1);
      } else if (field.key == "harmless") {
        term.harmless = words(value);
      } else if (field.key == "default") {
        term.fallback = value.text;
      } else if (field.key == "since" || field.key == "until") {
        (field.key == "since" ? term.since : term.until) = version(value, own);
      } else if (field.key == "launch") {
        launch_of(term, value, own);
      } else if (field.key != "source") {
        refuse(field.origin, own,
               "unknown field; allowed: key, part, none, near, not modelled, otherwise, values, negated, factor, "
               "harmless, default, since, until, launch, joined, source",
               "remove it");
      }
    }
    if (effects != 1)
      refuse(entry.origin, path,
             fmt::format("it has {} effects; allowed: one of key, part, none, near, not modelled", effects),
             "say what it does");
    // A key of effect `key` may be one that the language does not have yet: its argument is then refused.
    return term;
  }

  void launch_of(Term& term, const Value& value, const std::string& path) {
    if (value.text == "never") {
      term.never_launched = true;
      return;
    }
    const auto rule = [&](const Value& map) {
      LaunchRule rule;
      bool says = false;
      for (const Entry& field : map.entries) {
        const std::string own = path + "." + field.key;
        if (field.key == "when")
          rule.when = condition(field.value, own);
        else if (field.key == "value")
          rule.value = text(field.value, own);
        else if (field.key == "word")
          rule.word = field.value.text;
        else if (field.key == "compose")
          rule.compose = composer(field.value, own, true);
        else if (field.key != "flag")
          refuse(field.origin, own, "unknown field; allowed: when, value, flag, word, compose", "remove it");
        says = says || field.key != "when";
      }
      if (!says)
        refuse(map.origin, path, "says no value; allowed: value, flag: true, word or compose", "add one of them");
      term.launch.push_back(std::move(rule));
    };
    if (is_list(value))
      for (const Value& item : value.items) rule(item);
    else if (value.kind == Value::Kind::map)
      rule(value);
    else
      term.launch.push_back({{}, text(value, path), {}, {}});
  }

  void import_step(const Value& item) {
    const std::map<std::string, StepKind, std::less<>> actions{
        {"set", StepKind::set},         {"no effect", StepKind::no_effect},
        {"nearest", StepKind::nearest}, {"contradiction", StepKind::contradiction},
        {"refuse", StepKind::refusal},  {"not modelled", StepKind::not_modelled},
        {"compose", StepKind::compose}};
    ImportStep step;
    int said = 0;
    for (const Entry& field : item.entries) {
      const std::string path = "import." + field.key;
      const Value& value = field.value;
      if (field.key == "when") {
        step.when = condition(value, path);
      } else if (field.key == "by" || field.key == "remedy") {
        (field.key == "by" ? step.by : step.remedy) = value.text;
      } else if (field.key == "words" || field.key == "otherwise") {
        step.words = text(value, path);
      } else if (const auto action = actions.find(field.key); action != actions.end()) {
        ++said;
        step.kind = action->second;
        if (step.kind == StepKind::set) {
          for (const Entry& key : value.entries) {
            if (key_of(scenario_keys(), key.key) == nullptr)
              refuse(key.origin, path, "'" + key.key + "' is no scenario key (slipway list keys)", "correct it");
            step.keys.emplace_back(key.key, text(key.value, path));
          }
        } else if (step.kind == StepKind::compose) {
          step.by = composer(value, path, false);
        } else {
          step.arguments = words(value);
        }
      } else {
        refuse(field.origin, path,
               "unknown field; allowed: when, set, by, no effect, nearest, contradiction, refuse, not modelled, words, "
               "otherwise, remedy, compose",
               "remove it");
      }
    }
    if (said != 1) refuse(item.origin, "import", fmt::format("a step does {} things; allowed: one", said), "split it");
    own_.import.push_back(std::move(step));
  }

  void launch_step(const Value& item) {
    const std::map<std::string, AnswerKind, std::less<>> answers{
        {"refused", AnswerKind::refused},      {"refused anyway", AnswerKind::refused_anyway},
        {"missing", AnswerKind::missing},      {"to add", AnswerKind::to_add},
        {"compose", AnswerKind::compose},      {"environment", AnswerKind::environment},
        {"impossible", AnswerKind::impossible}};
    LaunchStep step;
    int said = 0;
    for (const Entry& field : item.entries) {
      const std::string path = "launch." + field.key;
      if (field.key == "when") {
        step.when = condition(field.value, path);
      } else if (const auto answer = answers.find(field.key); answer != answers.end()) {
        ++said;
        step.kind = answer->second;
        step.words = step.kind == AnswerKind::compose ? composer(field.value, path, true) : text(field.value, path);
      } else {
        refuse(
            field.origin, path,
            "unknown field; allowed: when, refused, refused anyway, missing, to add, environment, impossible, compose",
            "remove it");
      }
    }
    if (said != 1) refuse(item.origin, "launch", fmt::format("a step says {} things; allowed: one", said), "split it");
    own_.launch.push_back(std::move(step));
  }

  void recipe(const Entry& entry) {
    const std::string path = "recipes." + entry.key;
    Recipe recipe;
    recipe.name = entry.key;
    for (const Entry& field : entry.value.entries) {
      if (field.key == "source")
        recipe.source = field.value.text;
      else if (field.key == "since" || field.key == "until")
        (field.key == "since" ? recipe.since : recipe.until) = version(field.value, path + "." + field.key);
      else if (field.key == "arguments")
        for (const Entry& argument : field.value.entries) {
          names_.push_back({argument.origin, path, "--" + argument.key});
          recipe.arguments.emplace_back(
              argument.key, argument.value.text == "true" ? std::vector<std::string>{} : words(argument.value));
        }
      else
        refuse(field.origin, path + "." + field.key, "unknown field; allowed: source, since, until, arguments",
               "remove it");
    }
    if (recipe.source.empty())
      refuse(entry.origin, path, "has no source; allowed: {source: ..., arguments: {...}}", "say where it comes from");
    own_.recipes.push_back(std::move(recipe));
  }

  struct Name {
    Origin origin;
    std::string path, text;
  };

  Defects& defects_;
  const std::function<const Dictionary*(std::string_view)>& base_;
  Dictionary own_;
  std::vector<Name> names_;  // that conditions and texts use
};

}  // namespace

bool holds(const Condition& condition, const ValueOf& value_of) {
  const auto is_met = [&](const Clause& clause) {
    const std::optional<std::string> value = value_of(clause.name);
    return std::any_of(clause.wanted.begin(), clause.wanted.end(),
                       [&](const std::string& wanted) { return is_wanted(value, wanted); });
  };
  return condition.ways.empty() ||
         std::any_of(condition.ways.begin(), condition.ways.end(),
                     [&](const std::vector<Clause>& way) { return std::all_of(way.begin(), way.end(), is_met); });
}

std::optional<std::string> filled_in(const std::string& text, const ValueOf& value_of) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = std::min(text.find('{', at), text.size());
    out += text.substr(at, open - at);
    if (open == text.size()) break;
    const std::size_t close = std::min(text.find('}', open), text.size() - 1);
    const std::string inside = text.substr(open + 1, close - open - 1);
    const std::size_t bar = inside.find('|');
    std::optional<std::string> value = value_of(inside.substr(0, bar));
    if (!value && bar != std::string::npos) value = inside.substr(bar + 1);
    if (!value) return std::nullopt;
    out += *value;
    at = close + 1;
  }
  return out;
}

const Term* Dictionary::find(std::string_view argument) const {
  const auto found = std::find_if(terms.begin(), terms.end(), [&](const Term& t) { return t.argument == argument; });
  return found == terms.end() ? nullptr : &*found;
}

const Recipe* Dictionary::recipe(std::string_view wanted) const {
  const auto found = std::find_if(recipes.begin(), recipes.end(), [&](const Recipe& r) { return r.name == wanted; });
  return found == recipes.end() ? nullptr : &*found;
}

const WordTable& Dictionary::table(std::string_view wanted) const {
  static const WordTable none;
  const auto found = tables.find(wanted);
  return found == tables.end() ? none : found->second;
}

std::optional<std::string> Dictionary::word(std::string_view wanted, std::string_view of) const {
  for (const auto& [word, meaning] : table(wanted))
    if (word == of) return meaning;
  return std::nullopt;
}

bool is_in(const Dictionary& dictionary, std::string_view version, std::string_view since, std::string_view until) {
  const auto place = [&](std::string_view name, std::ptrdiff_t otherwise) {
    const auto found = std::find(dictionary.versions.begin(), dictionary.versions.end(), name);
    return found == dictionary.versions.end() ? otherwise : found - dictionary.versions.begin();
  };
  const std::ptrdiff_t last = std::max<std::ptrdiff_t>(0, std::ssize(dictionary.versions) - 1),
                       at = place(version, last);
  return place(since, 0) <= at && at <= place(until, last);
}

std::string lacks(const Dictionary& dictionary, const Term& term, std::string_view version) {
  if (is_in(dictionary, version, term.since, term.until)) return "";
  if (term.until.empty()) return fmt::format("it is an argument of {} and later", term.since);
  if (term.since.empty()) return fmt::format("it is an argument of {} and before", term.until);
  return fmt::format("it is an argument of {} to {}", term.since, term.until);
}

std::optional<Dictionary> dictionary_from_yaml(const std::string& text, const std::string& file,
                                               const std::string& name, Defects& defects,
                                               const std::function<const Dictionary*(std::string_view name)>& base) {
  const std::optional<Value> root = parse_document(text, file, defects);
  if (!root) return std::nullopt;
  return DictionaryReader(defects, base).read(*root, name);
}

const Dictionary* built_in_dictionary(std::string_view name) {
  static std::recursive_mutex guard;  // a dictionary asks for the one that it extends
  static std::map<std::string, Dictionary, std::less<>> read;
  const std::lock_guard lock(guard);
  if (const auto found = read.find(name); found != read.end()) return &found->second;
  for (const EmbeddedFile& file : embedded_dictionaries()) {
    if (file.name != name) continue;
    Defects defects;
    auto dictionary = dictionary_from_yaml(std::string(file.text), std::string(file.path), std::string(name), defects,
                                           built_in_dictionary);
    if (!dictionary) throw std::logic_error("built-in dictionary " + std::string(name) + ": " + describe(defects));
    return &read.emplace(std::string(name), std::move(*dictionary)).first->second;
  }
  return nullptr;
}

std::vector<std::string> dictionary_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_dictionaries()) names.emplace_back(file.name);
  return names;
}

}  // namespace slipway::scenarios
