#!/usr/bin/env python3
"""Runs many commands of two builds of slipway and says whether their answers are the same.

    same_answers.py --before TREE --after TREE [--only REGEX] [--jobs N] [--verbose]
    same_answers.py --before TREE --record FILE
    same_answers.py --against FILE --after TREE

TREE is a source tree; its program is TREE/build/slipway. The commands are those of commands.txt. Numbers, names,
rows and exit statuses count; the words of sentences do not. renamed.txt says which keys and files have new names.
A command that the old program does not have must exit with status 0 or 2.
The exit status is 0 only if all answers are the same.
"""
import argparse
import json
import os
import re
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # Tests read every file of the source tree.

from compare_answers import Comparison, compare, compare_new
from renaming import Renaming
from run_commands import Side, commands_of, run_all, timed_out

HERE = Path(__file__).resolve().parent


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, metavar="TREE", help="source tree of the old commit")
    parser.add_argument("--after", type=Path, metavar="TREE", help="source tree of the new commit")
    parser.add_argument("--before-program", type=Path, metavar="FILE", help="instead of TREE/build/slipway")
    parser.add_argument("--after-program", type=Path, metavar="FILE", help="instead of TREE/build/slipway")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the answers of --before there")
    parser.add_argument("--against", type=Path, metavar="FILE", help="take the answers of --before from there")
    parser.add_argument("--only", metavar="REGEX", help="run only the commands in which this is found")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="commands at the same time")
    parser.add_argument("--timeout", type=float, default=120, metavar="S", help="seconds for each step of a command")
    parser.add_argument("--exact-bundles", action="store_true", help="bundles (.slip) count, too")
    parser.add_argument("--verbose", action="store_true", help="show the sentences that differ")
    parser.add_argument("--commands", type=Path, default=HERE / "commands.txt", metavar="FILE")
    parser.add_argument("--renamed", type=Path, default=HERE / "renamed.txt", metavar="FILE")
    chosen = parser.parse_args()
    if chosen.before is None and chosen.against is None:
        parser.error("give --before TREE or --against FILE")
    if chosen.after is None and chosen.record is None:
        parser.error("give --after TREE, or --record FILE alone")
    return chosen


def side_of(tree: Path, program: Path | None) -> Side:
    program = (program or tree / "build" / "slipway").resolve()
    if not os.access(program, os.X_OK):
        sys.exit(f"there is no program {program}; build it, or name it with --before-program or --after-program")
    return Side(tree.resolve(), program)


def answers_before(chosen: argparse.Namespace, commands: list) -> dict:
    if chosen.against:
        return json.loads(chosen.against.read_text())
    side = side_of(chosen.before, chosen.before_program)
    old = [each.text for each in commands if not each.only_after]
    return run_all(side, [(text, text) for text in old], chosen.jobs, chosen.timeout)


def answers_after(chosen: argparse.Namespace, commands: list, renaming: Renaming) -> dict:
    side = side_of(chosen.after, chosen.after_program)
    asked = [(each.text, each.after or (each.text if each.only_after else renaming.command(each.text)))
             for each in commands]
    return run_all(side, asked, chosen.jobs, chosen.timeout)


def say_difference(text: str, found: Comparison, most: int = 6) -> None:
    print(f"DIFFERENT: {text}")
    for line in found.differences[:most]:
        print(f"  {line}")
    if len(found.differences) > most:
        print(f"  ... and {len(found.differences) - most} more")


def say_ignored(results: dict[str, Comparison], verbose: bool) -> None:
    for text, found in results.items():
        if found.lines_of_words or found.bundles:
            print(f"ignored: {found.lines_of_words} lines of words, {found.bundles} bundles: {text}")
        if verbose:
            print("".join(f"    {line}\n" for line in found.word_diff), end="")


def summary(results: dict[str, Comparison]) -> str:
    different = sum(bool(found.differences) for found in results.values())
    totals = {
        "lines of words that differ": sum(found.lines_of_words for found in results.values()),
        "bundles that differ": sum(found.bundles for found in results.values()),
        "wall times and the like": sum(found.dropped for found in results.values()),
        "items of keys that came or went (renamed.txt)": sum(found.come_or_gone for found in results.values()),
    }
    ignored = ", ".join(f"{number} {what}" for what, number in totals.items())
    return f"{len(results)} commands, {len(results) - different} equal, {different} different, ignored: {ignored}"


def record(path: Path, answers: dict) -> int:
    path.write_text(json.dumps(answers))
    late = [text for text, answer in answers.items() if timed_out(answer)]
    for text in late:
        print(f"TIMED OUT: {text}")
    print(f"{len(answers)} commands recorded in {path}, {len(late)} timed out")
    return 1 if late else 0


def main() -> int:
    chosen = options()
    began = time.monotonic()
    commands = [each for each in commands_of(chosen.commands) if not chosen.only or re.search(chosen.only, each.text)]
    renaming = Renaming.read(chosen.renamed)
    before = answers_before(chosen, commands)
    if chosen.record:
        status = record(chosen.record, before)
        if chosen.after is None or status:
            return status
    after = answers_after(chosen, commands, renaming)
    results = {each.text: compare_new(after[each.text]) if each.only_after else
               compare(before.get(each.text), after[each.text], renaming, chosen.exact_bundles) for each in commands}
    for text, found in results.items():
        if found.differences:
            say_difference(text, found)
    say_ignored(results, chosen.verbose)
    print(f"after {time.monotonic() - began:.0f} s:")
    print(summary(results))
    return 0 if results and not any(found.differences for found in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
