"""unittest.main, which ends with 77 and `skipped: reason` where a case was skipped: tests/not_run.py then names it."""

import sys
import unittest


def main():
    ran = unittest.main(module="__main__", exit=False).result
    if ran.wasSuccessful() and ran.skipped:
        print("skipped: " + "; ".join(dict.fromkeys(reason for _, reason in ran.skipped)))
        sys.exit(77)
    sys.exit(0 if ran.wasSuccessful() else 1)
