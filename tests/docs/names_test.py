#!/usr/bin/env python3
"""names_test.py SLIPWAY: every command that a document shows names a subcommand and options that exist.

Documents are all *.md of the tree but those of foreign files and changes. A command is `slipway SUBCOMMAND ...` in a
fenced block, with what `\\` continues, or between backquotes. Options are those of `slipway SUBCOMMAND --help`.
"""
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = ("CHANGELOG.md",)  # it names what was renamed
FENCED = re.compile(r"^```\w*[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\n]*(?:\n[^`\n]+)*)`")
COMMAND = re.compile(r"(?:^|[\s/'\"(=])slipway ((?!slipway)[a-z]+(?![\w:-])[^\n|;&>)]*)", re.MULTILINE)
OPTION = re.compile(r"(?:^|\s)(--[a-z][\w-]*|-[a-zA-Z])(?![\w-])")


def documents():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=SOURCE, capture_output=True, text=True, check=False)
    tracked = [SOURCE / name for name in listed.stdout.split()]
    paths = tracked or [path for path in SOURCE.rglob("*.md") if "build" not in path.parts]
    return [path for path in paths if path.name not in LEFT_OUT]


def commands_in(text):
    """Pairs of a subcommand and its options."""
    fenced = FENCED.findall(text)
    shown = [line for block in fenced for line in block.replace("\\\n", " ").splitlines()]
    shown += [quoted.replace("\n", " ") for quoted in QUOTED.findall(FENCED.sub("", text))]
    for line in shown:
        line = re.sub(r"'[^']*'|\"[^\"]*\"", "''", line)  # values are no options
        line = line.split(" # ")[0]
        for command in COMMAND.findall(line):
            words = command.split()
            yield words[0], OPTION.findall(" " + command)


def help_of(slipway, subcommand):
    done = subprocess.run([slipway, subcommand, "--help"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def mistakes(slipway):
    helps, found, seen = {}, [], 0
    for document in documents():
        for subcommand, options in commands_in(document.read_text()):
            seen += 1
            if subcommand not in helps:
                helps[subcommand] = help_of(slipway, subcommand)
            text, where = helps[subcommand], document.relative_to(SOURCE)
            if text is None:
                found.append(f"{where}: slipway {subcommand}: there is no such command")
                continue
            known = set(OPTION.findall(text.replace(",", " "))) | {"--help", "-h"}
            found += [f"{where}: slipway {subcommand} {each}: no such option" for each in options if each not in known]
    return found, seen


def check_of_this_test():
    wrong = "Run `slipway simulat x` or\n```\n$ slipway plan s.yaml \\\n    --emitt megatron --set 'a=--b'\n```\n"
    assert list(commands_in(wrong)) == [("plan", ["--emitt", "--set"]), ("simulat", [])], list(commands_in(wrong))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    check_of_this_test()
    wrong, commands = mistakes(sys.argv[1])
    print("\n".join(wrong) or f"{commands} commands name what exists")
    sys.exit(1 if wrong or commands == 0 else 0)
