// Names of GPUs in tables as names of machine profiles: "A100-80GB SXM", "a100_80gb" and "A100 SXM4 80 GB"
// are all a100-80gb. The generation decides, then the gigabytes; "A100" alone is what the table's authors
// had.
// Guarded by tests/tables_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace slipway {

// `otherwise`: the profile that a name without gigabytes means where there are several ("" : an error).
// Throws CellError with the column when no profile is meant.
std::string machine_named(std::string_view column, const std::string& written,
                          std::string_view otherwise = "");

}  // namespace slipway
