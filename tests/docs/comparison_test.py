#!/usr/bin/env python3
"""The comparison of commands_test.py finds what differs, and takes what may."""
import unittest

from commands_test import commands_in, difference, same_line


class Comparison(unittest.TestCase):
    def test_spaces_count_only_as_separators(self):
        self.assertTrue(same_line("  step   1.03 s", " step 1.03   s"))
        self.assertFalse(same_line("step 1.03s", "step 1.03 s"))
        self.assertFalse(same_line("step 1.03 s", "step 1.04 s"))

    def test_dots_stand_for_any_text(self):
        self.assertTrue(same_line("step 1/9  loss 5.5571 ... s", "step 1/9 loss 5.5571  lr 3.00e-03  0.041 s"))
        self.assertTrue(same_line("trace: .../run/trace.json", "trace: /a/b/run/trace.json"))
        self.assertFalse(same_line("step 1/9 ... s", "step 1/9  loss 5.5571"))

    def test_a_figure_that_differs_is_found(self):
        self.assertIsNone(difference(["a", "...", "c 1"], ["a", "b", "b", "c 1"]))
        self.assertIn("c 1", difference(["a", "...", "c 1"], ["a", "b", "c 2"]))

    def test_lines_may_be_missing_only_where_dots_are(self):
        self.assertIn("shown:   c", difference(["a", "c"], ["a", "b", "c"]))
        self.assertIn("not shown: b", difference(["a"], ["a", "b"]))
        self.assertIsNone(difference(["a", "..."], ["a", "b"]))
        self.assertIn("nothing more", difference(["a", "b"], ["a"]))

    def test_a_command_goes_on_behind_a_backslash(self):
        text = "$ one \\\n    two\nout\n$ three\n"
        self.assertEqual(commands_in(text), [("one \\\n    two", ["out"]), ("three", [])])


if __name__ == "__main__":
    unittest.main()
