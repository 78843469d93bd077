#include "scenarios/language/load_stack.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"

namespace slipway::scenarios {
namespace {

class StackReader {
 public:
  explicit StackReader(Defects& defects) : defects_(defects) {}

  std::optional<Stack> read(const Value& root, const std::string& trainer) {
    const std::size_t before = defects_.size();
    Stack stack{trainer, time_model_of(trainer), {}, {}};
    for (const Entry& section : root.entries) {
      if (section.key == "facts")
        continue;  // load_trainer.h
      else if (section.key != "time" && section.key != "memory")
        refuse(section.origin, section.key, "unknown key; allowed: time, memory", "remove it");
      else if (section.value.kind != Value::Kind::map)
        refuse(section.origin, section.key, "is no map", "name machines below time, and facts below memory");
      else if (section.key == "time")
        read_times(section, stack);
      else
        for (const Entry& fact : section.value.entries) read_fact(fact, stack.memory);
    }
    if (root.entries.empty())
      refuse(root.origin, "memory", "there is neither memory nor time", "name a machine's constants, or facts");
    if (defects_.size() != before) return std::nullopt;
    return stack;
  }

 private:
  void refuse(const Origin& origin, const std::string& key, const std::string& problem, const std::string& remedy) {
    defects_.push_back({origin.file, origin.line, key, problem, remedy});
  }

  double number(const Value& map, const char* key, const std::string& path, double otherwise) {
    const Value* value = map.find(key);
    if (value == nullptr) return otherwise;
    double result = 0;
    const char* end = value->text.data() + value->text.size();
    const auto [stop, error] = std::from_chars(value->text.data(), end, result);
    if (error != std::errc() || stop != end || !(result >= 0))
      refuse(value->origin, path + "." + key, in_words(*value) + " is no number from 0", "write a number");
    return result;
  }

  StackConstant constant_of(const Entry& entry, const std::string& path) {
    StackConstant constant;
    constant.value = number(entry.value, "value", path, 0);
    constant.prior = number(entry.value, "prior", path, constant.value);
    constant.spread = number(entry.value, "spread", path, 0);
    const Value* source = entry.value.find("source");
    if (source != nullptr) constant.source = source->text;
    if (!(constant.value > 0) || !(constant.prior > 0))
      refuse(entry.origin, path, "has no value and prior above 0", "write {value: ..., prior: ..., source: ...}");
    if (constant.source.empty()) refuse(entry.origin, path, "has no source", "say where the number comes from");
    return constant;
  }

  // The entries of one machine: each parameter once; nothing beside parameters and `settings`.
  template <typename Parameter>
  std::vector<const Entry*> entries_of(const Entry& machine, const std::string& path,
                                       std::span<const Parameter> parameters,
                                       std::initializer_list<std::string_view> settings, const std::string& whose) {
    std::vector<const Entry*> found(parameters.size(), nullptr);
    for (const Entry& entry : machine.value.entries) {
      const auto at = std::ranges::find(parameters, std::string_view(entry.key), &Parameter::name);
      if (at != parameters.end())
        found[at - parameters.begin()] = &entry;
      else if (std::ranges::find(settings, std::string_view(entry.key)) == settings.end())
        refuse(entry.origin, path + "." + entry.key, "is no constant of " + whose, "remove it");
    }
    return found;
  }

  void read_times(const Entry& section, Stack& stack) {
    if (stack.model == nullptr)
      return refuse(section.origin, "time", "there is no formula of step time for trainer " + stack.trainer,
                    "name the file after a trainer that has one");
    for (const Entry& machine : section.value.entries) stack.times.push_back(time_of(machine, *stack.model));
  }

  StackTime time_of(const Entry& machine, const TimeModel& model) {
    StackTime time;
    time.machine = machine.key;
    const std::string path = "time." + machine.key;
    time.scale = number(machine.value, "scale", path, time.scale);
    const auto entries = entries_of(machine, path, model.parameters, {"scale"}, "this trainer's formula");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const TimeParameter& parameter = model.parameters[i];
      const std::string key = path + "." + std::string(parameter.name);
      if (entries[i] != nullptr)
        time.constants.push_back(constant_of(*entries[i], key));
      else
        refuse(machine.origin, key, "is missing", "add it: " + std::string(parameter.meaning));
    }
    return time;
  }

  // A word of `names`, or a refusal that lists them.
  template <typename Enum, std::size_t count>
  void read_word(const Entry& fact, const Value& value, const std::array<Named<Enum>, count>& names, Enum& to) {
    if (const auto known = value_in(names, value.text))
      to = *known;
    else
      refuse(value.origin, "memory." + fact.key, in_words(value) + " is unknown; allowed: " + all_names(names),
             "choose one of these");
  }

  void read_fact(const Entry& fact, MemoryFacts& facts) {
    const std::string path = "memory." + fact.key;
    const Value* value = fact.value.find("value");
    const Value* source = fact.value.find("source");
    if (value == nullptr || source == nullptr || source->text.empty())
      return refuse(fact.origin, path, "has no value or no source", "write {value: ..., source: ...}");
    facts.sources.push_back(fact.key + ": " + source->text);
    if (fact.key == "loss") return read_word(fact, *value, loss_memory_names, facts.loss);
    if (fact.key == "gathered_inputs") return read_word(fact, *value, gathered_inputs_names, facts.gathered);
    if (fact.key == "copies_gradient_shard") {
      if (value->text != "true" && value->text != "false")
        refuse(value->origin, path, in_words(*value) + " is neither true nor false", "choose one of these");
      facts.copies_gradient_shard = value->text == "true";
      return;
    }
    const auto known = std::ranges::find(memory_facts(), std::string_view(fact.key), &MemoryFact::name);
    if (known == memory_facts().end())
      return refuse(fact.origin, path, "is no fact about memory (slipway list stack-keys)", "remove it");
    facts.*known->number = number(fact.value, "value", path, 0);
  }

  Defects& defects_;
};

std::map<std::string, Stack, std::less<>> read_built_in() {
  std::map<std::string, Stack, std::less<>> stacks;
  for (const EmbeddedFile& file : embedded_stacks()) {
    Defects defects;
    std::optional<Stack> stack =
        stack_from_yaml(std::string(file.text), std::string(file.path), std::string(file.name), defects);
    if (!stack)
      throw std::logic_error("built-in stack " + std::string(file.path) + ": " + defects.at(0).key + " " +
                             defects.at(0).message);
    stacks.emplace(std::string(file.name), std::move(*stack));
  }
  return stacks;
}

}  // namespace

std::optional<Stack> stack_from_yaml(const std::string& text, const std::string& file, const std::string& trainer,
                                     Defects& defects) {
  const std::optional<Value> root = parse_document(text, file, defects);
  if (!root) return std::nullopt;
  return StackReader(defects).read(*root, trainer);
}

std::optional<Stack> load_stack(const std::string& name_or_path, const Reference& from, Defects& defects) {
  if (const auto built_in = embedded_named(embedded_stacks(), name_or_path, "stack", from, defects))
    return stack_from_yaml(std::string(built_in->text), std::string(built_in->path), std::string(built_in->name),
                           defects);
  if (!looks_like_path(name_or_path)) return std::nullopt;
  const std::string file = resolve_path(from.folder, name_or_path);
  const std::optional<Value> root = read_document(file, from.origin, from.key, defects);
  if (!root) return std::nullopt;
  return StackReader(defects).read(*root, std::filesystem::path(file).stem().string());
}

const Stack* built_in_stack(std::string_view trainer) {
  static const std::map<std::string, Stack, std::less<>> stacks = read_built_in();
  const auto found = stacks.find(trainer);
  return found == stacks.end() ? nullptr : &found->second;
}

}  // namespace slipway::scenarios
