#include "scenarios/predict/description.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace slipway::scenarios {

void put_json(nlohmann::json& into, bool value) { into = value; }
void put_json(nlohmann::json& into, double value) { into = value; }
void put_json(nlohmann::json& into, std::int64_t value) { into = value; }
void put_json(nlohmann::json& into, std::uint64_t value) { into = value; }
void put_json(nlohmann::json& into, std::string_view value) { into = value; }
void put_json(nlohmann::json& into, const nlohmann::json& value) { into = value; }
void put_null(nlohmann::json& into) { into = nullptr; }
void begin_list(nlohmann::json& into) { into = nlohmann::json::array(); }
void begin_map(nlohmann::json& into) { into = nlohmann::json::object(); }
nlohmann::json& next_item(nlohmann::json& list) { return list.emplace_back(); }
nlohmann::json& item_named(nlohmann::json& map, const std::string& name) { return map[name]; }

std::string UntypedDescription::text(const void* answer) const {
  nlohmann::ordered_json ordered = nlohmann::ordered_json::object();
  for (const Field& field : fields_)
    if (nlohmann::json value; field.value(answer, value)) ordered[field.key.name] = std::move(value);
  return ordered.dump(2) + '\n';
}

void UntypedDescription::put_object(const void* answer, nlohmann::json& into) const {
  into = nlohmann::json::object();
  for (const Field& field : fields_)
    if (nlohmann::json value; field.value(answer, value)) into[field.key.name] = std::move(value);
}

std::vector<AnswerKey> UntypedDescription::keys(const std::string& prefix) const {
  std::vector<AnswerKey> all;
  const auto add = [&](AnswerKey key) {
    key.name.insert(0, prefix);
    all.push_back(std::move(key));
  };
  for (const Field& field : fields_) {
    if (field.key.name.empty()) continue;  // only_column
    add(field.key);
    for (const AnswerKey& nested : field.nested) add(nested);
  }
  return all;
}

std::vector<std::string> UntypedDescription::headings() const {
  std::vector<std::string> all;
  for (const Field& field : fields_)
    if (field.column.cell) all.push_back(field.column.heading);
  return all;
}

std::vector<std::string> UntypedDescription::cells(const void* answer) const {
  std::vector<std::string> all;
  for (const Field& field : fields_) {
    if (!field.column.cell) continue;
    nlohmann::json value;
    field.value(answer, value);
    all.push_back(field.column.cell(answer, value));
  }
  return all;
}

std::vector<std::vector<std::string>> UntypedDescription::table(const std::vector<const void*>& answers,
                                                                const std::vector<std::string>& asked) const {
  std::vector<std::vector<std::string>> rows{headings()};
  for (const void* answer : answers) rows.push_back(cells(answer));
  const std::vector<bool> kept = kept_columns(rows, asked);
  for (std::vector<std::string>& row : rows) {
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < row.size(); ++i)
      if (kept[i]) shown.push_back(std::move(row[i]));
    row = std::move(shown);
  }
  return rows;
}

// `rows`: with the headings first.
std::vector<bool> UntypedDescription::kept_columns(const std::vector<std::vector<std::string>>& rows,
                                                   const std::vector<std::string>& asked) const {
  std::vector<bool> kept, may_be;
  for (const Field& field : fields_) {
    if (!field.column.cell) continue;
    const bool is_asked = std::ranges::find(asked, field.key.name) != asked.end();
    may_be.push_back(asked.empty() && field.column.is_shown_unasked);
    kept.push_back(is_asked || (may_be.back() && field.column.is_always_shown));
  }
  for (std::size_t row = 1; row < rows.size(); ++row)
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (may_be[i] && !rows[row][i].empty() && rows[row][i] != "-") kept[i] = true;
  return kept;
}

void UntypedDescription::set_number_column(std::string heading, std::function<std::string(double)> format) {
  last().column = {std::move(heading), [format = std::move(format)](const void*, const nlohmann::json& value) {
                     if (value.is_boolean()) return format(value.get<bool>() ? 1 : 0);
                     return format(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
                   }};
}

void UntypedDescription::set_text_column(std::string heading) {
  last().column = {std::move(heading), [](const void*, const nlohmann::json& value) {
                     return value.is_string() ? value.get<std::string>() : value.dump();
                   }};
}

void UntypedDescription::set_null_where_absent() {
  last().key.optional = false;
  last().value = [value = std::move(last().value)](const void* answer, nlohmann::json& into) {
    if (!value(answer, into)) put_null(into);
    return true;
  };
}

}  // namespace slipway::scenarios
