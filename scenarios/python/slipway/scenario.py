"""Scenarios: a dict, YAML or a file, with keys changed and perhaps a schedule of one's own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Union

from .schedules import Drawing, Lists, Schedule, Shape, as_schedule
from .worker import Progress, answer_to

if TYPE_CHECKING:
    from .answers import Answer, Explanation, Memory, Plan, Prediction, Study

Overrides = Mapping[str, Any]
#: What every function takes: a Scenario, a dict with the keys of `slipway list keys`, YAML text, or the path of a file.
ScenarioLike = Union["Scenario", Mapping[str, Any], str, "os.PathLike[str]"]
ScheduleLike = Union[Schedule, Callable[[Shape], Lists]]


def _plain(value: Any) -> Any:
    """What json does not know: paths, and numbers of numpy."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} is no value of a scenario; allowed: numbers, texts, booleans, None, lists and dicts")


def value_text(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"[\w./-]+", value) and value != "null":
        return value  # reads better in answers and errors than a quoted word
    return json.dumps(value, default=_plain)


def option_words(options: Mapping[str, Any]) -> list[str]:
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


class Scenario:
    """A model, a cluster, a layout and a schedule. It never changes: `with_` returns another one.

        Scenario({"model": "llama-3.1-8b", "cluster": {"machine": "h100-80gb", "nodes": 8}, ...})
        Scenario("step.yaml", {"layout.tensor": 4})
        Scenario(yaml_text)

    overrides: keys to change, as {"layout.tensor": 4}. schedule: a function that @slipway.schedule made, in place of
    schedule.name. Relative paths in a dict or a text start at the current folder, those in a file at its folder. Mistakes are
    found when it is used; `check` finds them before.
    """

    def __init__(self, source: ScenarioLike, overrides: Overrides | None = None, *,
                 schedule: ScheduleLike | None = None, name: str | None = None) -> None:
        changes: dict[str, Any] = {}
        self._path: str
        self._text: str | None = None  # None: that of the file
        self._sections: dict[str, Any] | None = None  # of a dict
        if isinstance(source, Scenario):
            self._path, self._text, self._sections = source._path, source._text, source._sections
            changes = dict(source.overrides)
            schedule = schedule or source.schedule
            if name is not None:
                self._refuse_file_name(name)
                self._path = f"{name}.yaml"
        elif isinstance(source, Mapping):
            changes = {key: value for key, value in source.items() if "." in key}
            self._sections = {key: value for key, value in source.items() if "." not in key}
            self._path, self._text = f"{name or 'scenario'}.yaml", json.dumps(self._sections, default=_plain)
        elif isinstance(source, str) and "\n" in source:
            self._path, self._text = f"{name or 'scenario'}.yaml", source
        else:
            self._path = os.fspath(source)
            if name is not None:
                self._refuse_file_name(name)
        #: The keys that are changed, in their order.
        self.overrides: dict[str, Any] = {**changes, **(overrides or {})}
        self.schedule: Schedule | None = as_schedule(schedule)

    def _refuse_file_name(self, name: str) -> None:
        if self._text is None:
            raise ValueError(f"name={name!r}: a scenario of a file has the file's name; leave out name")

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any], overrides: Overrides | None = None, *, name: str | None = None) -> Scenario:
        return cls(keys, overrides, name=name)

    @classmethod
    def from_yaml(cls, text: str, overrides: Overrides | None = None, *, name: str | None = None) -> Scenario:
        return cls(text if "\n" in text else text + "\n", overrides, name=name)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], overrides: Overrides | None = None) -> Scenario:
        scenario = cls({}, overrides)
        scenario._path, scenario._text, scenario._sections = os.fspath(path), None, None
        return scenario

    def with_(self, overrides: Overrides) -> Scenario:
        """The same with other keys, as {"layout.tensor": 4}."""
        return Scenario(self, overrides)

    def with_schedule(self, schedule: ScheduleLike) -> Scenario:
        """The same with the schedule of a Python function."""
        return Scenario(self, schedule=schedule)

    @property
    def name(self) -> str:
        return os.path.splitext(os.path.basename(self._path))[0]

    def __repr__(self) -> str:
        changed = f", {self.overrides!r}" if self.overrides else ""
        own = f", schedule={self.schedule.name}" if self.schedule else ""
        return f"Scenario({self.name!r}{changed}{own})"

    def _settings(self) -> list[str]:
        words: list[str] = []
        for key, value in self.overrides.items():
            words += ["--set", f"{key}={value_text(value)}"]
        return words

    def ask(self, command: str, options: Mapping[str, Any] | None = None, progress: Progress = None, *,
            is_json: bool = True) -> Any:
        """What a command of the program answers about this scenario: a dict of its --json, or its text."""
        given: dict[str, Any] = {"path": self._path}
        own: tuple[str, ...] = ("--set ",)
        if self._text is not None:
            given["text"] = self._text
            own = ("--set ", self._path)
        words = [command, self._path, *self._settings(), *option_words(options or {})]
        if is_json:
            words.append("--json")
        needs = self._text is not None or self.schedule is not None
        return answer_to(words, given if needs else None, self.schedule, progress, own)

    @contextlib.contextmanager
    def in_a_file(self) -> Iterator[list[str]]:
        """The words that name it for a process of its own, which reads files."""
        with tempfile.TemporaryDirectory(prefix="slipway-") as folder:
            path, settings = self._path, self._settings()
            own: str | None = None
            if self._sections is not None:
                # Each section set on top of a file without keys: relative paths then start at the current folder.
                path = os.path.join(folder, os.path.basename(self._path))
                _write(path, "{}\n")
                settings = [word for key, value in self._sections.items() for word in ("--set", f"{key}={value_text(value)}")]
                settings += self._settings()
            elif self._text is not None:
                own = path = _free_name(self._path)  # here, where its relative paths start
                _write(path, self._text)
            if self.schedule is not None:
                table = os.path.join(folder, f"{self.schedule.name}.csv")
                _write(table, self.schedule_csv())
                settings += ["--set", f"schedule.csv={json.dumps(table)}"]
            try:
                yield [path, *settings]
            finally:
                if own is not None:
                    os.unlink(own)

    def schedule_csv(self) -> str:
        """The order of passes on each pipeline rank, in the CSV of PyTorch's pipelining. A schedule of one's own is checked."""
        return str(self.ask("show", {"csv": True}, is_json=False))

    def draw(self) -> Drawing:
        """The schedule as a grid of ranks and time."""
        return Drawing(self.ask("show", is_json=False))

    def check(self) -> None:
        """Raises ScenarioError with all mistakes."""
        if self.schedule is None:
            self.ask("memory")
        else:
            self.schedule_csv()

    def predict(self, *, progress: Progress = None, **options: Any) -> Prediction:
        """Step time with its 90 % interval, MFU, bubble, exposed communication, memory and cost."""
        from . import answers

        return answers.predict(self, progress=progress, **options)

    def memory(self, *, progress: Progress = None, **options: Any) -> Memory:
        """Memory of every pipeline rank, part by part, and the changes that make it fit."""
        from . import answers

        return answers.memory(self, progress=progress, **options)

    def explain(self, *, progress: Progress = None, **options: Any) -> Explanation:
        """Where a step's time goes and what makes it faster."""
        from . import answers

        return answers.explain(self, progress=progress, **options)

    def plan(self, *, progress: Progress = None, **options: Any) -> Plan:
        """The fastest layouts that fit the model on the cluster."""
        from . import answers

        return answers.plan(self, progress=progress, **options)

    def study(self, vary: Mapping[str, Sequence[Any]], *, progress: Progress = None, **options: Any) -> Study:
        """Every combination of varied keys."""
        from . import answers

        return answers.study(self, vary, progress=progress, **options)

    def goodput(self, *, progress: Progress = None, **options: Any) -> Answer:
        """How much of days of training survives failing nodes."""
        from . import answers

        return answers.goodput(self, progress=progress, **options)

    def growth(self, *, progress: Progress = None, **options: Any) -> Answer:
        """The time that a growing batch saves."""
        from . import answers

        return answers.growth(self, progress=progress, **options)

    def execute(self, **options: Any) -> Answer:
        """Trains on this machine with PyTorch 2.11 and returns what was measured."""
        from . import answers

        return answers.execute(self, **options)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _free_name(path: str) -> str:
    stem, ending = os.path.splitext(path)
    names = (path, *(f"{stem}-{number}{ending}" for number in range(2, 1000)))
    return next(name for name in names if not os.path.exists(name))


def temporary_file(ending: str) -> str:
    file, path = tempfile.mkstemp(prefix="slipway-", suffix=ending)
    os.close(file)
    return path
