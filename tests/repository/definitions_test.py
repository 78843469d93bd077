#!/usr/bin/env python3
"""definitions_test.py SOURCE_TREE: a function that X.h declares is defined in X.cpp, and a file has one anonymous namespace.

A definition lies in the room of its declaration (a folder of models/, schedules/, sim/, exec/, scenarios/ or library/), in
a file of its header's name: X.cpp, X_part.cpp, or a file of a folder with one implementation for each device
(exec/transport/cpu, exec/transport/cuda). Functions are read by universal-ctags, and told apart by namespace or class, name
and number of parameters. ELSEWHERE and REOPENED list what is otherwise, with the reason. An entry that nothing needs any
more is an error too.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

FOLDERS = ("models", "schedules", "sim", "exec", "scenarios", "library")
ONE_FOR_EACH_DEVICE = ("cpu", "cuda")

ONE_CLASS = "one class, whose parts have a file each"

# Header: files in which functions that it declares are defined, and why.
ELSEWHERE = {
    "exec/rank/rank_state.h": (ONE_CLASS, (
        "rank_evaluation.cpp", "rank_model.cpp", "rank_ring.cpp", "rank_rows.cpp", "rank_segments.cpp", "rank_step_end.cpp")),
    "library/loading.h": ("between libslipway's types and those inside", ("error.cpp", "predict.cpp")),
    "scenarios/language/keys.h": ("the list of all tables of keys; this one is made of another", ("load_model.cpp",)),
    "scenarios/language/profiles.h": ("the files that a scenario names, each kind with its reader", (
        "hugging_face.cpp", "load_machine.cpp", "load_model.cpp")),
    "schedules/bound/estimate.h": (ONE_CLASS, ("balanced_split.cpp",)),
    "schedules/bound/estimate_parts.h": (ONE_CLASS, ("balanced_split.cpp",)),
    "schedules/check/check.h": ("the list of all invariants", ("passes.cpp",)),
    "schedules/lower/passes.h": (ONE_CLASS, ("ring.cpp",)),
}

# Files that open several anonymous namespaces, and why.
REOPENED = {
    "exec/lanes/lanes.cpp": "one of them lies in the namespace laning",
    "schedules/check/check.cpp": "one invariant after the other, each behind what it needs",
    "schedules/check/passes.cpp": "one invariant after the other, each behind what it needs",
    "schedules/rules/rules.cpp": "rules.h names Rule, which stands between what it reads and the book",
}


def sources():
    for folder in FOLDERS:
        for parent, _, names in os.walk(folder):
            yield from (os.path.join(parent, name) for name in names if name.endswith((".h", ".cpp")))


def room(path):
    folder = os.path.dirname(path)
    if folder == "library/include/slipway":  # the public headers of library/
        return "library"
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
        if (tag.get("_type") == "tag" and "__anon" not in tag.get("scope", "")
                and tag.get("scopeKind") in ("namespace", "class", "struct")):
            yield tag


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def is_place_of(header, path):
    """True if a function that `header` declares may be defined in `path`."""
    if room(path) != room(header):
        return False
    for_a_device = os.path.basename(os.path.dirname(path)) in ONE_FOR_EACH_DEVICE
    return for_a_device or stem(path) == stem(header) or stem(path).startswith(stem(header) + "_")


def is_listed(header, path):
    return room(path) == room(header) and os.path.basename(path) in ELSEWHERE.get(header, ("", ()))[1]


def misplaced(all_tags):
    """Sentences about definitions in another file than their headers', and about entries of ELSEWHERE without one."""
    declared, defined = collections.defaultdict(set), []
    for tag in all_tags:
        function = (tag["scope"], tag["name"], parameters(tag.get("signature", "()")))
        if tag["kind"] == "prototype" and tag["path"].endswith(".h"):
            declared[function].add(tag["path"])
        elif tag["kind"] == "function" and tag["path"].endswith(".cpp") and not tag.get("file"):
            defined.append((function, tag["path"], tag["line"]))
    needed = set()
    for function, path, line in sorted(defined):
        headers = sorted(declared.get(function, ()))
        if not headers or any(is_place_of(header, path) for header in headers):
            continue
        listed = [header for header in headers if is_listed(header, path)]
        needed.update((header, os.path.basename(path)) for header in listed)
        if not listed:
            place = f"{os.path.splitext(headers[0])[0]}.cpp"
            yield (f"{path}:{line}: {function[1]} is declared in {', '.join(headers)}; define it in {place}, "
                   f"or declare it in {os.path.splitext(path)[0]}.h")
    for header, (_, files) in sorted(ELSEWHERE.items()):
        for file in files:
            if (header, file) not in needed:
                yield f"{file} defines nothing of {header} any more: remove it from ELSEWHERE"


def reopened():
    """Sentences about files with several anonymous namespaces, and about entries of REOPENED without."""
    several = set()
    for path in sorted(sources()):
        if path.endswith(".cpp"):
            with open(path, encoding="utf-8") as file:
                count = len(re.findall(r"^namespace \{", file.read(), re.MULTILINE))
            if count > 1:
                several.add(path)
                if path not in REOPENED:
                    yield f"{path} opens {count} anonymous namespaces: make them one, or a file of each story"
    yield from (f"{path} has one anonymous namespace now: remove it from REOPENED" for path in sorted(REOPENED.keys() - several))


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
    wrong = [*misplaced(found), *reopened()]
    print("\n".join(wrong) if wrong else f"{len(found)} functions lie where they are declared")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
