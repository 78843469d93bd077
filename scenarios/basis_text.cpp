// The words of a basis: for one scenario, and for many points of a study; and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/basis.h"

namespace slipway {
namespace {

std::string described(const std::vector<OutsideFit>& outside) {
  std::string text;
  for (const OutsideFit& each : outside) text += (text.empty() ? "" : ", ") + describe(each);
  return text;
}

std::string book_text(const Basis& basis) {
  const std::string names = fmt::format("{}", fmt::join(basis.fitted_here, ", "));
  return "No trainer's pace: book values of the hardware, " + book_error_text() +
         (names.empty() ? ". No trainer was fitted on this machine.\n"
                        : ".\nTrainers fitted on this machine, for cluster.stack: " + names + ".\n");
}

std::string not_priced_text(const std::string& trainer, const std::string& features) {
  return "The formula of " + trainer + " does not price: " + features + "; such times are guesses.\n";
}

// "tokens of a slice 32 (fitted: 2048 to 32768)"
std::string slices_text(const std::string& described) {
  return "Shorter than what any published run computed at once, so extrapolated: " + described + ".\n";
}

std::string blocks_text(const std::string& table) {
  return "Blocks take the times of a table, on whatever machine: " + table + ".\n";
}
std::string own_profile_text(const std::string& origin) { return "Machine profile " + origin + ".\n"; }

std::string times_text(const Basis& basis) {
  std::string text = basis.blocks.empty() ? "" : blocks_text(basis.blocks);
  for (const std::string& origin : basis.own_profiles) text += own_profile_text(origin);
  if (basis.slices) text += slices_text(describe(*basis.slices));
  if (basis.book_values) return book_text(basis) + text;
  if (!basis.not_priced.empty())
    text += not_priced_text(basis.trainer, fmt::format("{}", fmt::join(basis.not_priced, ", ")));
  if (!basis.outside.empty())
    text += "Outside the runs that " + basis.trainer + " was fitted to: " + described(basis.outside) + ".\n";
  return text;
}

std::string memory_text(const Basis& basis, const std::vector<OutsideFit>& outside) {
  if (outside.empty()) return "";
  return "Outside the runs that the memory of " + basis.memory_trainer + " was fitted to: " + described(outside) + ".\n";
}

// What memory was fitted to mostly is what times were fitted to.
std::string more_memory_text(const Basis& basis) {
  std::vector<OutsideFit> more = basis.memory_outside;
  std::erase_if(more, [&](const OutsideFit& each) {
    return std::any_of(basis.outside.begin(), basis.outside.end(), [&](const OutsideFit& told) { return told.what == each.what; });
  });
  return memory_text(basis, more);
}

std::string paragraph(const std::string& text) { return text.empty() ? "" : text + "\n"; }

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

std::string memory_basis_text(const Basis& basis) { return paragraph(memory_text(basis, basis.memory_outside)); }

std::string basis_text(const Basis& basis) { return paragraph(times_text(basis) + more_memory_text(basis)); }

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
  std::string text;
  for (const auto& [what, count] : book.entries)
    text += (static_cast<std::size_t>(count) < points.size() ? fmt::format("{} of {} {}s: ", count, points.size(), noun) : "") + what;
  if (!blocks.entries.empty()) text += blocks_text(counted_text(blocks, points.size(), noun));
  for (const auto& [origin, count] : own_profiles.entries) text += own_profile_text(origin);
  if (!slices.entries.empty()) text += slices_text(counted_text(slices, points.size(), noun));
  for (const auto& [trainer, tally] : not_priced) text += not_priced_text(trainer, counted_text(tally, points.size(), noun));
  for (const auto& [trainer, tally] : outside)
    text += "Outside the runs that " + trainer + " was fitted to: " + counted_text(tally, points.size(), noun) + ".\n";
  for (auto& [trainer, tally] : memory) {
    std::erase_if(tally.entries, [&](const auto& entry) {
      const auto& told = outside[trainer].entries;
      return std::find(told.begin(), told.end(), entry) != told.end();
    });
    if (!tally.entries.empty())
      text += "Outside the runs that the memory of " + trainer + " was fitted to: " + counted_text(tally, points.size(), noun) + ".\n";
  }
  return paragraph(text);
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
