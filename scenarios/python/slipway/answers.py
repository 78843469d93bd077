"""The commands as functions: a scenario goes in as a dict or a file, the answer of --json comes out as a dict."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from .program import environment, program_path

#: A scenario as a dict with the keys of `slipway list keys`, or the path of a scenario file.
Scenario = Union[Mapping[str, Any], str, "os.PathLike[str]"]

_log = logging.getLogger("slipway")


class ScenarioError(ValueError):
    """The scenario or an option cannot be used. The message names each key, what is wrong and what is allowed."""


class RunFailed(RuntimeError):
    """The command was right and failed, for example because no layout fits, a rank died or a file cannot be written."""


def _plain(value: Any) -> Any:
    """What json does not know: paths, and numbers of numpy."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is no value of a scenario; allowed: numbers, texts, booleans, None, lists and dicts")


def _text(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"[\w./-]+", value) and value != "null":
        return value  # reads better in answers and errors than a quoted word
    return json.dumps(value, default=_plain)


def _settings(values: Mapping[str, Any] | None) -> list[str]:
    return [f"{key}={_text(value)}" for key, value in (values or {}).items()]


def _words(options: Mapping[str, Any]) -> list[str]:
    """{"top": 3, "all_ranks": True, "vary": ["a=1,2"]} as --top 3 --all-ranks --vary a=1,2."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            for each in value:
                words += [option, os.fspath(each) if isinstance(each, os.PathLike) else str(each)]
        elif value is not None and value is not False:
            words += [option, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return words


def _message(text: str, settings: list[str], empty: str | None) -> str:
    """The errors without the places of a dict: it has no file and no lines."""
    lines = [line for line in text.strip().splitlines() if not line.endswith("the scenario cannot be used:")]
    places = [f"--set {setting}: " for setting in settings]
    if empty:
        places.append(f"{empty}:1: ")
    for place in places:
        lines = [line.removeprefix(place) for line in lines]
    return "\n".join(lines)


def _run(words: list[str], settings: list[str], empty: str | None) -> dict[str, Any]:
    done = subprocess.run([program_path(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8",
                          env=environment())
    if done.returncode == 0:
        for line in filter(None, done.stderr.splitlines()):
            _log.info("%s", line)
        return json.loads(done.stdout)
    message = _message(done.stderr or done.stdout, settings, empty)
    if done.returncode == 2:
        raise ScenarioError(message)
    raise RunFailed(message or f"slipway {words[0]} ended with status {done.returncode}")


def answer_of(command: str, *files: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """The answer of any command that has --json, for example answer_of("validate", "runs.csv", pooled=True).

    An option `--all-ranks` is all_ranks=True, `--top 3` is top=3, and a list repeats its option.
    Raises ScenarioError or RunFailed with the command's message.
    """
    return _run([command, *map(os.fspath, files), *_words(options), "--json"], [], None)


def _of_scenario(command: str, scenario: Scenario, overrides: Mapping[str, Any] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    settings = _settings(overrides)
    if not isinstance(scenario, Mapping):
        return _run([command, os.fspath(scenario), *_set(settings), *_words(options), "--json"], [], None)
    # A file without keys, and each section set on top of it: relative paths then start at the current folder.
    settings = _settings(scenario) + settings
    with tempfile.TemporaryDirectory(prefix="slipway-") as folder:
        empty = str(Path(folder) / "scenario.yaml")
        Path(empty).write_text("{}\n", encoding="utf-8")
        return _run([command, empty, *_set(settings), *_words(options), "--json"], settings, empty)


def _set(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def simulate(scenario: Scenario, overrides: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Step time with its 90 % interval, MFU, bubble, exposed communication, memory and cost.

    overrides: keys to change, as {"layout.tensor": 4}. options: those of `slipway simulate`, as all_ranks=True or
    report="step.html". Raises ScenarioError where the scenario cannot be used, RunFailed where the command failed.
    """
    return _of_scenario("simulate", scenario, overrides, options)


def memory(scenario: Scenario, overrides: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Memory of every pipeline rank, part by part, and the changes that make it fit. Arguments as simulate."""
    return _of_scenario("memory", scenario, overrides, options)


def plan(scenario: Scenario, overrides: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """The fastest layouts that fit the model on the cluster. Arguments as simulate, as top=3."""
    return _of_scenario("plan", scenario, overrides, options)


def explain(scenario: Scenario, overrides: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Where a step's time goes and what makes it faster. Arguments as simulate, as measured="1.2 s"."""
    return _of_scenario("explain", scenario, overrides, options)


def goodput(scenario: Scenario, overrides: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """How much of days of training survives failing nodes. Arguments as simulate."""
    return _of_scenario("goodput", scenario, overrides, options)


def growth(scenario: Scenario, overrides: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """The time that a growing batch saves. Arguments as simulate."""
    return _of_scenario("growth", scenario, overrides, options)


def study(scenario: Scenario, vary: Mapping[str, list[Any]], overrides: Mapping[str, Any] | None = None,
          **options: Any) -> dict[str, Any]:
    """Every combination of varied keys, as {"layout.tensor": [1, 2, 4]}, simulated on all cores. Other arguments as simulate."""
    varied = [f"{key}=" + ",".join(_text(value) for value in values) for key, values in vary.items()]
    return _of_scenario("study", scenario, overrides, {"vary": varied, **options})


def execute(scenario: Scenario, overrides: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Trains on this machine with PyTorch 2.11 and returns what was measured. Arguments as simulate, as out="run"."""
    return _of_scenario("execute", scenario, overrides, options)


def confirm(scenario: Scenario, overrides: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Predictions of unseen cases beside their execution. Arguments as simulate, as baseline="a" and case=["b"]."""
    return _of_scenario("confirm", scenario, overrides, options)


def compare(predicted: str | os.PathLike[str], measured: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """A predicted and a measured trace, task by task. options: those of `slipway compare`."""
    return answer_of("compare", predicted, measured, **options)
