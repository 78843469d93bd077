"""The commands as functions: a scenario goes in, the answer of --json comes out, with its keys as attributes."""

from __future__ import annotations

import html
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Callable, TypeVar

from .errors import Defect, RunFailed, ScenarioError
from .program import environment, program_path
from .scenario import Overrides, Scenario, ScenarioLike, ScheduleLike, option_words, temporary_file, value_text
from .table import Table
from .worker import Progress, answer_to

_log = logging.getLogger("slipway")
# They start processes of their own, which a worker would outlive.
_OF_THEIR_OWN = ("execute", "confirm", "demo")


class Record(dict):  # type: ignore[type-arg]
    """A dict whose keys are attributes too: record.step_time_s. A list of dicts is then a Table."""

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(f"this answer has no {name!r}; it has {', '.join(self)}") from None
        return _view(value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def to_dict(self) -> dict[str, Any]:
        """A plain dict, as --json prints it."""
        return dict(self)


def _view(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return Table.from_rows(value)
    return value


class Answer(Record):
    """What a command answers. `slipway COMMAND --help-json` has the meaning and unit of every key."""

    def __init__(self, answer: Mapping[str, Any], ask: Callable[[Mapping[str, Any]], Any] | None = None,
                 page: str | None = None) -> None:
        super().__init__(answer)
        self.__dict__["_ask"] = ask  # the same command once more, with these options
        self.__dict__["_page"] = page
        self.__dict__["_kept"] = {}

    def page(self) -> str:
        """The page of --report: one HTML text with its pictures. The command runs again, unless a notebook asked."""
        if self.__dict__["_page"] is None:
            with _Page() as page:
                if self.__dict__["_ask"] is None:
                    raise RunFailed("this answer has no page")
                self.__dict__["_ask"]({"report": page.path})
                self.__dict__["_page"] = page.text()
        return str(self.__dict__["_page"])

    def _repr_html_(self) -> str:
        if self.__dict__["_ask"] is None and self.__dict__["_page"] is None:  # of a command that has no page, or unpickled
            return Table({"key": list(self), "value": list(self.values())})._repr_html_()
        return (f'<iframe srcdoc="{html.escape(self.page(), quote=True)}" width="100%" height="760" '
                'style="border: 0"></iframe>')

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), None, self.__dict__["_page"])


class Prediction(Answer):
    """What `slipway simulate` answers, for example step_time_s, mfu, fits, bubble_share."""

    scenario: str
    step_time_s: float
    makespan_s: float
    mfu: float
    tokens_per_s: float
    compute_share: float
    exposed_comm_share: float
    bubble_share: float
    exposed_comm_s: float
    fit_probability: float
    fits: bool
    fits_cautious: bool
    ranks: int
    micro_batches: int
    parameters: int
    tasks: int
    basis: str

    @property
    def interval(self) -> tuple[float, float] | None:
        """90 of 100 measured steps take from the first to the second, in seconds; None where nothing says so."""
        low, high = self.get("step_time_low_s"), self.get("step_time_high_s")
        return None if low is None or high is None else (low, high)

    @property
    def memory(self) -> Table:
        """A row per pipeline rank: what its fullest rank needs, and what its machine has, in bytes."""
        names = ("peak_memory_bytes", "needed_memory_bytes", "needed_memory_least_bytes", "needed_memory_most_bytes",
                 "memory_capacity_bytes", "peak_task")
        columns = {name: self[name] for name in names if name in self}
        return Table({"pipeline_rank": list(range(len(self["peak_memory_bytes"]))), **columns})

    @property
    def timeline(self) -> Table:
        """A row per task of the last simulated step: rank, lane, task, kind, stage, micro_batch, start_s, end_s, ...

        Of the representative ranks, or of all of them after predict(..., all_ranks=True). Simulates once more.
        """
        kept: dict[str, Table] = self.__dict__["_kept"]
        if "timeline" not in kept:
            columns = self.get("timeline")
            if columns is None:
                if self.__dict__["_ask"] is None:
                    raise RunFailed("this answer has no timeline; predict(..., timeline=True) keeps one")
                columns = self.__dict__["_ask"]({"timeline": True})["timeline"]
            kept["timeline"] = Table(columns)
        return kept["timeline"]


class Memory(Answer):
    """What `slipway memory` answers; stages has a row per pipeline rank."""

    scenario: str
    fits: bool
    fit_probability: float
    peak_bytes: int
    capacity_bytes: int
    stages: Table


class Explanation(Answer):
    """What `slipway explain` answers; spent, faster and sensitivities are tables."""

    scenario: str
    answer: str
    step_time_s: float
    spent: Table
    faster: Table

    def page(self) -> str:
        """One HTML text: the sentence, where the time goes, and what makes it faster."""
        return f"<p>{html.escape(self.answer)}</p>{self.spent._repr_html_()}{self.faster._repr_html_()}"

    def _repr_html_(self) -> str:
        return self.page()


class Plan(Answer):
    """What `slipway plan` answers. plan["best"] is the list of rows, plan.layouts the table, plan.best the first row."""

    complete: bool
    legal: int
    too_large: int
    simulated: int

    @property
    def best(self) -> Record:
        """The fastest layout."""
        return Record(self["best"][0])

    @property
    def layouts(self) -> Table:
        """The fastest layouts, fastest first."""
        return Table.from_rows(self["best"])

    @property
    def best_scenario(self) -> Scenario:
        """The scenario with the fastest layout."""
        winner = self.__dict__["_kept"].get("winner")
        if winner is None:
            raise RunFailed("this plan has no scenario of its winner; it went to the file of `output`")
        return winner  # type: ignore[no-any-return]


class Study(Answer):
    """What `slipway study` answers; points has a row per combination, with the varied keys as columns."""

    varied: list[str]
    points: Table


_Answered = TypeVar("_Answered", bound=Answer)


class _Page:
    """A file for --report."""

    def __enter__(self) -> _Page:
        self.path = temporary_file(".html")
        return self

    def __exit__(self, *_: object) -> None:
        os.unlink(self.path)

    def text(self) -> str:
        with open(self.path, encoding="utf-8") as file:
            return file.read()


def _in_a_notebook() -> bool:
    return "ipykernel" in sys.modules


def _scenario_of(scenario: ScenarioLike, overrides: Overrides | None, schedule: ScheduleLike | None) -> Scenario:
    if isinstance(scenario, Scenario) and not overrides and schedule is None:
        return scenario
    return Scenario(scenario, overrides, schedule=schedule)


def _ask(kind: type[_Answered], command: str, scenario: Scenario, options: Mapping[str, Any], progress: Progress) -> _Answered:
    def again(more: Mapping[str, Any]) -> Any:
        return scenario.ask(command, {**options, **more})

    return kind(scenario.ask(command, options, progress), again)


def _long(kind: type[_Answered], command: str, scenario: Scenario, options: Mapping[str, Any], progress: Progress) -> _Answered:
    """A notebook shows the page of long work, which would otherwise run twice."""
    if not _in_a_notebook() or "report" in options:
        return _ask(kind, command, scenario, options, progress)
    with _Page() as page:
        answer = _ask(kind, command, scenario, {**options, "report": page.path}, progress)
        answer.__dict__["_page"] = page.text()
        return answer


def predict(scenario: ScenarioLike, overrides: Overrides | None = None, *, schedule: ScheduleLike | None = None,
            progress: Progress = None, **options: Any) -> Prediction:
    """Step time with its 90 % interval, MFU, bubble, exposed communication, memory and cost.

    overrides: keys to change, as {"layout.tensor": 4}. schedule: a function of @slipway.schedule. progress: True for a line on
    standard error, or a function of a share and words. options: those of `slipway simulate`, as all_ranks=True or
    report="step.html". Raises ScenarioError where the scenario cannot be used, RunFailed where the command failed.
    """
    return _ask(Prediction, "simulate", _scenario_of(scenario, overrides, schedule), options, progress)


simulate = predict


def memory(scenario: ScenarioLike, overrides: Overrides | None = None, *, schedule: ScheduleLike | None = None,
           progress: Progress = None, **options: Any) -> Memory:
    """Memory of every pipeline rank, part by part, and the changes that make it fit. Arguments as predict."""
    return _ask(Memory, "memory", _scenario_of(scenario, overrides, schedule), options, progress)


def plan(scenario: ScenarioLike, overrides: Overrides | None = None, *, schedule: ScheduleLike | None = None,
         progress: Progress = None, **options: Any) -> Plan:
    """The fastest layouts that fit the model on the cluster. Arguments as predict, as top=3.

    A schedule's function is asked for every shape of the search. Raises RunFailed where no layout fits.
    """
    given = _scenario_of(scenario, overrides, schedule)
    if "output" in options:
        return _long(Plan, "plan", given, options, progress)
    winner = temporary_file(".yaml")
    try:
        answer = _long(Plan, "plan", given, {**options, "output": winner}, progress)
        with open(winner, encoding="utf-8") as file:
            best = Scenario(file.read(), schedule=given.schedule)
    finally:
        os.unlink(winner)
    # Its relative paths start in this folder, and its name is the given one's.
    best._path = os.path.join(os.path.dirname(winner), f"{given.name}.yaml")
    answer.__dict__["_kept"]["winner"] = best
    answer.__dict__["_ask"] = lambda more: given.ask("plan", {**options, **more})
    return answer


def explain(scenario: ScenarioLike, overrides: Overrides | None = None, *, schedule: ScheduleLike | None = None,
            progress: Progress = None, **options: Any) -> Explanation:
    """Where a step's time goes and what makes it faster. Arguments as predict, as measured="1.2 s"."""
    return _ask(Explanation, "explain", _scenario_of(scenario, overrides, schedule), options, progress)


def goodput(scenario: ScenarioLike, overrides: Overrides | None = None, *, schedule: ScheduleLike | None = None,
            progress: Progress = None, **options: Any) -> Answer:
    """How much of days of training survives failing nodes. Arguments as predict."""
    return _ask(Answer, "goodput", _scenario_of(scenario, overrides, schedule), options, progress)


def growth(scenario: ScenarioLike, overrides: Overrides | None = None, *, schedule: ScheduleLike | None = None,
           progress: Progress = None, **options: Any) -> Answer:
    """The time that a growing batch saves. Arguments as predict."""
    return _ask(Answer, "growth", _scenario_of(scenario, overrides, schedule), options, progress)


def study(scenario: ScenarioLike, vary: Mapping[str, Sequence[Any]], overrides: Overrides | None = None, *,
          schedule: ScheduleLike | None = None, progress: Progress = None, **options: Any) -> Study:
    """Every combination of varied keys, as {"layout.tensor": [1, 2, 4]}, simulated on all cores. Other arguments as predict."""
    varied = [f"{key}=" + ",".join(value_text(value) for value in values) for key, values in vary.items()]
    return _long(Study, "study", _scenario_of(scenario, overrides, schedule), {"vary": varied, **options}, progress)


def answer_of(command: str, *files: str | os.PathLike[str], progress: Progress = None, **options: Any) -> Answer:
    """The answer of any command that has --json, for example answer_of("validate", "runs.csv", pooled=True).

    An option `--all-ranks` is all_ranks=True, `--top 3` is top=3, and a list repeats its option.
    Raises ScenarioError or RunFailed with the command's message.
    """
    words = [command, *(os.fspath(file) for file in files), *option_words(options), "--json"]
    if command in _OF_THEIR_OWN:
        return Answer(_in_its_own_process(words, ()))
    def again(more: Mapping[str, Any]) -> Any:
        return answer_of(command, *files, **{**options, **more})

    return Answer(answer_to(words, progress=progress), again)


def compare(predicted: str | os.PathLike[str], measured: str | os.PathLike[str], **options: Any) -> Answer:
    """A predicted and a measured trace, task by task. options: those of `slipway compare`."""
    return answer_of("compare", predicted, measured, **options)


def execute(scenario: ScenarioLike, overrides: Overrides | None = None, *, schedule: ScheduleLike | None = None,
            **options: Any) -> Answer:
    """Trains on this machine with PyTorch 2.11 and returns what was measured. Arguments as predict, as out="run"."""
    return _of_a_file("execute", scenario, overrides, schedule, options)


def confirm(scenario: ScenarioLike, overrides: Overrides | None = None, *, schedule: ScheduleLike | None = None,
            **options: Any) -> Answer:
    """Predictions of unseen cases beside their execution. Arguments as predict, as baseline="a" and case=["b"]."""
    return _of_a_file("confirm", scenario, overrides, schedule, options)


def _of_a_file(command: str, scenario: ScenarioLike, overrides: Overrides | None, schedule: ScheduleLike | None,
               options: Mapping[str, Any]) -> Answer:
    given = _scenario_of(scenario, overrides, schedule)
    with given.in_a_file() as words:
        places = [f"--set {setting}: " for word, setting in zip(words, words[1:]) if word == "--set"]
        if given._text is not None:
            places.append(f"{words[0]}:1: ")
        return Answer(_in_its_own_process([command, *words, *option_words(options), "--json"], tuple(places)))


# "step.yaml:3: layout.tensor: 3 does not divide ...; allowed: ...; set it to 2": place and key may be missing.
_DEFECT = re.compile(r"(?:(?P<place>[^\s:]+(?::\d+)?): )?(?P<key>[a-z][a-z_0-9]*(?:\.[a-z_0-9]+)+): (?P<message>.*); (?P<remedy>[^;]+)$")


def _defect_in(line: str) -> Defect:
    found = _DEFECT.match(line)
    return Defect(found["key"], found["place"] or "", found["message"], found["remedy"]) if found else Defect("", "", line, "")


def _in_its_own_process(words: list[str], own_places: tuple[str, ...]) -> Any:
    done = subprocess.run([program_path(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8",
                          env=environment())
    if done.returncode == 0:
        for line in filter(None, done.stderr.splitlines()):
            _log.info("%s", line)
        return json.loads(done.stdout)
    lines = (done.stderr or done.stdout).strip().splitlines()
    lines = [line for line in lines if not line.endswith(("the scenario cannot be used:", "but not executed:"))]
    for place in own_places:
        lines = [line[len(place):] if line.startswith(place) else line for line in lines]
    message = "\n".join(lines)
    if done.returncode == 2:
        raise ScenarioError(message, tuple(_defect_in(line) for line in lines))
    raise RunFailed(message or f"slipway {words[0]} ended with status {done.returncode}")
