"""Reads commands.txt, and runs its commands on one source tree and its program.

`>> COMMAND` is the new program's form of the command before it, `++ COMMAND` one that only the new program has.
A command is one line; its steps are joined by ` && `, and a step that fails ends it. A step is a call of slipway
without the program's name, or one of the steps below that prepare a file. Commands run in the source tree. {tmp} is
a folder of the command's own, {inputs} the folder beside this file, {tree} the source tree. The answer is what every
step printed, its exit status, and the files that slipway left in {tmp}.
"""
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

INPUTS = Path(__file__).resolve().parent / "inputs"
AFTER = ">> "  # A line that replaces the one before it, for the new program.
ONLY_AFTER = "++ "  # A line that the old program does not have; it must end by itself.


@dataclass
class Command:
    text: str
    after: str | None = None
    only_after: bool = False


@dataclass
class Side:
    tree: Path
    program: Path


def commands_of(path: Path) -> list[Command]:
    commands: list[Command] = []
    for line in path.read_text().splitlines():
        line = line.strip()
        if line.startswith(AFTER):
            commands[-1].after = line[len(AFTER):]
        elif line.startswith(ONLY_AFTER):
            commands.append(Command(line[len(ONLY_AFTER):], only_after=True))
        elif line and not line.startswith("#"):
            commands.append(Command(line))
    texts = [each.text for each in commands]
    twice = {text for text in texts if texts.count(text) > 1}
    if twice:
        raise SystemExit(f"{path}: given twice: {sorted(twice)}")
    return commands


def copied(source: str, to: str) -> None:
    shutil.copy(source, to)


def appended(source: str, to: str, line: str) -> None:
    Path(to).write_text(Path(source).read_text() + line + "\n")


def replaced(source: str, to: str, old: str, new: str) -> None:
    text = Path(source).read_text()
    if old not in text:
        raise ValueError(f"{source} does not have {old}")
    Path(to).write_text(text.replace(old, new))


PREPARING = {"copy": copied, "append": appended, "replace": replaced}


def environment(home: str) -> dict[str, str]:
    """Nothing of the caller's, so that both sides answer the same terminal and language."""
    return {"PATH": "/usr/bin:/bin", "HOME": home, "TMPDIR": home, "COLUMNS": "200", "TERM": "dumb",
            "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def call(side: Side, words: list[str], home: str, timeout: float) -> dict:
    process = subprocess.Popen([str(side.program), *words], cwd=side.tree, env=environment(home), text=True,
                               encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
        return {"status": process.returncode, "out": out, "err": err}
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # Workers of a search are processes, too.
        process.communicate()
        return {"status": "timed out", "out": "", "err": ""}


class Running:
    """One command on one side: its folders, its steps and what they left."""

    def __init__(self, side: Side, folder: str):
        self.side, self.prepared = side, set()
        self.tmp, self.home = Path(folder) / "tmp", Path(folder) / "home"
        self.tmp.mkdir(), self.home.mkdir()

    def words(self, step: str) -> list[str]:
        places = {"{tmp}": self.tmp, "{tree}": self.side.tree, "{inputs}": INPUTS}
        words = shlex.split(step)
        for name, path in places.items():
            words = [word.replace(name, str(path)) for word in words]
        return words

    def prepare(self, words: list[str]) -> dict:
        source, to = Path(self.side.tree, words[1]), Path(words[2])
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            PREPARING[words[0]](str(source), str(to), *words[3:])
        except (OSError, ValueError) as reason:
            return {"status": "not prepared", "out": "", "err": str(reason)}
        self.prepared.add(to)
        return {"status": 0, "out": "", "err": ""}

    def step(self, step: str, timeout: float) -> dict:
        words = self.words(step)
        return self.prepare(words) if words[0] in PREPARING else call(self.side, words, str(self.home), timeout)

    def without_places(self, text: str) -> str:
        """Both sides' paths become equal; the longest goes first, because one may lie in another."""
        tree = self.side.tree
        places = {str(self.tmp): "{tmp}", str(tree): "{tree}", str(INPUTS): "{inputs}", str(self.home): "{home}",
                  str(self.side.program): "{program}", os.path.relpath(tree, self.tmp): "{tree}"}
        for path in sorted(places, key=len, reverse=True):
            text = text.replace(path, places[path])
        return text

    def files(self) -> dict[str, str]:
        made = sorted(path for path in self.tmp.rglob("*") if path.is_file() and path not in self.prepared)
        return {str(path.relative_to(self.tmp)): self.without_places(path.read_text(errors="replace")) for path in made}


def run(side: Side, text: str, timeout: float) -> dict:
    with tempfile.TemporaryDirectory(prefix="same-answers-") as folder:
        running, steps = Running(side, folder), []
        for step in text.split(" && "):
            steps.append(running.step(step, timeout))
            if steps[-1]["status"] != 0:
                break
        for each in steps:
            each["out"], each["err"] = running.without_places(each["out"]), running.without_places(each["err"])
        return {"steps": steps, "files": running.files()}


def run_all(side: Side, asked: list[tuple[str, str]], jobs: int, timeout: float) -> dict[str, dict]:
    """Answers by the first text of each pair; the second is what runs."""
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        answers = pool.map(lambda pair: run(side, pair[1], timeout), asked)
        return {pair[0]: answer for pair, answer in zip(asked, answers)}


def timed_out(answer: dict) -> bool:
    return any(step["status"] == "timed out" for step in answer["steps"])
