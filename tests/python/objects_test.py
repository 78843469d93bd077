"""Answers as objects: attributes, tables that numpy, pandas and polars take, timelines, pages, and the types that are declared.

Run as tests/python/worker_test.py.
"""

import importlib.util
import inspect
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import typing
import unittest
from array import array
from pathlib import Path

import slipway

EXAMPLES = Path(os.environ["EXAMPLES"])
LLAMA = EXAMPLES / "llama-8b-64xh100.yaml"
TINY = EXAMPLES / "tiny-llama-cpu.yaml"


def needs(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"{' and '.join(missing)} of Python missing")


class Answers(unittest.TestCase):
    def test_have_their_keys_as_attributes(self):
        prediction = slipway.predict(LLAMA)
        self.assertEqual(prediction.step_time_s, prediction["step_time_s"])
        self.assertEqual(prediction.interval, (prediction["step_time_low_s"], prediction["step_time_high_s"]))
        self.assertIn("step_time_s", dir(prediction))
        with self.assertRaisesRegex(AttributeError, "this answer has no 'step_times'; it has scenario, step_time_s"):
            prediction.step_times
        self.assertIs(type(prediction.to_dict()), dict)
        self.assertEqual(json.loads(json.dumps(prediction)), prediction.to_dict())

    def test_have_tables_in_place_of_lists_of_dicts(self):
        explanation = slipway.explain(TINY)
        self.assertEqual(list(explanation.spent["part"]), [row["part"] for row in explanation["spent"]])
        memory = slipway.memory(TINY)
        self.assertEqual(list(memory.stages["timeline.total"]), [stage["timeline"]["total"] for stage in memory["stages"]])
        plan = slipway.plan(TINY, top=4)
        self.assertEqual(plan.layouts.row_count, 4)
        self.assertEqual(plan.best.step_time_s, plan["best"][0]["step_time_s"])
        self.assertEqual(plan.best_scenario.predict().step_time_s, plan.best.step_time_s)
        self.assertEqual(plan.best_scenario.predict().scenario, slipway.predict(TINY).scenario)
        study = slipway.study(TINY, {"schedule.name": ["gpipe", "1f1b"], "schedule.global_batch": [8, 16]})
        self.assertEqual(study.points["schedule.name"], ["gpipe", "gpipe", "1f1b", "1f1b"])
        self.assertEqual(list(study.points["schedule.global_batch"]), list(map(type(study.points["schedule.global_batch"][0]),
                                                                               [8, 16, 8, 16])))

    def test_have_the_memory_of_pipeline_ranks(self):
        prediction = slipway.predict(LLAMA)
        self.assertEqual(list(prediction.memory["pipeline_rank"]), [0, 1, 2, 3])
        self.assertEqual(list(prediction.memory["needed_memory_bytes"]), prediction["needed_memory_bytes"])

    def test_declare_keys_that_they_have(self):
        answers = {slipway.Prediction: slipway.predict(LLAMA), slipway.Memory: slipway.memory(TINY),
                   slipway.Explanation: slipway.explain(TINY), slipway.Plan: slipway.plan(TINY),
                   slipway.Study: slipway.study(TINY, {"schedule.name": ["gpipe"]})}
        for kind, answer in answers.items():
            for name, declared in typing.get_type_hints(kind).items():
                with self.subTest(kind.__name__, name=name):
                    value = getattr(answer, name)
                    origin = typing.get_origin(declared) or declared
                    self.assertIsInstance(value, (int, float) if origin is float else origin)


class Timelines(unittest.TestCase):
    def test_are_the_last_step_of_the_trace(self):
        timeline = slipway.predict(TINY, all_ranks=True).timeline
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            slipway.predict(TINY, trace=trace)
            events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
        last = max(event["args"]["step"] for event in events)
        traced = sorted((event["pid"], event["name"]) for event in events if event["args"]["step"] == last)
        self.assertEqual(sorted(zip(timeline["rank"], timeline["task"])), traced)
        self.assertTrue(all(start <= end for start, end in zip(timeline["start_s"], timeline["end_s"])))

    def test_have_stage_and_micro_batch_of_each_task(self):
        timeline = slipway.predict(LLAMA).timeline
        rows = [row for row in timeline.rows() if row["kind"] == "forward"]
        self.assertTrue(rows)
        for row in rows:
            self.assertTrue(row["task"].startswith(f"{row['stage']}F{row['micro_batch']}"), row)
        self.assertEqual(len(set(timeline["rank"])), slipway.predict(LLAMA)["simulated_ranks"])

    def test_come_with_the_prediction_where_asked(self):
        prediction = slipway.predict(TINY, timeline=True)
        self.assertEqual(prediction.timeline, slipway.Table(prediction["timeline"]))


class Tables(unittest.TestCase):
    TABLE = slipway.Table.from_rows([{"a": 1.5, "b": 1, "c": "x", "set": {"layout.tensor": 2}, "t": {"u": True}},
                                     {"a": None, "b": 2, "c": None, "set": {"layout.tensor": 4}, "t": {"u": False}}])

    def test_are_columns(self):
        self.assertEqual(list(self.TABLE), ["a", "b", "c", "layout.tensor", "t.u"])
        self.assertEqual(self.TABLE["b"], array("q", [1, 2]))
        self.assertEqual(self.TABLE["a"].typecode, "d")
        self.assertTrue(math.isnan(self.TABLE["a"][1]))
        self.assertEqual(self.TABLE["c"], ["x", None])
        self.assertEqual(self.TABLE["t.u"], [True, False])
        self.assertEqual(list(self.TABLE.rows())[1]["layout.tensor"], 4)
        self.assertEqual(self.TABLE.to_dict()["b"], [1, 2])
        self.assertEqual(slipway.Table({"large": [1 << 70, 1]})["large"], [1 << 70, 1])
        self.assertEqual(slipway.Table({}).row_count, 0)
        self.assertIn("<td>1.5</td>", self.TABLE._repr_html_())


class Pages(unittest.TestCase):
    def test_are_those_of_report_in_a_frame(self):
        for answer in (slipway.predict(TINY), slipway.memory(TINY), slipway.study(TINY, {"schedule.name": ["gpipe", "1f1b"]})):
            page = answer.page()
            self.assertTrue(page.lstrip().lower().startswith("<!doctype html>"), page[:100])
            self.assertIs(answer.page(), page)
            shown = answer._repr_html_()
            self.assertTrue(shown.startswith('<iframe srcdoc="'))
            self.assertNotIn("<script", shown)  # all of it is quoted


    def test_are_tables_where_the_command_has_none(self):
        shown = slipway.explain(TINY)._repr_html_()
        self.assertTrue(shown.startswith("<p>A step takes"), shown[:80])
        self.assertIn("<table>", shown)
        answer = pickle.loads(pickle.dumps(slipway.predict(TINY)))
        self.assertTrue(answer._repr_html_().startswith("<table>"))

    def test_of_long_work_are_made_along_in_a_notebook(self):
        sys.modules["ipykernel"] = sys
        try:
            study = slipway.study(TINY, {"schedule.name": ["gpipe"]})
            plan = slipway.plan(TINY)
            slipway.explain(TINY)
        finally:
            del sys.modules["ipykernel"]
        for answer in (study, plan):
            self.assertIsNotNone(answer.__dict__["_page"])
            self.assertIn("<iframe", answer._repr_html_())
        self.assertEqual(plan["best"], slipway.plan(TINY)["best"])


class Types(unittest.TestCase):
    def test_are_declared_for_everything_that_is_public(self):
        for name in slipway.__all__:
            thing = getattr(slipway, name)
            functions = [thing] if inspect.isfunction(thing) else [
                each for each_name, each in vars(thing).items()
                if inspect.isfunction(each) and not each_name.startswith("_")] if inspect.isclass(thing) else []
            for function in functions:
                with self.subTest(f"{name}.{function.__name__}"):
                    self.assertTrue(inspect.getdoc(function) or function.__name__ in ("rows", "row", "from_dict", "from_yaml",
                                                                                      "from_file", "text"))
                    parameters = inspect.signature(function).parameters.values()
                    self.assertTrue(all(each.annotation is not each.empty for each in parameters
                                        if each.name not in ("self", "cls")))
                    self.assertIn("return", function.__annotations__)
        self.assertTrue((Path(slipway.__file__).parent / "py.typed").exists())


class Libraries(unittest.TestCase):
    @needs("numpy")
    def test_numpy_takes_columns_without_a_copy(self):
        import numpy

        column = slipway.predict(TINY).timeline["start_s"]
        taken = numpy.asarray(column)
        self.assertEqual(taken.dtype, numpy.float64)
        self.assertEqual(taken.__array_interface__["data"][0], column.buffer_info()[0])

    @needs("pandas")
    def test_pandas_takes_tables(self):
        import pandas

        frame = pandas.DataFrame(slipway.predict(LLAMA).timeline)
        self.assertEqual(str(frame.dtypes["start_s"]), "float64")
        self.assertEqual(str(frame.dtypes["micro_batch"]), "int64")
        self.assertGreater(len(frame.groupby("kind")), 2)
        self.assertEqual(pandas.DataFrame(Tables.TABLE)["layout.tensor"].tolist(), [2, 4])

    @needs("polars")
    def test_polars_takes_tables(self):
        import polars

        frame = polars.DataFrame(slipway.predict(LLAMA).timeline)
        self.assertEqual(frame.schema["start_s"], polars.Float64)
        self.assertEqual(frame.schema["micro_batch"], polars.Int64)
        self.assertEqual(polars.DataFrame(Tables.TABLE)["layout.tensor"].to_list(), [2, 4])

    @needs("nbclient", "ipykernel")
    def test_a_kernel_runs_the_notebook(self):
        import nbclient
        import nbformat

        file = Path(os.environ.get("DOCUMENTS", "docs")) / "python.ipynb"
        if not file.exists():
            self.skipTest("the documents are not here")
        notebook = nbformat.read(file, 4)
        nbformat.validate(notebook)
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
        shown = [output.get("data", {}).get("text/html", "") for cell in notebook.cells for output in cell.get("outputs", [])]
        self.assertTrue(any(each.startswith("<iframe") for each in shown))

    @needs("mypy")
    def test_mypy_accepts_the_types(self):
        folder = Path(slipway.__file__).parent
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "-p", "slipway"],
                                  cwd=folder.parent, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    import visible_skips

    visible_skips.main()
