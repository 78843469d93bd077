"""What a call raises."""

from __future__ import annotations

from typing import Any, NamedTuple


class Defect(NamedTuple):
    """One mistake of a scenario or an option."""

    key: str  #: "layout.tensor"; empty where no key is to blame
    place: str  #: "step.yaml:3"; empty where the scenario has no file
    message: str  #: what is wrong and what is allowed
    remedy: str  #: what to do

    def __str__(self) -> str:
        text = "".join(f"{part}: " for part in (self.place, self.key) if part) + self.message
        return f"{text}; {self.remedy}" if self.remedy else text


class ScenarioError(ValueError):
    """The scenario or an option cannot be used. The message names each key, what is wrong and what is allowed."""

    def __init__(self, message: str, errors: tuple[Defect, ...] = ()) -> None:
        super().__init__(message)
        #: Every mistake: at least one.
        self.errors = tuple(errors) or (Defect("", "", message, ""),)

    @property
    def key(self) -> str:
        """Of the first mistake."""
        return self.errors[0].key

    @property
    def remedy(self) -> str:
        """Of the first mistake."""
        return self.errors[0].remedy

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.errors)


class RunFailed(RuntimeError):
    """The command was right and failed, for example because no layout fits, a rank died or a file cannot be written."""

    def __init__(self, message: str, answer: Any = None, signal: int | None = None) -> None:
        super().__init__(message)
        #: What the command printed although it failed: a dict, or None.
        self.answer = answer
        #: The signal that ended the program, as signal.SIGSEGV; None where none did.
        self.signal = signal

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.answer, self.signal)
