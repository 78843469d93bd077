"""Slipway from Python: plans, simulates and runs LLM training.

    import slipway
    scenario = slipway.Scenario({
        "model": {"name": "llama-3.1-8b", "sequence": 8192},
        "cluster": {"machine": "h100-80gb", "nodes": 8, "gpus_per_node": 8},
        "layout": {"tensor": 8, "sequence_parallel": True, "pipeline": 4},
        "schedule": {"name": "1f1b", "micro_batch": 1, "global_batch": 32},
    })
    prediction = slipway.predict(scenario, {"layout.tensor": 4})
    prediction.step_time_s  # seconds
    prediction.timeline     # columns

Answers are dicts of what the command of the same name prints with --json; their keys are attributes too. Work is done in warm
processes beside this one, so functions may be called from threads, and Ctrl-C ends the work at hand.
`slipway list keys` describes the keys of a scenario, `slipway COMMAND --help-json` those of an answer with their units.
Notes of a command go to the logger "slipway" (level INFO).
"""

from __future__ import annotations

from .answers import (Answer, Explanation, Memory, Plan, Prediction, Record, Study, answer_of, compare, confirm, execute, explain,
                      goodput, growth, memory, plan, predict, simulate, study)
from .errors import Defect, RunFailed, ScenarioError
from .program import program_path
from .scenario import Scenario
from .schedules import B, F, I, Schedule, Shape, W, pair, schedule
from .table import Table
from .worker import close

__all__ = ["Answer", "B", "Defect", "Explanation", "F", "I", "Memory", "Plan", "Prediction", "Record", "RunFailed", "Scenario",
           "ScenarioError", "Schedule", "Shape", "Study", "Table", "W", "answer_of", "close", "compare", "confirm", "execute",
           "explain", "goodput", "growth", "memory", "pair", "plan", "predict", "program_path", "schedule", "simulate", "study"]
