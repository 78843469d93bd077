"""Warm processes `slipway worker`: one for each call that runs at the same time, kept for the next ones."""

from __future__ import annotations

import atexit
import itertools
import json
import logging
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Union

from .errors import Defect, RunFailed, ScenarioError
from .program import environment, program_path
from .schedules import Schedule

#: True: a line on standard error. A function: called with the share of the work that is done (None: unknown) and words.
Progress = Union[bool, Callable[[Union[float, None], str], Any], None]

_log = logging.getLogger("slipway")
_EVERY_S = 0.25  # between two reports of progress
_MOST_IDLE = os.cpu_count() or 1
_PATIENCE_S = 5.0  # for a worker that was interrupted
_VARIABLES = ("SLIPWAY_PROGRAM", "SLIPWAY_TORCH", "SLIPWAY_RANK", "COLUMNS", "PATH")


class _Ended(Exception):
    """The process is gone."""


class _Worker:
    def __init__(self, variables: tuple[str | None, ...]) -> None:
        self.variables = variables
        self._messages = tempfile.TemporaryFile()
        # Its own session: a terminal's Ctrl-C reaches this process, which decides.
        self._process = subprocess.Popen([program_path(), "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._messages, env=environment(), start_new_session=True, bufsize=0)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._buffer = bytearray()
        self._numbers = itertools.count(1)
        self.is_usable = True

    @property
    def id(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def _write(self, message: dict[str, Any]) -> None:
        rest = memoryview(json.dumps(message).encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._in, rest):]
        except BrokenPipeError:
            raise _Ended from None

    def _line(self, within_s: float | None = None) -> bytes | None:
        """The next line; None where it does not come in time."""
        searched = 0
        while True:
            end = self._buffer.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[:end + 1]
                return line
            searched = len(self._buffer)
            if within_s is not None and not select.select([self._out], [], [], within_s)[0]:
                return None
            part = os.read(self._out, 1 << 16)  # as much as a pipe holds
            if not part:
                raise _Ended
            self._buffer += part

    def call(self, request: dict[str, Any], on_ask: Callable[[dict[str, Any]], dict[str, Any]],
             on_progress: Callable[[dict[str, Any]], None] | None) -> dict[str, Any]:
        """The answer to one request. After an exception the worker is usable, or is_usable is False."""
        number = next(self._numbers)
        self.is_usable = False
        asked = None  # the question that waits for an answer
        try:
            self._write({"id": number, **request})
            while True:
                answer: dict[str, Any] = json.loads(self._line() or b"")
                if "ask" in answer:
                    asked = answer["ask"]
                    reply = on_ask(answer["shape"])
                    self._write({"ask": asked, **reply})
                    asked = None
                elif "progress" in answer:
                    if on_progress is not None:
                        on_progress(answer["progress"])
                elif answer.get("id") == number:
                    self.is_usable = True
                    return answer
        except _Ended:
            raise self._failure(request) from None
        except BaseException:  # Ctrl-C, or what a caller's function raised
            self.is_usable = self._stop_request(number, asked)
            raise

    def _stop_request(self, number: int, asked: int | None) -> bool:
        """Ends the request at hand; False: the worker went with it."""
        end = time.monotonic() + _PATIENCE_S
        try:
            if asked is not None:
                self._write({"ask": asked, "failed": "interrupted"})
            while time.monotonic() < end:
                self._process.send_signal(signal.SIGINT)  # again, as the first may come before the request is read
                line = self._line(within_s=0.1)
                if line is None:
                    continue
                answer = json.loads(line)
                if "ask" in answer:
                    self._write({"ask": answer["ask"], "failed": "interrupted"})
                elif answer.get("id") == number and "status" in answer:
                    return True
        except (_Ended, ValueError, OSError):
            pass
        return False

    def _failure(self, request: dict[str, Any]) -> RunFailed:
        status = self._process.wait()
        command = f"slipway {request['arguments'][0]}" if request["arguments"] else "slipway"
        self._messages.seek(0)
        said = self._messages.read().decode(errors="replace").strip()
        said = f"; it printed: {said[-2000:]}" if said else ""
        if status < 0:
            name = signal.Signals(-status).name
            return RunFailed(f"{command}: the process that worked on it was ended by {name}; the next call starts another one"
                             f"{said}", signal=-status)
        return RunFailed(f"{command}: the process that worked on it ended with status {status}{said}")

    def forget(self) -> None:
        """In a forked child, whose parent has this worker."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.returncode = 0  # nobody waits for it here
        self._messages.close()

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        if not self.is_usable:
            self._process.kill()
        try:
            self._process.wait(timeout=1)  # it ends at the end of its input
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._messages.close()


class _Pool:
    def __init__(self) -> None:
        self._held = threading.Lock()
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()

    def take(self) -> _Worker:
        variables = tuple(map(os.environ.get, _VARIABLES))
        old: list[_Worker] = []
        worker = None
        with self._held:
            while self._idle and worker is None:
                worker = self._idle.pop()
                if worker.variables != variables or not worker.is_alive():  # the first would answer for another program
                    old.append(worker)
                    worker = None
        for each in old:
            each.close()
        if worker is None:
            worker = _Worker(variables)
        with self._held:
            self._busy.add(worker)
        return worker

    def give_back(self, worker: _Worker) -> None:
        with self._held:
            self._busy.discard(worker)
            keeps = worker.is_usable and len(self._idle) < _MOST_IDLE
            if keeps:
                self._idle.append(worker)
        if not keeps:
            worker.close()

    def close(self) -> None:
        with self._held:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def forget(self) -> None:
        for worker in [*self._idle, *self._busy]:
            worker.forget()
        self.__init__()  # type: ignore[misc]


_pool = _Pool()
atexit.register(_pool.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def close() -> None:
    """Ends the idle processes. The next call starts one again."""
    _pool.close()


def worker_ids() -> list[int]:
    """The processes that wait for a call."""
    with _pool._held:
        return [worker.id for worker in _pool._idle]


class _Line:
    """Progress on standard error, in one line."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, share: float | None, what: str) -> None:
        text = what if share is None else f"{what}, {100 * share:.0f} %"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


def _words_of(now: dict[str, Any]) -> str:
    return f"{now['what']}: {now['detail']}" if now["detail"] else str(now["what"])


def answer_to(arguments: list[str], scenario: dict[str, Any] | None = None, schedule: Schedule | None = None,
              progress: Progress = None, own_places: tuple[str, ...] = ()) -> Any:
    """What the command answers: a dict of its --json, or its text.

    `scenario`: what to read in place of a file (slipway worker --help). `own_places`: those of errors that mean nothing to
    the caller. Raises ScenarioError or RunFailed, and what the schedule's function raised.
    """
    request: dict[str, Any] = {"arguments": arguments, "folder": os.getcwd()}
    if scenario is not None:
        request["scenario"] = scenario
    if schedule is not None:
        request["schedule"] = {"name": schedule.name, "chunks": schedule.chunks}
    line = _Line() if progress is True else None
    show = line or (progress if callable(progress) else None)
    if show is not None:
        request["progress"] = _EVERY_S
    raised: list[Exception] = []

    def on_ask(shape: dict[str, Any]) -> dict[str, Any]:
        assert schedule is not None
        if raised:
            return {"failed": "it failed before"}
        try:
            return {"csv": schedule.csv(shape["pipeline"], shape["micro_batches"], shape["chunks"])}
        except ValueError as error:
            return {"refuse": str(error)}
        except Exception as error:
            raised.append(error)
            return {"failed": f"{type(error).__name__}: {error}"}

    worker = _pool.take()
    try:
        answer = worker.call(request, on_ask, None if show is None else lambda now: show(now["share"], _words_of(now)))
    finally:
        _pool.give_back(worker)
        if line is not None:
            line.end()
    if raised:
        raise raised[0]
    return _checked(answer, arguments[0], own_places)


def _checked(answer: dict[str, Any], command: str, own_places: tuple[str, ...]) -> Any:
    status, messages = answer["status"], answer["messages"]
    if status == 0:
        for line in filter(None, messages.splitlines()):
            _log.info("%s", line)
        return answer["answer"]
    if status == 2:
        errors = tuple(Defect(each["key"], "" if each["place"].startswith(own_places) else each["place"], each["message"],
                              each["remedy"]) for each in answer["errors"])
        for place in own_places:
            messages = messages.replace(f"{place}: ", "")
        raise ScenarioError("\n".join(map(str, errors)) or messages.strip(), errors)
    printed = answer["answer"]
    raise RunFailed(messages.strip() or (printed if isinstance(printed, str) and printed else
                                         f"slipway {command} ended with status {status}"),
                    printed if isinstance(printed, dict) else None)
