#!/usr/bin/env python3
"""determinism_test.py BUILD [--other BUILD] [--only REGEX]: the same answer everywhere, byte for byte.

Runs the commands of commands.txt twice and compares exit status, output and files. The second time nearly all around
the program is different: locale (with a decimal comma, made with localedef), time zone, folder, home, temporary folder,
umask, one core instead of all, NO_COLOR, terminal. --other takes the second time's program from another build, such as
one with asserts. What the program measured of itself is left out (MEASURED).

A line of commands.txt is a call of slipway without the program's name; && joins several. `replace FILE OLD NEW` changes a
file between them. `! ` before a line: it must exit with 2; else with 0. Relative paths are those of the source tree, and out/ is a fresh folder.
Exit status 77: BUILD has no program, or no locale has a decimal comma; then all else was compared.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SOURCE = pathlib.Path(__file__).resolve().parents[2]
INPUTS = "tests/same_answers/inputs"
COMMA = "de_DE"
MEASURED = [
    (rb'("(?:simulate_wall_s|screening_s|simulation_s)": )[-+.\deE]+', rb"\1TIME"),
    (rb"\b(screened|simulated)( in) [\d.,]+ (?:ns|\xc2\xb5s|us|ms|s|min)\b", rb"\1\2 TIME"),
    # Progress of what takes over two seconds.
    (rb"(?m)^[a-z]+ing\b.*: (?:.*after )?\d+ s(?: of about \d+ s)?(?:, .+/s)?(?:, about \d+ s left)?$\n?", rb""),
    (rb"(?m)^(\s*date: |.*\bslipway calibrate .*, )\d{4}-\d\d-\d\d", rb"\1DAY"),
]


class Commands:
    def __init__(self, line):
        self.line = line
        self.status = 2 if line.startswith("! ") else 0
        self.steps = [shlex.split(step) for step in line.removeprefix("! ").replace("{inputs}", INPUTS).split(" && ")]


def commands_of(path, only):
    lines = [line.strip() for line in path.read_text().splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    return [Commands(line) for line in lines if not only or re.search(only, line)]


class Surroundings:
    """What a command runs in. `changed`: everything but the command is different. `under`: what runs the program, as an emulator."""

    def __init__(self, program, folder, changed, locales, under=()):
        self.program, self.folder, self.changed, self.under = program, folder, changed, under
        base = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "COLUMNS": "120"}
        usual = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}
        other = {"LC_ALL": f"{COMMA}.UTF-8" if locales else "C", "LANG": f"{COMMA}.UTF-8", "TZ": "Asia/Kathmandu",
                 "TERM": "xterm-256color", "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "LANGUAGE": "de"}
        self.environment = base | (other | {"LOCPATH": str(locales)} if locales else other) if changed else base | usual

    def place(self, number):
        """A folder with the tree's names, as a user has it who works there."""
        place = self.folder / (f"somewhere/else with spaces/{number}" if self.changed else f"here/{number}")
        (place / "out").mkdir(parents=True)
        for name in ("scenarios", "tests"):
            (place / name).symlink_to(SOURCE / name)
        for name in ("home", "tmp"):
            (place / f".{name}").mkdir()
        return place

    def begin(self):
        os.umask(0o077 if self.changed else 0o022)
        if self.changed:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    def call(self, words, place):
        environment = self.environment | {"HOME": str(place / ".home"), "TMPDIR": str(place / ".tmp")}
        return subprocess.run([*self.under, str(self.program), *words], cwd=place, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, preexec_fn=self.begin, timeout=600)

    def answer(self, commands, number):
        """Names of what came out, with its bytes."""
        place = self.place(number)
        answer = {}
        for at, words in enumerate(commands.steps):
            if words[0] == "replace":
                path = place / words[1]
                path.write_text(path.read_text().replace(words[2], words[3]))
                continue
            done = self.call(words, place)
            answer[f"step {at + 1}: exit status"] = str(done.returncode).encode()
            answer[f"step {at + 1}: standard output"] = done.stdout
            answer[f"step {at + 1}: standard error"] = done.stderr
            if done.returncode != 0:
                break
        for path in sorted((place / "out").rglob("*")):
            if path.is_file():
                answer[f"{path.relative_to(place)}"] = path.read_bytes()
        left = [str(path) for name in ("home", "tmp") for path in (place / f".{name}").rglob("*")]
        answer["left in the home and the temporary folder"] = "\n".join(left).encode()
        here = str(place).encode()  # the absolute path of what a scenario names
        return {name: without_measured(value.replace(here, b"{here}")) for name, value in answer.items()}


def without_measured(text):
    for pattern, instead in MEASURED:
        text = re.sub(pattern, instead, text)
    return text


def locales_in(folder):
    """A folder with a locale whose decimal sign is a comma; None where it cannot be made."""
    try:
        subprocess.run(["localedef", "-i", COMMA, "-f", "UTF-8", str(folder / f"{COMMA}.UTF-8")], check=True,
                       capture_output=True)
    except (OSError, subprocess.CalledProcessError) as reason:
        print(f"no locale with a decimal comma, all else was compared: {reason}; install the package locales")
        return None
    return folder


def first_difference(a, b):
    """The first line that differs, of both."""
    for one, other in zip(a.splitlines(), b.splitlines()):
        if one != other:
            at = next((i for i, (x, y) in enumerate(zip(one, other)) if x != y), min(len(one), len(other)))
            begin = max(0, at - 60)
            return one[begin:at + 60], other[begin:at + 60]
    return b"%d bytes" % len(a), b"%d bytes" % len(b)


def defects_of(commands, usual, changed):
    last = max(name for name in usual if name.endswith("exit status"))
    if usual[last] != str(commands.status).encode():
        error = usual[last.replace("exit status", "standard error")].decode(errors="replace")
        yield f"exit status {usual[last].decode()} instead of {commands.status}: {error[:400]}"
    for name in sorted(usual.keys() | changed.keys()):
        a, b = usual.get(name), changed.get(name)
        if a is None or b is None:
            yield f"{name}: only {'the first' if b is None else 'the second'} time"
        elif a != b:
            one, other = first_difference(a, b)
            yield f"{name}:\n      {one.decode(errors='replace')}\n      {other.decode(errors='replace')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--other", type=pathlib.Path, help="the build of the second time")
    parser.add_argument("--only", help="run only the commands in which this is found")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    programs = [(build / "slipway").resolve() for build in (chosen.build, chosen.other or chosen.build)]
    for program in programs:
        if not os.access(program, os.X_OK):
            print(f"there is no {program}")
            return 77
    commands = commands_of(pathlib.Path(__file__).with_name("commands.txt"), chosen.only)
    defects = 0
    with tempfile.TemporaryDirectory(prefix="slipway-determinism-") as name:
        folder = pathlib.Path(name)
        (folder / "locales").mkdir()
        locales = locales_in(folder / "locales")
        sides = [Surroundings(program, folder, changed, locales) for program, changed in zip(programs, (False, True))]
        with ThreadPoolExecutor(max_workers=max(1, chosen.jobs)) as pool:
            answers = [list(pool.map(side.answer, commands, range(len(commands)))) for side in sides]
        for each, usual, changed in zip(commands, *answers):
            found = list(defects_of(each, usual, changed))
            defects += len(found)
            for defect in found:
                print(f"slipway {each.line}\n    {defect}")
    print(f"{len(commands)} commands, {defects} differences")
    if defects or not commands:
        return 1
    return 0 if locales else 77


if __name__ == "__main__":
    sys.exit(main())
