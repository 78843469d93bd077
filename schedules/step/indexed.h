// A vector that is read by id. Ids are integers of several widths, some signed because `none` is −1. This type makes
// the cast that every read would need, and debug builds check the range.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include "models/namespaces.h"

namespace slipway::schedules {

template <typename T>
class Indexed : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  Indexed() = default;
  Indexed(std::vector<T> items) : std::vector<T>(std::move(items)) {}

  T& operator[](std::integral auto id) { return std::vector<T>::operator[](checked(id)); }
  const T& operator[](std::integral auto id) const { return std::vector<T>::operator[](checked(id)); }

 private:
  std::size_t checked(std::integral auto id) const {
    assert(std::cmp_greater_equal(id, 0) && std::cmp_less(id, this->size()));
    return static_cast<std::size_t>(id);
  }
};

}  // namespace slipway::schedules
