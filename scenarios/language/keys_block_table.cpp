// The table of a block table (cluster.block_times): the fields of struct BlockTable, by their names.
#include "scenarios/language/keys.h"

#include <span>
#include <string_view>
#include <vector>

namespace slipway::scenarios {

namespace {

using enum KeyType;

std::vector<std::string_view> summed_dtypes() { return {"float64", "float32", "bfloat16"}; }

// clang-format off
const Key block_table[] = {
    {.path = "source", .type = text, .meaning = "who measured this, with what, where it is published",
     .required = true},
    {.path = "hidden", .type = integer, .meaning = "model.hidden of the measured block", .required = true,
     .min = 1, .max = 1e7},
    {.path = "ffn", .type = integer, .meaning = "model.ffn of the measured block", .required = true,
     .min = 1, .max = 1e8},
    {.path = "heads", .type = integer, .meaning = "model.heads of the measured block", .required = true,
     .min = 1, .max = 1e6},
    {.path = "sequence", .type = integer, .meaning = "tokens per sequence", .required = true,
     .min = 1, .max = 1e8},
    {.path = "dtype", .type = choice, .meaning = "dtype of the measurement", .required = true,
     .choices = summed_dtypes},
    {.path = "rows", .type = sections, .meaning = "one per micro-batch size", .required = true},
    {.path = "rows.*.micro_batch", .type = integer, .meaning = "sequences", .required = true,
     .min = 1, .max = 1e9},
    {.path = "rows.*.forward", .type = number, .meaning = "forward pass of the block", .required = true, .max = 1e6,
     .above_min = true, .unit = Unit::seconds},
    {.path = "rows.*.backward", .type = number, .meaning = "both gradients", .required = true, .max = 1e6,
     .above_min = true, .unit = Unit::seconds},
    {.path = "rows.*.curvature", .type = number, .meaning = "K-FAC factors A and B of all Linears",
     .fallback = "0", .max = 1e6, .unit = Unit::seconds},
    {.path = "rows.*.inversion", .type = number, .meaning = "inverses of all factors",
     .fallback = "0", .max = 1e6, .unit = Unit::seconds},
    {.path = "rows.*.precondition", .type = number, .meaning = "gradients times inverses, once per step",
     .fallback = "0", .max = 1e6, .unit = Unit::seconds},
    {.path = "rows.*.parameters", .type = number, .meaning = "one copy", .fallback = "0", .max = 1e18,
     .unit = Unit::bytes},
    {.path = "rows.*.activations", .type = number, .meaning = "kept from forward to backward",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes},
    {.path = "rows.*.peak_error", .type = number, .meaning = "working memory of one backward",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes},
    {.path = "rows.*.saved_error", .type = number, .meaning = "output gradients of the Linears",
     .fallback = "0", .max = 1e18, .unit = Unit::bytes},
    {.path = "rows.*.factors", .type = number, .meaning = "Kronecker factors", .fallback = "0",
     .max = 1e18, .unit = Unit::bytes},
};
// clang-format on

}  // namespace

std::span<const Key> block_table_keys() { return block_table; }

}  // namespace slipway::scenarios
