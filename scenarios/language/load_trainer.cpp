#include "scenarios/language/load_trainer.h"

#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"

namespace slipway::scenarios {
namespace {

// Sets the fact and returns "", or returns what is allowed.
using SetFact = std::string (*)(const std::string& text, TrainerFacts& facts);

template <bool TrainerFacts::*member>
std::string set_flag(const std::string& text, TrainerFacts& facts) {
  if (text != "true" && text != "false") return "true, false";
  facts.*member = text == "true";
  return "";
}

template <FlashKernel TrainerFacts::*member>
std::string set_kernel(const std::string& text, TrainerFacts& facts) {
  const auto kernel = value_in(flash_names, text);
  if (!kernel) return all_names(flash_names);
  facts.*member = *kernel;
  return "";
}

template <double TrainerFacts::*member>
std::string set_number(const std::string& text, TrainerFacts& facts) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || !(value >= 0)) return "a number from 0";
  facts.*member = value;
  return "";
}

const std::map<std::string, SetFact, std::less<>> known_facts = {
    {"ampere", set_kernel<&TrainerFacts::ampere>},
    {"hopper", set_kernel<&TrainerFacts::hopper>},
    {"eager", set_flag<&TrainerFacts::eager>},
    {"accumulate_bytes", set_number<&TrainerFacts::accumulate_bytes>},
    {"fused_softmax", set_flag<&TrainerFacts::fused_softmax>},
    {"dropout", set_flag<&TrainerFacts::dropout>},
    {"cuda_graphs", set_flag<&TrainerFacts::cuda_graphs>},
    {"all_reduces_gradients", set_flag<&TrainerFacts::all_reduces_gradients>},
    {"reduces_each_tensor", set_flag<&TrainerFacts::reduces_each_tensor>},
    {"reduces_in_float32", set_flag<&TrainerFacts::reduces_in_float32>},
    {"overlaps_reduction", set_flag<&TrainerFacts::overlaps_reduction>},
    {"overlaps_gather", set_flag<&TrainerFacts::overlaps_gather>},
    {"blocking_transfers", set_flag<&TrainerFacts::blocking_transfers>},
    {"cuts_transfers", set_flag<&TrainerFacts::cuts_transfers>},
    {"host_driven_collectives", set_flag<&TrainerFacts::host_driven_collectives>},
    {"ring_attention", set_flag<&TrainerFacts::ring_attention>},
    {"balances_layers", set_flag<&TrainerFacts::balances_layers>},
};

std::string all_facts() {
  std::string text;
  for (const auto& [name, set] : known_facts) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void read_fact(const Entry& entry, TrainerFacts& facts, Defects& defects) {
  const auto refuse = [&](const std::string& problem, const std::string& remedy) {
    defects.push_back({entry.origin.file, entry.origin.line, "facts." + entry.key, problem, remedy});
  };
  const auto found = known_facts.find(entry.key);
  if (found == known_facts.end()) return refuse("is no fact; allowed: " + all_facts(), "remove it");
  const Value* value = entry.value.find("value");
  const Value* source = entry.value.find("source");
  if (value == nullptr || source == nullptr || source->text.empty())
    return refuse("has no value with a source; allowed: {value: ..., source: ...}", "say where the fact comes from");
  if (const std::string allowed = found->second(value->text, facts); !allowed.empty())
    refuse(in_words(*value) + " is not possible; allowed: " + allowed, "choose one");
}

}  // namespace

std::optional<TrainerFacts> trainer_from_yaml(const std::string& text, const std::string& file, const std::string& name,
                                              Defects& defects) {
  const std::size_t before = defects.size();
  const std::optional<Value> root = parse_document(text, file, defects);
  if (!root) return std::nullopt;
  TrainerFacts facts;
  facts.name = name;
  if (const Value* section = root->find("facts"))
    for (const Entry& entry : section->entries) read_fact(entry, facts, defects);
  if (defects.size() != before) return std::nullopt;
  return facts;
}

const TrainerFacts* built_in_trainer(std::string_view name) {
  static const auto trainers = [] {
    std::map<std::string, TrainerFacts, std::less<>> all;
    for (const EmbeddedFile& file : embedded_stacks()) {
      Defects defects;
      const std::string own(file.name);
      auto facts = trainer_from_yaml(std::string(file.text), std::string(file.path), own, defects);
      if (!facts)
        throw std::logic_error("built-in trainer " + own + ": " + defects.at(0).key + " " + defects.at(0).message);
      all.emplace(own, std::move(*facts));
    }
    return all;
  }();
  const auto found = trainers.find(name);
  return found == trainers.end() ? nullptr : &found->second;
}

}  // namespace slipway::scenarios
