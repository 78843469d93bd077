// Everything of libslipway. docs/library.md says what is promised.
#pragma once

#include "slipway/error.h"
#include "slipway/explain.h"
#include "slipway/graph.h"
#include "slipway/plan.h"
#include "slipway/predict.h"
#include "slipway/scenario.h"
#include "slipway/schedule.h"
#include "slipway/version.h"
