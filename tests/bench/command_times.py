#!/usr/bin/env python3
"""command_times.py PROGRAM [OLD]: processor time (user and system) of short commands, in turns with another build's.

Medians of 21 runs. OLD is the program of another build folder."""
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = [["--help"], ["list", "schedules"], ["memory", "scenarios/examples/llama-8b-64xh100.yaml"],
            ["simulate", "scenarios/examples/llama-8b-64xh100.yaml"]]


def processor_ms(program, words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def main():
    programs = [os.path.abspath(path) for path in sys.argv[1:]]
    if not 1 <= len(programs) <= 2:
        sys.exit(__doc__)
    for words in COMMANDS:
        times = [[] for _ in programs]
        for _ in range(21):
            for program, of in zip(programs, times):
                of.append(processor_ms(program, words))
        medians = [statistics.median(of) for of in times]
        share = f", {medians[0] / medians[1]:.2f} of the old one" if len(medians) == 2 else ""
        print(f"{' '.join(words)}: " + ", ".join(f"{median:.1f} ms" for median in medians) + share)


if __name__ == "__main__":
    main()
