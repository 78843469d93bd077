// A published table as text in a test.
#pragma once

#include <sstream>
#include <string>

#include "scenarios/tables/formats.h"

namespace slipway::test {

inline PublishedTable table_of(const std::string& text) {
  std::istringstream in(text);
  return read_table(in, "t.csv");
}

}  // namespace slipway::test
