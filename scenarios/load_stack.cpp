#include "scenarios/load_stack.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>

#include "scenarios/embedded_files.h"

namespace slipway {
namespace {

class StackReader {
 public:
  explicit StackReader(Defects& defects) : defects_(defects) {}

  std::optional<Stack> read(const Value& root, const std::string& trainer) {
    const std::size_t before = defects_.size();
    Stack stack{trainer, time_model_of(trainer), {}};
    const Value* times = root.find("time");
    if (times == nullptr || times->kind != Value::Kind::map) {
      refuse(root.origin, "time", "is no map of machines", "name a machine and its constants below it");
      return std::nullopt;
    }
    if (stack.model == nullptr) {
      refuse(root.origin, "time", "there is no formula of step time for trainer " + trainer,
             "name the file after a trainer that has one");
      return std::nullopt;
    }
    for (const Entry& entry : times->entries) stack.times.push_back(time_of(entry, *stack.model));
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

  TimeConstant constant_of(const Entry& entry, const std::string& path) {
    TimeConstant constant;
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

  StackTime time_of(const Entry& machine, const TimeModel& model) {
    StackTime time;
    time.machine = machine.key;
    time.scale = number(machine.value, "scale", "time." + machine.key, time.scale);
    for (const TimeParameter& parameter : model.parameters) {
      const std::string path = "time." + machine.key + "." + std::string(parameter.name);
      const auto entry = std::find_if(machine.value.entries.begin(), machine.value.entries.end(),
                                      [&](const Entry& e) { return e.key == parameter.name; });
      if (entry == machine.value.entries.end())
        refuse(machine.origin, path, "is missing", "add it: " + std::string(parameter.meaning));
      else
        time.constants.push_back(constant_of(*entry, path));
    }
    for (const Entry& entry : machine.value.entries) {
      const auto known = [&](const TimeParameter& parameter) { return parameter.name == entry.key; };
      if (entry.key != "scale" && std::none_of(model.parameters.begin(), model.parameters.end(), known))
        refuse(entry.origin, "time." + machine.key + "." + entry.key, "is no constant of this trainer's formula",
               "remove it");
    }
    return time;
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

const Stack* built_in_stack(std::string_view trainer) {
  static const std::map<std::string, Stack, std::less<>> stacks = read_built_in();
  const auto found = stacks.find(trainer);
  return found == stacks.end() ? nullptr : &found->second;
}

}  // namespace slipway
