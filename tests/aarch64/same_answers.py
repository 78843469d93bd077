#!/usr/bin/env python3
"""same_answers.py BUILD ARM_BUILD [--only REGEX]: the program for Linux on Arm answers what the x86-64 program answers.

Runs the commands of commands.txt by BUILD/slipway and by ARM_BUILD/slipway, the latter under qemu-aarch64-static with the
libraries of ARM_BUILD/sysroot, and compares exit status, output and files. Words must be the same, and numbers to a relative 1e-9.
What the program measured of itself is left out, as in determinism_test.py. Prints a line for each command.
"""
import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # Tests read every file of the source tree.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "determinism"))

from determinism_test import Surroundings, commands_of

ALLOWED = 1e-9
# A part of a word, as the 8 of "llama-8b" or a hexadecimal digest, is no number: it must be the same.
NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")


def relative_difference(a, b):
    a, b = float(a), float(b)
    return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))


def difference_of(one, other):
    """The worst relative difference of the numbers; None where words differ."""
    if NUMBER.split(one) != NUMBER.split(other):
        return None
    return max(map(relative_difference, NUMBER.findall(one), NUMBER.findall(other)), default=0.0)


def defects_of(expected, usual, arm):
    """Lines that differ, and the worst relative difference of all numbers."""
    worst, defects = 0.0, []
    last = max(name for name in usual if name.endswith("exit status"))
    if usual[last] != str(expected).encode():
        error = usual[last.replace("exit status", "standard error")].decode(errors="replace")
        defects.append(f"x86-64: exit status {usual[last].decode()} instead of {expected}: {error[:400]}")
    for name in sorted(usual.keys() | arm.keys()):
        lines = [answer.get(name, b"there is no such file").split(b"\n") for answer in (usual, arm)]
        if len(lines[0]) != len(lines[1]):
            shown = b" ".join(lines[1])[:400].decode(errors="replace")
            defects.append(f"{name}: {len(lines[0])} and {len(lines[1])} lines; aarch64: {shown}")
        for number, (a, b) in enumerate(zip(*lines), start=1):
            difference = 0.0 if a == b else difference_of(a, b)
            worst = max(worst, difference or 0.0)
            if difference is None or difference > ALLOWED:
                shown = [side[:160].decode(errors="replace") for side in (a, b)]
                defects.append(f"{name}, line {number}:\n      {shown[0]}\n      {shown[1]}")
    return defects, worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("arm_build", type=pathlib.Path)
    parser.add_argument("--only", metavar="REGEX", help="run only the commands in which this is found")
    chosen = parser.parse_args()
    qemu = shutil.which("qemu-aarch64-static")
    if not qemu:
        sys.exit("qemu-aarch64-static is missing; install qemu-user-static")
    programs = [(build / "slipway").resolve() for build in (chosen.build, chosen.arm_build)]
    for program in programs:
        if not os.access(program, os.X_OK):
            sys.exit(f"there is no program {program}; make check-aarch64 builds it")
    commands = commands_of(pathlib.Path(__file__).with_name("commands.txt"), chosen.only)
    different, worst_of_all = 0, 0.0
    print("relative difference   x86-64 s   aarch64 s   command")
    for number, each in enumerate(commands):
        with tempfile.TemporaryDirectory(prefix="slipway-aarch64-") as name:
            answers, seconds = [], []
            for side, program in zip(("x86", "arm"), programs):
                folder = pathlib.Path(name) / side
                under = [qemu, "-L", str((chosen.arm_build / "sysroot").resolve())] if side == "arm" else []
                began = time.monotonic()
                answers.append(Surroundings(program, folder, False, None, under).answer(each, number))
                seconds.append(time.monotonic() - began)
            defects, worst = defects_of(each.status, *answers)
        different, worst_of_all = different + bool(defects), max(worst_of_all, worst)
        result = "DIFFERENT" if defects else "0 (same bytes)" if answers[0] == answers[1] else f"{worst:.1e}"
        print(f"{result:<19}   {seconds[0]:8.1f}   {seconds[1]:9.1f}   slipway {each.line}", flush=True)
        for defect in defects[:6]:
            print(f"    {defect}")
        if len(defects) > 6:
            print(f"    ... and {len(defects) - 6} more")
    print(f"{len(commands)} commands, {different} different, worst relative difference {worst_of_all:.1e} (allowed: {ALLOWED})")
    return 1 if different or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
