// The former name of table.h, for the room basis, which reads published rows until its ranges stand in the constants' file.
// Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include "scenarios/tables/table.h"
