#!/usr/bin/env python3
"""not_run.py BUILD: prints which tests of the build folder BUILD did not run in ctest's last run, with the reason.

It also counts the cases. BUILD/tests/left_out, which CMake writes, says what could not be built; BUILD/tests/ctest.xml,
which `ctest --output-junit tests/ctest.xml` writes, which entries were skipped; BUILD/tests/cases/*.xml, which the test
programs write, which of their cases were.
"""
import glob
import os
import re
import sys
import textwrap
import xml.etree.ElementTree as ElementTree


def left_out(text):
    """Pairs of name and reason from the lines `name<TAB>reason`."""
    return [tuple(line.split("\t", 1)) for line in text.splitlines() if line]


def reason_of(output, otherwise):
    """What a test printed when it skipped: GoogleTest's message, or `skipped: reason`."""
    found = re.search(r": Skipped\n(.+)", output) or re.search(r"skipped: (.+)", output)
    return found.group(1).strip() if found else otherwise


def skipped(xml):
    """Pairs of name and reason of the tests that ctest did not run to a result."""
    pairs = []
    for case in ElementTree.fromstring(xml).iter("testcase"):
        mark = case.find("skipped")
        if mark is not None or case.get("status") in ("notrun", "disabled"):
            message = case.get("status") if mark is None else mark.get("message")
            pairs.append((case.get("name"), reason_of(case.findtext("system-out") or "", message)))
    return pairs


def cases(xml):
    """Of one test program: the number of cases that ran, and pairs of name and reason of those that were skipped."""
    ran, pairs = 0, []
    for case in ElementTree.fromstring(xml).iter("testcase"):
        mark = case.find("skipped")
        if mark is not None or case.get("result") == "skipped":
            message = "" if mark is None else mark.get("message") or ""
            pairs.append((f"{case.get('classname')}.{case.get('name')}", message.split("\n", 1)[-1].strip() or "skipped"))
        elif case.get("status") == "run":
            ran += 1
    return ran, pairs


def report(title, pairs):
    """One paragraph for each reason, with the names that it holds for."""
    names = {}
    for name, reason in pairs:
        names.setdefault(reason, []).append(name)
    lines = []
    for reason, of_reason in names.items():
        lines.append(f"{title} ({len(of_reason)}): {reason}")
        lines += textwrap.wrap(", ".join(of_reason), 110, initial_indent="  ", subsequent_indent="  ",
                               break_long_words=False, break_on_hyphens=False)
    return lines


def text_of(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def main(build):
    unbuilt, xml = text_of(os.path.join(build, "tests", "left_out")), text_of(os.path.join(build, "tests", "ctest.xml"))
    lines = report("Not built", left_out(unbuilt or ""))
    pairs, ran = skipped(xml) if xml else [], 0
    for path in sorted(glob.glob(os.path.join(build, "tests", "cases", "*.xml"))):
        of_program, more = cases(text_of(path))
        ran, pairs = ran + of_program, pairs + more
    lines += report("Skipped", pairs) if xml else ["ctest wrote no results, so what it skipped is not known"]
    print(f"==> {ran} cases of test programs ran")
    print("\n".join(["==> Tests that did not run", *lines]) if lines else
          "==> No test was left out of the build, and ctest skipped none")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
