#!/usr/bin/env python3
"""commands_test.py BUILD DOCUMENT: runs the commands of a document as a reader would, and compares what they print.

A fenced block ```console holds commands and their output:

    $ slipway simulate s.yaml --set layout.tensor=2 \\
        --report step.html
      step time  ...
    ...

Lines after `$ ` are a command, with what `\\` continues. What follows, up to the next command, is its standard
output, line by line. `...` stands for what differs between machines and days: alone on a line for any lines, in a
line for any text. Spaces are compared by where they are, not by how many, because a figure that differs moves columns.
A command without output printed nothing, or `...`. A block with a name behind its language (```yaml mine.yaml) is written to that
file.

All blocks of a document run in one folder, in order. `scenarios` and `tests` lead to those of the tree, `build` to the
build folder, which is on the path. Exit status 77: skipped, since a program that the document needs is missing.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_in(text):
    """Pairs of a command and its output of a console block."""
    pairs = []
    continues = False
    for line in text.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], []))
        elif continues:
            pairs[-1] = (pairs[-1][0] + "\n" + line, pairs[-1][1])
        elif pairs:
            pairs[-1][1].append(line)
        else:
            raise SystemExit(f"a console block begins with output: {line}")
        continues = not pairs[-1][1] and pairs[-1][0].endswith("\\")
    return pairs


def same_line(shown, printed):
    parts = re.split(r"\s*\.\.\.\s*", " ".join(shown.split()))
    return re.fullmatch(".*".join(map(re.escape, parts)), " ".join(printed.split())) is not None


def difference(shown, printed):
    """The first shown line that is not there in order; None: all are, and nothing else."""
    shown = [line.rstrip() for line in shown if line.strip()]
    printed = [line for line in printed if line.strip()]
    at, gap = 0, False
    for line in shown:
        if line.strip() == "...":
            gap = True
            continue
        found = next((i for i in range(at, len(printed)) if same_line(line, printed[i])), None)
        if found is None or (found > at and not gap):
            return f"shown:   {line}\nprinted: {printed[at] if at < len(printed) else '(nothing more)'}"
        at, gap = found + 1, False
    if at < len(printed) and not gap:
        return f"printed, but not shown: {printed[at]}"
    return None


def run_document(build, document):
    failures = commands = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, target in {"scenarios": SOURCE / "scenarios", "tests": SOURCE / "tests", "build": build}.items():
            os.symlink(target, pathlib.Path(folder) / name)
        environment = {**os.environ, "PATH": f"{build}:{os.environ['PATH']}", "COLUMNS": "120", "LC_ALL": "C.UTF-8",
                       "SLIPWAY_RANK": str(build / "slipway-rank")}  # fmt: skip
        for kind, name, text in BLOCK.findall(document.read_text()):
            if name:
                (pathlib.Path(folder) / name).write_text(text)
            if kind != "console":
                continue
            for command, shown in commands_in(text):
                if "execute" in command and not (build / "slipway-rank").exists():
                    print("the rest is skipped: slipway-rank is not built")
                    sys.exit(1 if failures else 77)
                commands += 1
                done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
                printed = [line.split("\r")[-1] for line in done.stdout.splitlines()]
                why = difference(shown, printed)
                if done.returncode != 0:
                    why = f"exit status {done.returncode}"
                if why is not None:
                    failures += 1
                    print(f"{document}: $ {command}\n{why}\n--- it printed:\n{done.stdout}---")
    if commands == 0:
        print(f"{document} has no command in a console block")
    return failures or commands == 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(1 if run_document(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])) else 0)
