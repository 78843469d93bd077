// The words of a basis: for many points of a study, of which one scenario is one; and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/basis.h"

namespace slipway {
namespace {

std::string book_text(const Basis& basis) {
  const std::string names = fmt::format("{}", fmt::join(basis.fitted_here, ", "));
  return "No trainer's pace: book values of the hardware, " + book_error_text() +
         (names.empty() ? ". No trainer was fitted on this machine.\n"
                        : ".\nTrainers fitted on this machine, for cluster.stack: " + names + ".\n");
}

// In the order in which they come up first, with how often they do.
struct Tally {
  std::vector<std::pair<std::string, int>> entries;
  void add(const std::string& text) {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == text; });
    found == entries.end() ? void(entries.emplace_back(text, 1)) : void(++found->second);
  }
};

// "tensor 16 (fitted: 1 to 8) in 2 of 6 points, micro-batch 8 (fitted: 1 to 4)"
std::string counted_text(const Tally& tally, std::size_t points, const char* noun) {
  std::string text;
  for (const auto& [what, count] : tally.entries) {
    text += (text.empty() ? "" : ", ") + what;
    if (static_cast<std::size_t>(count) < points) text += fmt::format(" in {} of {} {}s", count, points, noun);
  }
  return text;
}

}  // namespace

std::string book_error_text() {
  return fmt::format("on average {} to {} % off published runs, mostly too fast", book_error.least_percent, book_error.most_percent);
}

std::string without_empty_line(const std::string& paragraph) {
  return paragraph.empty() ? "" : paragraph.substr(0, paragraph.size() - 1);
}

std::string empty_line_first(const std::string& paragraph) {
  return paragraph.empty() ? "" : "\n" + without_empty_line(paragraph);
}

std::string memory_basis_text(const Basis& basis) {
  Basis memory;
  memory.memory_trainer = basis.memory_trainer;
  memory.memory_outside = basis.memory_outside;
  return basis_text({memory}, "");
}

// What memory was fitted to mostly is what times were fitted to.
std::string basis_text(const Basis& basis) {
  Basis once = basis;
  std::erase_if(once.memory_outside, [&](const OutsideFit& each) {
    return std::any_of(basis.outside.begin(), basis.outside.end(), [&](const OutsideFit& told) { return told.what == each.what; });
  });
  return basis_text({once}, "");
}

std::string basis_text(const std::vector<Basis>& points, const char* noun) {
  Tally book, blocks, own_profiles, slices;
  std::map<std::string, Tally> not_priced, outside, memory;
  for (const Basis& point : points) {
    if (point.book_values) book.add(book_text(point));
    if (!point.blocks.empty()) blocks.add(point.blocks);
    for (const std::string& origin : point.own_profiles) own_profiles.add(origin);
    if (point.slices) slices.add(describe(*point.slices));
    for (const std::string& feature : point.not_priced) not_priced[point.trainer].add(feature);
    for (const OutsideFit& each : point.outside) outside[point.trainer].add(describe(each));
    for (const OutsideFit& each : point.memory_outside) memory[point.memory_trainer].add(describe(each));
  }
  const auto counted = [&](const Tally& tally) { return counted_text(tally, points.size(), noun); };
  std::string text;
  for (const auto& [what, count] : book.entries)
    text += (static_cast<std::size_t>(count) < points.size() ? fmt::format("{} of {} {}s: ", count, points.size(), noun) : "") + what;
  if (!blocks.entries.empty()) text += "Blocks take the times of a table, on whatever machine: " + counted(blocks) + ".\n";
  for (const auto& [origin, count] : own_profiles.entries) text += "Machine profile " + origin + ".\n";
  if (!slices.entries.empty())
    text += "Shorter than what any published run computed at once, so extrapolated: " + counted(slices) + ".\n";
  for (const auto& [trainer, tally] : not_priced)
    text += "The formula of " + trainer + " does not price: " + counted(tally) + "; such times are guesses.\n";
  for (const auto& [trainer, tally] : outside)
    text += "Outside the runs that " + trainer + " was fitted to: " + counted(tally) + ".\n";
  for (auto& [trainer, tally] : memory) {
    std::erase_if(tally.entries, [&](const auto& entry) {
      const auto& told = outside[trainer].entries;
      return std::find(told.begin(), told.end(), entry) != told.end();
    });
    if (!tally.entries.empty())
      text += "Outside the runs that the memory of " + trainer + " was fitted to: " + counted(tally) + ".\n";
  }
  return text.empty() ? "" : text + "\n";
}

namespace {

nlohmann::json outside_json(const std::vector<OutsideFit>& outside) {
  nlohmann::json list = nlohmann::json::array();
  for (const OutsideFit& each : outside) {
    if (each.chosen.empty())
      list.push_back({{"what", each.what}, {"here", each.here}, {"least", each.least}, {"most", each.most}});
    else
      list.push_back({{"what", each.what}, {"here", each.chosen}, {"fitted", each.fitted}});
  }
  return list;
}

}  // namespace

nlohmann::json basis_json(const Basis& basis) {
  nlohmann::json json;
  json["basis"] = !basis.trainer.empty() ? basis.trainer : std::string(basis.book_values ? "book" : "profile");
  if (basis.book_values) {
    json["book_error"] = {book_error.least_percent / 100.0, book_error.most_percent / 100.0};
    json["fitted_stacks"] = basis.fitted_here;
  }
  json["own_sources"] = basis.own_profiles;
  if (!basis.blocks.empty()) json["own_sources"].push_back(basis.blocks);
  if (!basis.memory_trainer.empty()) json["memory_outside_fit"] = outside_json(basis.memory_outside);
  if (!basis.trainer.empty()) json["not_priced"] = basis.not_priced;
  std::vector<OutsideFit> outside = basis.outside;
  if (basis.slices) outside.push_back(*basis.slices);
  if (!basis.trainer.empty() || basis.slices) json["outside_fit"] = outside_json(outside);
  return json;
}

void set_basis_keys(JsonSummary& json, const Basis& basis) {
  const nlohmann::json keys = basis_json(basis);
  for (const auto& [key, value] : keys.items()) json.set(key, value);
}

}  // namespace slipway
