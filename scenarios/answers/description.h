// The answer of a command, declared once: each figure with its key, its unit, its meaning and where it comes from.
//
//   Description<KindComparison> kind_keys() {
//     return Description<KindComparison>()
//         .key("kind", "text", "\"forward\", \"all-reduce\", ...", &KindComparison::kind)
//         .key("measured_s", "s", "sum of measured work time", &KindComparison::measured_s)
//         .column("measured", readable_seconds);
//   }
//   Description<Comparison>()
//       .key("step_error", "share", "predicted_step_s / measured_step_s - 1", &Comparison::step_error)
//       .list("kinds", "one object per kind of task", &Comparison::kinds, kind_keys());
//
//   description ─┬─► text(answer)   what --json prints: keys in the order of their declaration, those of nested objects by name
//                ├─► keys()         answer_keys.h: "step_error", "kinds", "kinds[].kind", ...
//                └─► table(items)   headings and a row per item, of the keys that have a column
//
// So a key that is printed is documented, and one that is documented is printed. Numbers round-trip exactly; those that
// JSON cannot hold (NaN, infinity) become null. Guarded by tests/scenarios/answers_test.cpp and the tests of each
// command.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "scenarios/answers/answer_keys.h"

namespace slipway::scenarios {

template <typename Value>
inline constexpr bool is_optional = false;
template <typename Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

// In every function `get` is a member, a member function or a lambda of the answer. Where it returns an empty
// std::optional, the key is absent.
template <typename Answer>
class Description {
 public:
  template <typename Get>
  Description& key(std::string name, std::string unit, std::string meaning, Get get) {
    return add({std::move(name), std::move(unit), std::move(meaning)}, get, {},
               [](const auto& value) { return nlohmann::json(value); });
  }

  // `get` returns an object that `keys` describes.
  template <typename Get, typename Part>
  Description& object(const std::string& name, std::string meaning, Get get, const Description<Part>& keys) {
    return add({name, "object", std::move(meaning)}, get, keys.keys(name + "."),
               [keys](const Part& part) { return keys.json(part); });
  }

  // `get` returns a range of such objects.
  template <typename Get, typename Part>
  Description& list(const std::string& name, std::string meaning, Get get, const Description<Part>& keys) {
    return add({name, "list", std::move(meaning)}, get, keys.keys(name + "[]."), [keys](const auto& parts) {
      nlohmann::json list = nlohmann::json::array();
      for (const Part& part : parts) list.push_back(keys.json(part));
      return list;
    });
  }

  // `get` returns a range of pairs: a name, which is the key, and such an object.
  template <typename Get, typename Part>
  Description& map(const std::string& name, std::string meaning, Get get, const Description<Part>& keys) {
    return add({name, "map", std::move(meaning)}, get, keys.keys(name + ".*."), [keys](const auto& parts) {
      nlohmann::json map = nlohmann::json::object();
      for (const auto& [part_name, part] : parts) map[part_name] = keys.json(part);
      return map;
    });
  }

  // All keys of a part of the answer, beside those of the answer itself.
  template <typename Get, typename Part>
  Description& include(const Description<Part>& part, Get get) {
    using Got = std::remove_cvref_t<std::invoke_result_t<const Get&, const Answer&>>;
    for (const typename Description<Part>::Field& field : part.fields()) {
      fields_.push_back({field.key,
                         field.nested,
                         [get, value = field.value](const Answer& answer, nlohmann::json& into) {
                           const auto& got = std::invoke(get, answer);
                           if constexpr (is_optional<Got>)
                             return got && value(*got, into);
                           else
                             return value(got, into);
                         },
                         {field.column.heading, {}, field.column.is_always_shown}});
      Field& last = fields_.back();
      last.key.optional |= is_optional<Got>;
      if (!field.column.cell) continue;
      last.column.cell = [get, cell = field.column.cell](const Answer& answer, const nlohmann::json& value) {
        const auto& got = std::invoke(get, answer);
        if constexpr (is_optional<Got>)
          return got ? cell(*got, value) : std::string();
        else
          return cell(got, value);
      };
    }
    return *this;
  }

  // `get` returns a range of parts: a list for each key of a part.
  template <typename Get, typename Part>
  Description& lists(Get get, const Description<Part>& part) {
    for (const typename Description<Part>::Field& field : part.fields()) {
      if (field.key.name.empty()) continue;  // only_column
      fields_.push_back({field.key,
                         {},
                         [get, value = field.value](const Answer& answer, nlohmann::json& into) {
                           into = nlohmann::json::array();
                           for (const Part& each : std::invoke(get, answer)) value(each, into.emplace_back());
                           return true;
                         },
                         {}});
    }
    return *this;
  }

  // The next functions are about the key declared last.

  // Absent unless `present`.
  Description& when(std::function<bool(const Answer&)> present) {
    Field& last = fields_.back();
    last.key.optional = true;
    last.value = [present = std::move(present), value = std::move(last.value)](
                     const Answer& answer, nlohmann::json& into) { return present(answer) && value(answer, into); };
    return *this;
  }

  // Where it would be absent, it is null.
  Description& else_null() {
    Field& last = fields_.back();
    last.key.optional = false;
    last.value = [value = std::move(last.value)](const Answer& answer, nlohmann::json& into) {
      if (!value(answer, into)) into = nullptr;
      return true;
    };
    return *this;
  }

  // keys() leaves out the nested ones: the meaning names the key or the command that lists the same.
  Description& listed_elsewhere() {
    fields_.back().nested.clear();
    return *this;
  }

  // It is a column of tables. For `format`, true is 1 and false 0; a text, and what is absent, is NaN.
  Description& column(std::string heading, std::function<std::string(double)> format) {
    fields_.back().column = {
        std::move(heading), [format = std::move(format)](const Answer&, const nlohmann::json& value) {
          if (value.is_boolean()) return format(value.get<bool>() ? 1 : 0);
          return format(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
        }};
    return *this;
  }
  // The same of a text, or of a number as it is.
  Description& column(std::string heading) {
    fields_.back().column = {std::move(heading), [](const Answer&, const nlohmann::json& value) {
                               return value.is_string() ? value.get<std::string>() : value.dump();
                             }};
    return *this;
  }
  // A column without a key of its own, behind the one declared last.
  Description& only_column(std::string heading, std::function<std::string(const Answer&)> cell) {
    fields_.push_back({{}, {}, [](const Answer&, nlohmann::json&) { return false; }, {}});
    return wide_column(std::move(heading), std::move(cell));
  }
  // A column that shows more than its key: `cell` of the whole item.
  Description& wide_column(std::string heading, std::function<std::string(const Answer&)> cell) {
    fields_.back().column = {std::move(heading), [cell = std::move(cell)](const Answer& answer, const nlohmann::json&) {
                               return cell(answer);
                             }};
    return *this;
  }

  // A table leaves its column out where each cell is "-" or empty.
  Description& if_any() {
    fields_.back().column.is_always_shown = false;
    return *this;
  }

  // One object, indented, ending in a new line.
  std::string text(const Answer& answer) const {
    nlohmann::ordered_json ordered = nlohmann::ordered_json::object();
    for (const Field& field : fields_)
      if (nlohmann::json value; field.value(answer, value)) ordered[field.key.name] = std::move(value);
    return ordered.dump(2) + '\n';
  }

  // The object of an answer inside another.
  nlohmann::json json(const Answer& answer) const {
    nlohmann::json sorted = nlohmann::json::object();
    for (const Field& field : fields_)
      if (nlohmann::json value; field.value(answer, value)) sorted[field.key.name] = std::move(value);
    return sorted;
  }

  std::vector<AnswerKey> keys(const std::string& prefix = "") const {
    std::vector<AnswerKey> all;
    const auto push = [&](AnswerKey key) {
      key.name.insert(0, prefix);
      all.push_back(std::move(key));
    };
    for (const Field& field : fields_) {
      if (field.key.name.empty()) continue;  // only_column
      push(field.key);
      for (const AnswerKey& nested : field.nested) push(nested);
    }
    return all;
  }

  // For aligned_table (readable.h).
  template <typename Items>
  std::vector<std::vector<std::string>> table(const Items& items) const {
    std::vector<std::vector<std::string>> rows{headings()};
    for (const Answer& item : items) rows.push_back(cells(item));
    const std::vector<bool> kept = kept_columns(rows);
    for (std::vector<std::string>& row : rows) {
      std::vector<std::string> shown;
      for (std::size_t i = 0; i < row.size(); ++i)
        if (kept[i]) shown.push_back(std::move(row[i]));
      row = std::move(shown);
    }
    return rows;
  }
  std::vector<std::string> headings() const {
    std::vector<std::string> all;
    for (const Field& field : fields_)
      if (field.column.cell) all.push_back(field.column.heading);
    return all;
  }
  std::vector<std::string> cells(const Answer& item) const {
    std::vector<std::string> all;
    for (const Field& field : fields_) {
      if (!field.column.cell) continue;
      nlohmann::json value;
      field.value(item, value);
      all.push_back(field.column.cell(item, value));
    }
    return all;
  }

  // A column of tables: without `cell`, none.
  struct Column {
    std::string heading;
    std::function<std::string(const Answer&, const nlohmann::json& value)> cell;
    bool is_always_shown = true;
  };
  struct Field {
    AnswerKey key;
    std::vector<AnswerKey> nested;
    std::function<bool(const Answer&, nlohmann::json& value)> value;  // false: absent
    Column column;
  };
  const std::vector<Field>& fields() const { return fields_; }

 private:
  // `rows`: with the headings first.
  std::vector<bool> kept_columns(const std::vector<std::vector<std::string>>& rows) const {
    std::vector<bool> kept;
    for (const Field& field : fields_)
      if (field.column.cell) kept.push_back(field.column.is_always_shown);
    for (std::size_t row = 1; row < rows.size(); ++row)
      for (std::size_t i = 0; i < kept.size(); ++i)
        if (!rows[row][i].empty() && rows[row][i] != "-") kept[i] = true;
    return kept;
  }

  template <typename Get, typename ToJson>
  Description& add(AnswerKey key, Get get, std::vector<AnswerKey> nested, ToJson to_json) {
    using Got = std::remove_cvref_t<std::invoke_result_t<const Get&, const Answer&>>;
    key.optional = is_optional<Got>;
    fields_.push_back({std::move(key),
                       std::move(nested),
                       [get, to_json](const Answer& answer, nlohmann::json& into) {
                         const auto& got = std::invoke(get, answer);
                         if constexpr (is_optional<Got>) {
                           if (!got) return false;
                           into = to_json(*got);
                         } else {
                           into = to_json(got);
                         }
                         return true;
                       },
                       {}});
    return *this;
  }

  std::vector<Field> fields_;
};

// What a key may be got by.

// `get` of what `part` returns.
template <typename Part, typename Get>
auto of(Part part, Get get) {
  return [part, get](const auto& answer) { return std::invoke(get, std::invoke(part, answer)); };
}

// Bytes, of which a part of one is an artefact of dividing.
template <typename Get>
auto whole(Get get) {
  return [get](const auto& answer) { return std::llround(std::invoke(get, answer)); };
}

// A list: `get` of each element of `list`.
template <typename List, typename Get>
auto each(List list, Get get) {
  return [list, get](const auto& answer) {
    const auto& items = std::invoke(list, answer);
    std::vector<std::remove_cvref_t<decltype(std::invoke(get, *std::begin(items)))>> values;
    for (const auto& item : items) values.push_back(std::invoke(get, item));
    return values;
  };
}

}  // namespace slipway::scenarios
