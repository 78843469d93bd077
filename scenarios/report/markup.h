// Text as text of HTML and SVG, and as a value in double quotes. Guarded by tests/scenarios/report_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace slipway::scenarios {

inline std::string in_markup(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace slipway::scenarios
