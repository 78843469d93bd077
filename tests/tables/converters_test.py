#!/usr/bin/env python3
"""The converters of publishers' tables, scenarios/studies/<study>/convert.py.

Guards: runs.csv of a study is what its converter makes of the publisher's table beside it, or has the rows of a sample of
that table (tests/tables/data) where the table itself is not in the tree; rows that cannot be read go to standard error
with the reason; a file with other rows and columns is converted too; another file is refused.

    python3 tests/tables/converters_test.py [Converters.test_dgxc_2025]
"""

import csv
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
STUDIES, DATA = os.path.join(ROOT, "scenarios", "studies"), os.path.join(ROOT, "tests", "tables", "data")
# Rows that no profile or no column lets us read.
REFUSED = {"megatron-golden-2026": 1, "mlperf-2025": 2, "prime-rl-2026": 16}


def converted(study, *tables):
    """Exit status, table and errors."""
    script = os.path.join(STUDIES, study, "convert.py")
    done = subprocess.run([sys.executable, script, *tables], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def rows_of(text):
    lines = [line for line in text.splitlines(True) if not line.startswith("#")]
    return [{key: value for key, value in row.items() if value} for row in csv.DictReader(lines)]


def runs_of(study):
    with open(os.path.join(STUDIES, study, "runs.csv"), encoding="utf-8", newline="") as file:
        return file.read()


def tables_of(study):
    folder = os.path.join(STUDIES, study)
    own = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".csv") and name != "runs.csv"]
    return own, [os.path.join(DATA, name) for name in sorted(os.listdir(DATA)) if name.startswith(study)]


class Converters(unittest.TestCase):
    """A case for each study is added below."""

    def check(self, study):
        own, samples = tables_of(study)
        status, text, errors = converted(study, *(own or samples))
        self.assertEqual(status, 0, errors)
        if own:
            self.assertEqual(text, runs_of(study), f"convert {own} again, and read what changed")
            self.assertEqual(errors.count("refused: "), REFUSED.get(study, 0), errors)
        else:
            known = rows_of(runs_of(study))
            self.assertGreater(len(rows_of(text)), 4)
            for row in rows_of(text):
                self.assertIn(row, known)
        self.check_unseen(study, (own or samples)[0], len(rows_of(converted(study, (own or samples)[0])[1])))

    def check_unseen(self, study, table, rows):
        """Another column, a repeated row and a row with a field too few."""
        with open(table, encoding="utf-8", newline="") as file:
            lines = list(csv.reader(line for line in file if not line.startswith("#")))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.csv")
            with open(path, "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["colour"] + lines[0])
                writer.writerows(["red"] + line for line in lines[1:] + lines[-1:])
                writer.writerow(["red"])
            status, text, errors = converted(study, path)
        self.assertEqual(status, 0, errors)
        self.assertIn("t.csv:%d: refused: it has 1 fields where the header has %d" % (len(lines) + 2, len(lines[0]) + 1),
                      errors)
        self.assertGreaterEqual(len(rows_of(text)), rows)

    def test_a_file_of_other_columns_is_refused_by_what_it_lacks(self):
        status, text, errors = converted("dgxc-2025", os.path.join(STUDIES, "internevo-2023", "throughput.csv"))
        self.assertNotEqual(status, 0)
        self.assertEqual(text, "")
        self.assertIn("the header lacks size, framework", errors)

    def test_a_file_that_cannot_be_read_is_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            binary = os.path.join(folder, "binary.csv")
            with open(binary, "wb") as file:
                file.write(b"model,\xff\xfe\n")
            for path in (binary, os.path.join(folder, "missing.csv")):
                status, text, errors = converted("dgxc-2025", path)
                self.assertNotEqual(status, 0)
                self.assertIn(path + ": cannot be read as a table", errors)
                self.assertNotIn("Traceback", errors)

    def test_old_runs(self):
        status, text, errors = converted("old-runs", os.path.join(DATA, "old-runs.csv"))
        self.assertEqual((status, errors), (0, ""))
        rows = rows_of(text)
        self.assertEqual(len(rows), 4)
        known = {(row["table"], row.get("step_s"), row.get("allocated_bytes")) for row in rows_of(runs_of("ultrascale-2025"))}
        for row in rows:
            self.assertIn((row["table"], row.get("step_s"), row.get("allocated_bytes")), known)
            self.assertIn("trainer: nanotron", row["scenario"])


def add_case(study):
    setattr(Converters, "test_" + study.replace("-", "_"), lambda self: self.check(study))


for each in sorted(os.listdir(STUDIES)):
    if os.path.exists(os.path.join(STUDIES, each, "convert.py")) and each != "old-runs":
        add_case(each)

if __name__ == "__main__":
    unittest.main()
