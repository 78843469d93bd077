#!/usr/bin/env python3
"""tests/not_run.py names every test that did not run, once, with its reason."""
import unittest

import not_run

XML = """<testsuite>
  <testcase name="Passed" status="run"><system-out>Skipped is only a word here</system-out></testcase>
  <testcase name="Failed" status="fail"><failure message=""/><system-out/></testcase>
  <testcase name="Mpirun.A" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>
/a/b_test.cpp:22: Skipped
mpirun is not on PATH

[  SKIPPED ] Mpirun.A (0 ms)</system-out></testcase>
  <testcase name="Mpirun.B" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>
/a/b_test.cpp:22: Skipped
mpirun is not on PATH
</system-out></testcase>
  <testcase name="gpu" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>skipped: no GPU
</system-out></testcase>
  <testcase name="silent" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>"""


class NotRun(unittest.TestCase):
    def test_a_skipped_test_has_the_reason_that_it_printed(self):
        self.assertEqual(not_run.skipped(XML), [
            ("Mpirun.A", "mpirun is not on PATH"), ("Mpirun.B", "mpirun is not on PATH"), ("gpu", "no GPU"),
            ("silent", "Unable to find executable")])

    def test_a_reason_is_printed_once_with_all_its_tests(self):
        self.assertEqual(not_run.report("Skipped", not_run.skipped(XML))[:2],
                         ["Skipped (2): mpirun is not on PATH", "  Mpirun.A, Mpirun.B"])

    def test_what_was_not_built_is_a_line_with_a_tab(self):
        self.assertEqual(not_run.left_out("cuda_host_test\tnvcc 13 is not on PATH\n"),
                         [("cuda_host_test", "nvcc 13 is not on PATH")])


if __name__ == "__main__":
    unittest.main()
