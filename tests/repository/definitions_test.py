#!/usr/bin/env python3
"""definitions_test.py SOURCE_TREE: a function that a header declares is defined in the header's room.

A room is a folder of models/, schedules/, sim/, exec/ and scenarios/. Functions are read by universal-ctags, and told
apart by namespace, name and number of parameters. A folder that holds one implementation for each device
(exec/transport/cpu, exec/transport/cuda) belongs to the room around it.
"""
import json
import os
import shutil
import subprocess
import sys

FOLDERS = ("models", "schedules", "sim", "exec", "scenarios")
ONE_FOR_EACH_DEVICE = ("cpu", "cuda")


def sources():
    for folder in FOLDERS:
        for parent, _, names in os.walk(folder):
            yield from (os.path.join(parent, name) for name in names if name.endswith((".h", ".cpp")))


def room(path):
    folder = os.path.dirname(path)
    return os.path.dirname(folder) if os.path.basename(folder) in ONE_FOR_EACH_DEVICE else folder


def parameters(signature):
    """The number of commas outside brackets, and one."""
    inside = signature.strip()[1:].rsplit(")", 1)[0].strip()
    if inside in ("", "void"):
        return 0
    depth = count = 0
    for character in inside:
        depth += character in "<({["
        depth -= character in ">)}]"
        count += character == "," and depth == 0
    return count + 1


def tags():
    command = ["ctags", "--languages=C++", "--langmap=C++:.h.cpp", "--kinds-C++=fp", "--fields=*",
               "--output-format=json", "-f", "-", "-L", "-"]
    done = subprocess.run(command, input="\n".join(sources()), capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        if tag.get("_type") == "tag" and "__anon" not in tag.get("scope", "") and tag.get("scopeKind") == "namespace":
            yield tag


def misplaced(all_tags):
    """Sentences about definitions in another room than every declaration of that function."""
    declared, defined = {}, []
    for tag in all_tags:
        function = (tag["scope"], tag["name"], parameters(tag.get("signature", "()")))
        if tag["kind"] == "prototype" and tag["path"].endswith(".h"):
            declared.setdefault(function, set()).add(tag["path"])
        elif tag["kind"] == "function" and tag["path"].endswith(".cpp") and not tag.get("file"):
            defined.append((function, tag["path"], tag["line"]))
    for function, path, line in sorted(defined):
        headers = declared.get(function, set())
        if headers and room(path) not in {room(header) for header in headers}:
            yield f"{path}:{line}: {function[1]} is declared in {', '.join(sorted(headers))}; define it in that room"


def main(tree):
    if shutil.which("ctags") is None or "json" not in subprocess.run(
            ["ctags", "--list-features"], capture_output=True, text=True).stdout:
        print("skipped: universal-ctags is missing (Debian: setup/debian.sh test)")
        return 77
    os.chdir(tree)
    found = list(tags())
    if len(found) < 1000:
        print(f"only {len(found)} functions were found; the sources are not read")
        return 1
    wrong = list(misplaced(found))
    print("\n".join(wrong) if wrong else f"{len(found)} functions lie where they are declared")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
