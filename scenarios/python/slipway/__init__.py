"""Slipway from Python: scenarios and answers are dicts.

    import slipway
    answer = slipway.simulate({
        "model": {"name": "llama-3.1-8b", "sequence": 8192},
        "cluster": {"machine": "h100-80gb", "nodes": 8, "gpus_per_node": 8},
        "layout": {"tensor": 8, "sequence_parallel": True, "pipeline": 4},
        "schedule": {"name": "1f1b", "micro_batch": 1, "global_batch": 32},
    })
    answer["step_time_s"]  # seconds

Each function runs the command of the same name with --json, as a process of its own, so they may be called from threads.
`slipway list keys` describes the keys of a scenario, `slipway COMMAND --help-json` those of an answer with their units.
Notes of the command go to the logger "slipway" (level INFO).
"""

from __future__ import annotations

from .answers import (RunFailed, ScenarioError, answer_of, compare, confirm, execute, explain, goodput, growth, memory, plan,
                      simulate, study)
from .program import program_path

__all__ = ["RunFailed", "ScenarioError", "answer_of", "compare", "confirm", "execute", "explain", "goodput", "growth", "memory",
           "plan", "program_path", "simulate", "study"]
