// From several arguments of Megatron-LM together to keys (composers.h).
// Guarded by tests/scenarios/import_command_test.cpp.
#pragma once

#include "scenarios/trainers/reading.h"

namespace slipway::scenarios {

void megatron_split(Reading& reading);
void megatron_vocabulary(Reading& reading);
void megatron_window(Reading& reading);
void megatron_rotary_share(Reading& reading);
void megatron_head_width(Reading& reading);
void megatron_mlp(Reading& reading);
void megatron_balance(Reading& reading);
void megatron_capacity(Reading& reading);
void megatron_batches(Reading& reading);
void megatron_recomputation(Reading& reading);
void megatron_graphs(Reading& reading);
void megatron_tokens(Reading& reading);
void megatron_rate(Reading& reading);

}  // namespace slipway::scenarios
