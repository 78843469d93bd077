"""docs/python.ipynb, cell by cell as a notebook runs it, and the Python blocks of docs/python.md, one after another.

Run as tests/python/worker_test.py, with DOCUMENTS, the folder docs.
"""

import ast
import contextlib
import io
import json
import os
import re
import unittest
from pathlib import Path

DOCUMENTS = Path(os.environ.get("DOCUMENTS", "docs"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(source, names):
    """What a notebook would show of a cell: the value of its last line, or None."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(tree, "<cell>", "exec"), names)
        return None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


@unittest.skipUnless((DOCUMENTS / "python.ipynb").exists(), "the documents are not here")
class Notebook(unittest.TestCase):
    def setUp(self):
        self.cells = json.loads((DOCUMENTS / "python.ipynb").read_text())["cells"]

    def test_runs_cell_by_cell_and_shows_tables_and_pages(self):
        names = {"__name__": "__main__"}
        shown = []
        for cell in self.cells:
            if cell["cell_type"] == "code":
                with self.subTest(cell["id"]):
                    value = run("".join(cell["source"]), names)
                    if hasattr(value, "_repr_html_"):
                        shown.append(value._repr_html_())
                    elif value is not None:
                        self.assertTrue(repr(value))
        self.assertTrue(any(each.startswith("<iframe srcdoc=") for each in shown))
        self.assertTrue(any(each.startswith("<table>") for each in shown))
        self.assertTrue(any(each.startswith("<pre>") for each in shown))

    def test_holds_no_outputs(self):
        for cell in self.cells:
            self.assertFalse(cell.get("outputs"), cell["id"])


@unittest.skipUnless((DOCUMENTS / "python.md").exists(), "the documents are not here")
class Document(unittest.TestCase):
    def test_runs_block_by_block(self):
        blocks = BLOCK.findall((DOCUMENTS / "python.md").read_text())
        self.assertTrue(blocks)
        names = {"__name__": "__main__"}
        for block in blocks:
            with self.subTest(block):
                run(block, names)


if __name__ == "__main__":
    unittest.main()
