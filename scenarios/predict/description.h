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
// What does not depend on the answer's type is compiled once (description.cpp), and JSON is only named here: both are most
// of what a file with a description costs to compile.
//
// So a key that is printed is documented, and one that is documented is printed. Numbers round-trip exactly; those that
// JSON cannot hold (NaN, infinity) become null. Guarded by tests/scenarios/answers_test.cpp and the tests of each
// command.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "scenarios/predict/answer_keys.h"

namespace slipway::scenarios {

template <typename Value>
inline constexpr bool is_optional = false;
template <typename Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

// A value as JSON. NaN and infinity become null when it is printed.
void put_json(nlohmann::json& into, bool value);
void put_json(nlohmann::json& into, double value);
void put_json(nlohmann::json& into, std::int64_t value);
void put_json(nlohmann::json& into, std::uint64_t value);
void put_json(nlohmann::json& into, std::string_view value);
void put_json(nlohmann::json& into, const nlohmann::json& value);
void put_null(nlohmann::json& into);
void begin_list(nlohmann::json& into);
void begin_map(nlohmann::json& into);
nlohmann::json& next_item(nlohmann::json& list);
nlohmann::json& item_named(nlohmann::json& map, const std::string& name);

// The same of any number, text, range of values or map of names to values.
template <typename Value>
void put(nlohmann::json& into, const Value& value) {
  if constexpr (std::is_same_v<Value, nlohmann::json> || std::is_same_v<Value, bool>) {
    put_json(into, value);
  } else if constexpr (std::is_floating_point_v<Value>) {
    put_json(into, static_cast<double>(value));
  } else if constexpr (std::is_integral_v<Value> && std::is_signed_v<Value>) {
    put_json(into, static_cast<std::int64_t>(value));
  } else if constexpr (std::is_integral_v<Value>) {
    put_json(into, static_cast<std::uint64_t>(value));
  } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
    put_json(into, std::string_view(value));
  } else if constexpr (requires { typename Value::mapped_type; }) {
    begin_map(into);
    for (const auto& [name, item] : value) put(item_named(into, name), item);
  } else {
    static_assert(std::ranges::range<const Value>, "JSON holds numbers, texts, lists and maps of them");
    begin_list(into);
    for (const auto& item : value) put(next_item(into), item);
  }
}

// A description without the type of its answer, which is passed as a pointer.
class UntypedDescription {
 public:
  // A column of tables: without `cell`, none.
  struct Column {
    std::string heading;
    std::function<std::string(const void* answer, const nlohmann::json& value)> cell;
    bool is_always_shown = true, is_shown_unasked = true;
  };
  struct Field {
    AnswerKey key;
    std::vector<AnswerKey> nested;
    std::function<bool(const void* answer, nlohmann::json& value)> value;  // false: absent
    Column column;
  };

  std::string text(const void* answer) const;
  void put_object(const void* answer, nlohmann::json& into) const;
  std::vector<AnswerKey> keys(const std::string& prefix) const;
  std::vector<std::string> headings() const;
  std::vector<std::string> cells(const void* answer) const;
  std::vector<std::vector<std::string>> table(const std::vector<const void*>& answers,
                                              const std::vector<std::string>& asked = {}) const;

  const std::vector<Field>& fields() const { return fields_; }
  void push(Field field) { fields_.push_back(std::move(field)); }
  Field& last() { return fields_.back(); }
  // Sets the column of the field declared last.
  void set_number_column(std::string heading, std::function<std::string(double)> format);
  void set_text_column(std::string heading);
  void set_null_where_absent();

 private:
  std::vector<bool> kept_columns(const std::vector<std::vector<std::string>>& rows,
                                 const std::vector<std::string>& asked) const;
  std::vector<Field> fields_;
};

// In every function `get` is a member, a member function or a lambda of the answer. Where it returns an empty
// std::optional, the key is absent.
template <typename Answer>
class Description {
 public:
  template <typename Get>
  Description& key(std::string name, std::string unit, std::string meaning, Get get) {
    return add({std::move(name), std::move(unit), std::move(meaning)}, get, {},
               [](const auto& value, nlohmann::json& into) { put(into, value); });
  }

  // `get` returns an object that `keys` describes.
  template <typename Get, typename Part>
  Description& object(const std::string& name, std::string meaning, Get get, const Description<Part>& keys) {
    return add({name, "object", std::move(meaning)}, get, keys.keys(name + "."),
               [keys = keys.untyped()](const Part& part, nlohmann::json& into) { keys.put_object(&part, into); });
  }

  // `get` returns a range of such objects.
  template <typename Get, typename Part>
  Description& list(const std::string& name, std::string meaning, Get get, const Description<Part>& keys) {
    return add({name, "list", std::move(meaning)}, get, keys.keys(name + "[]."),
               [keys = keys.untyped()](const auto& parts, nlohmann::json& into) {
                 begin_list(into);
                 for (const Part& part : parts) keys.put_object(&part, next_item(into));
               });
  }

  // `get` returns a range of pairs: a name, which is the key, and such an object.
  template <typename Get, typename Part>
  Description& map(const std::string& name, std::string meaning, Get get, const Description<Part>& keys) {
    return add({name, "map", std::move(meaning)}, get, keys.keys(name + ".*."),
               [keys = keys.untyped()](const auto& parts, nlohmann::json& into) {
                 begin_map(into);
                 for (const auto& [part_name, part] : parts) keys.put_object(&part, item_named(into, part_name));
               });
  }

  // All keys of a part of the answer, beside those of the answer itself.
  template <typename Get, typename Part>
  Description& include(const Description<Part>& part, Get get) {
    using Got = std::remove_cvref_t<std::invoke_result_t<const Get&, const Answer&>>;
    for (const Field& field : part.untyped().fields()) {
      Field& added = push({field.key,
                           field.nested,
                           [get, value = field.value](const void* answer, nlohmann::json& into) {
                             const auto& got = std::invoke(get, *static_cast<const Answer*>(answer));
                             if constexpr (is_optional<Got>)
                               return got && value(&*got, into);
                             else
                               return value(&got, into);
                           },
                           {field.column.heading, {}, field.column.is_always_shown, field.column.is_shown_unasked}});
      added.key.optional |= is_optional<Got>;
      if (!field.column.cell) continue;
      added.column.cell = [get, cell = field.column.cell](const void* answer, const nlohmann::json& value) {
        const auto& got = std::invoke(get, *static_cast<const Answer*>(answer));
        if constexpr (is_optional<Got>)
          return got ? cell(&*got, value) : std::string();
        else
          return cell(&got, value);
      };
    }
    return *this;
  }

  // `get` returns a range of parts: a list for each key of a part.
  template <typename Get, typename Part>
  Description& lists(Get get, const Description<Part>& part) {
    for (const Field& field : part.untyped().fields()) {
      if (field.key.name.empty()) continue;  // only_column
      push({field.key,
            {},
            [get, value = field.value](const void* answer, nlohmann::json& into) {
              begin_list(into);
              for (const Part& each : std::invoke(get, *static_cast<const Answer*>(answer)))
                value(&each, next_item(into));
              return true;
            },
            {}});
    }
    return *this;
  }

  // The next functions are about the key declared last.

  // Absent unless `present`.
  Description& when(std::function<bool(const Answer&)> present) {
    Field& last = untyped_.last();
    last.key.optional = true;
    last.value = [present = std::move(present), value = std::move(last.value)](const void* answer,
                                                                               nlohmann::json& into) {
      return present(*static_cast<const Answer*>(answer)) && value(answer, into);
    };
    return *this;
  }

  // Where it would be absent, it is null.
  Description& else_null() {
    untyped_.set_null_where_absent();
    return *this;
  }

  // keys() leaves out the nested ones: the meaning names the key or the command that lists the same.
  Description& listed_elsewhere() {
    untyped_.last().nested.clear();
    return *this;
  }

  // It is a column of tables. For `format`, true is 1 and false 0; a text, and what is absent, is NaN.
  Description& column(std::string heading, std::function<std::string(double)> format) {
    untyped_.set_number_column(std::move(heading), std::move(format));
    return *this;
  }
  // The same of a text, or of a number as it is.
  Description& column(std::string heading) {
    untyped_.set_text_column(std::move(heading));
    return *this;
  }
  // A column without a key, after the one declared last.
  Description& only_column(std::string heading, std::function<std::string(const Answer&)> cell) {
    push({{}, {}, [](const void*, nlohmann::json&) { return false; }, {}});
    return wide_column(std::move(heading), std::move(cell));
  }
  // A column that shows more than its key: `cell` of the whole item.
  Description& wide_column(std::string heading, std::function<std::string(const Answer&)> cell) {
    untyped_.last().column = {std::move(heading), [cell = std::move(cell)](const void* answer, const nlohmann::json&) {
                                return cell(*static_cast<const Answer*>(answer));
                              }};
    return *this;
  }

  // A table leaves its column out where each cell is "-" or empty.
  Description& if_any() {
    untyped_.last().column.is_always_shown = false;
    return *this;
  }

  // A table has its column only where that is asked for.
  Description& if_asked() {
    untyped_.last().column.is_shown_unasked = false;
    return *this;
  }

  // One object, indented, ending in a new line.
  std::string text(const Answer& answer) const { return untyped_.text(&answer); }

  std::vector<AnswerKey> keys(const std::string& prefix = "") const { return untyped_.keys(prefix); }

  // For aligned_table (readable.h). `asked`: keys whose columns to show; empty: those that are shown unasked.
  template <typename Items>
  std::vector<std::vector<std::string>> table(const Items& items, const std::vector<std::string>& asked = {}) const {
    std::vector<const void*> answers;
    for (const Answer& item : items) answers.push_back(&item);
    return untyped_.table(answers, asked);
  }
  std::vector<std::string> headings() const { return untyped_.headings(); }
  std::vector<std::string> cells(const Answer& item) const { return untyped_.cells(&item); }

  const UntypedDescription& untyped() const { return untyped_; }

 private:
  using Field = UntypedDescription::Field;

  Field& push(Field field) {
    untyped_.push(std::move(field));
    return untyped_.last();
  }

  template <typename Get, typename ToJson>
  Description& add(AnswerKey key, Get get, std::vector<AnswerKey> nested, ToJson to_json) {
    using Got = std::remove_cvref_t<std::invoke_result_t<const Get&, const Answer&>>;
    key.optional = is_optional<Got>;
    push({std::move(key),
          std::move(nested),
          [get, to_json](const void* answer, nlohmann::json& into) {
            const auto& got = std::invoke(get, *static_cast<const Answer*>(answer));
            if constexpr (is_optional<Got>) {
              if (!got) return false;
              to_json(*got, into);
            } else {
              to_json(got, into);
            }
            return true;
          },
          {}});
    return *this;
  }

  UntypedDescription untyped_;
};

// The ways to get the value of a key.

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
