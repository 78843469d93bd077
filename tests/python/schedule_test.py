"""Schedules that are Python functions: the same answers as the built-in order that they spell, checked, drawn, planned with and
executed.

Run as tests/python/worker_test.py.
"""

import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import slipway
from slipway import B, F

EXAMPLES = Path(os.environ["EXAMPLES"])
LLAMA = EXAMPLES / "llama-8b-64xh100.yaml"
TINY = EXAMPLES / "tiny-llama-cpu.yaml"


@slipway.schedule
def one_forward_one_backward(shape):
    for rank in range(shape.pipeline):
        ahead = min(shape.pipeline - rank, shape.micro_batches)
        row = [F(rank, m) for m in range(ahead)]
        for m in range(shape.micro_batches):
            row.append(B(rank, m))
            if m + ahead < shape.micro_batches:
                row.append(F(rank, m + ahead))
        yield row


@slipway.schedule(name="mine")
def all_forwards_first(shape):
    return [[F(rank, m) for m in range(shape.micro_batches)] + [B(rank, m) for m in range(shape.micro_batches)]
            for rank in range(shape.pipeline)]


@slipway.schedule
def in_a_circle(shape):
    return [[F(rank, m) for m in range(shape.micro_batches)] + [B(rank, m) for m in reversed(range(shape.micro_batches))]
            if rank else [B(0, m) for m in range(shape.micro_batches)] + [F(0, m) for m in range(shape.micro_batches)]
            for rank in range(shape.pipeline)]


class Functions(unittest.TestCase):
    def test_that_spell_a_built_in_order_have_its_answers(self):
        for file in (LLAMA, TINY):
            for own, name in ((one_forward_one_backward, "1f1b"), (all_forwards_first, "gpipe")):
                with self.subTest(file=file.stem, name=name):
                    built_in = slipway.predict(file, {"schedule.name": name})
                    answer = slipway.predict(file, schedule=own)
                    for key in ("step_time_s", "mfu", "bubble_share", "peak_memory_bytes", "tasks"):
                        self.assertEqual(answer[key], built_in[key], key)
                    self.assertEqual(slipway.memory(file, schedule=own)["peak_bytes"],
                                     slipway.memory(file, {"schedule.name": name})["peak_bytes"])

    def test_are_asked_again_where_keys_change_the_shape(self):
        scenario = slipway.Scenario(LLAMA).with_schedule(one_forward_one_backward)
        for change in ({"layout.pipeline": 2, "layout.data": 4}, {"schedule.global_batch": 64}, {"schedule.global_batch": 4096}):
            with self.subTest(change=change):
                self.assertEqual(scenario.with_(change).predict().step_time_s,
                                 slipway.predict(LLAMA, {"schedule.name": "1f1b", **change}).step_time_s)

    def test_are_asked_once_for_a_shape(self):
        asked = []

        @slipway.schedule
        def counted(shape):
            asked.append(shape)
            return one_forward_one_backward(shape)

        for _ in range(3):
            slipway.predict(LLAMA, schedule=counted)
        self.assertEqual(len(asked), len(set(asked)))
        self.assertIn(slipway.Shape(4, 1, 16), asked)

    def test_are_planned_with_like_the_built_in_order(self):
        built_in = slipway.plan(TINY, {"schedule.name": "1f1b"}, keep=["schedule.name"])
        own = slipway.plan(TINY, schedule=one_forward_one_backward)
        self.assertEqual([row["step_time_s"] for row in own["best"]], [row["step_time_s"] for row in built_in["best"]])
        self.assertEqual({row["schedule"] for row in own["best"]}, {"one_forward_one_backward"})
        self.assertEqual(own.best_scenario.predict().step_time_s, own.best.step_time_s)

    def test_that_refuse_a_shape_are_left_out_of_a_plan(self):
        @slipway.schedule
        def only_pipelines(shape):
            if shape.pipeline == 1:
                raise ValueError("there must be a pipeline")
            return one_forward_one_backward(shape)

        plan = slipway.plan(TINY, schedule=only_pipelines)
        self.assertTrue(all(row["pipeline"] > 1 for row in plan["best"]))
        with self.assertRaisesRegex(slipway.ScenarioError, "only_pipelines refuses this shape: there must be a pipeline"):
            slipway.predict(TINY, {"layout.pipeline": 1, "layout.data": 2}, schedule=only_pipelines)

    def test_are_studied_and_explained(self):
        batches = [32, 64, 2048, 4096]  # of the last ones a few periods are simulated: shapes that only a child asks for
        study = slipway.study(LLAMA, {"schedule.global_batch": batches}, schedule=one_forward_one_backward)
        self.assertEqual(list(study.points["step_time_s"]),
                         [slipway.predict(LLAMA, {"schedule.global_batch": batch}).step_time_s for batch in batches])
        self.assertEqual(slipway.explain(TINY, schedule=one_forward_one_backward).step_time_s,
                         slipway.explain(TINY, {"schedule.name": "1f1b"}).step_time_s)

    def test_are_drawn(self):
        drawing = slipway.Scenario(TINY, schedule=one_forward_one_backward).draw()
        built_in = slipway.Scenario(TINY).draw()
        self.assertEqual(drawing.replace("one_forward_one_backward", "1f1b").splitlines()[1:], built_in.splitlines()[1:])
        self.assertIn("rank 3", one_forward_one_backward.draw(4, 8))
        self.assertTrue(one_forward_one_backward.draw(2, 2)._repr_html_().startswith("<pre>"))

    def test_are_written_as_the_program_writes_them(self):
        done = subprocess.run([slipway.program_path(), "show", str(LLAMA), "--csv"], check=True, capture_output=True, text=True)
        self.assertEqual(slipway.Scenario(LLAMA, schedule=one_forward_one_backward).schedule_csv(), done.stdout)
        self.assertEqual(one_forward_one_backward.csv(4, 16), done.stdout)


class Mistakes(unittest.TestCase):
    def test_in_the_lists_are_errors_with_what_is_wrong(self):
        for own, words in ((in_a_circle, "in_a_circle gives no whole step"),
                           (slipway.Schedule(lambda shape: [["0F0"]], "short"), "short gives 1 lists for 4 pipeline ranks"),
                           (slipway.Schedule(lambda shape: [["0F0"]] * 4, "lacking"), "lacking gives no whole step"),
                           (slipway.Schedule(lambda shape: [["what"]] * 4, "odd"), "'what' is not an action")):
            with self.subTest(own.name):
                with self.assertRaisesRegex(slipway.ScenarioError, words) as caught:
                    slipway.predict(LLAMA, schedule=own)
                self.assertEqual(caught.exception.key, "schedule.name")
                self.assertRaises(slipway.ScenarioError, own.check, 4, 16)

    def test_of_the_function_are_raised_as_they_are(self):
        @slipway.schedule
        def broken(shape):
            raise KeyError("no such thing")

        for call in (slipway.predict, slipway.plan):
            with self.assertRaisesRegex(KeyError, "no such thing"):
                call(TINY, schedule=broken)
        self.assertGreater(slipway.predict(TINY).step_time_s, 0)

    def test_and_ctrl_c_in_the_function_end_the_call(self):
        @slipway.schedule
        def interrupted(shape):
            if shape.pipeline > 1:
                raise KeyboardInterrupt
            return one_forward_one_backward(shape)

        for call in (slipway.predict, slipway.plan):
            began = time.monotonic()
            self.assertRaises(KeyboardInterrupt, call, TINY, schedule=interrupted)
            self.assertLess(time.monotonic() - began, 4)
        self.assertGreater(slipway.predict(TINY).step_time_s, 0)

    def test_of_what_is_no_function_are_type_errors(self):
        self.assertRaises(TypeError, slipway.predict, TINY, schedule=[["0F0"]])


class Runs(unittest.TestCase):
    def test_execute_the_lists(self):
        with tempfile.TemporaryDirectory() as folder:
            try:
                run = slipway.execute(TINY, {"run.steps": 2}, schedule=all_forwards_first, out=Path(folder) / "run")
            except slipway.RunFailed as error:
                if "PyTorch" in str(error) or "slipway-rank" in str(error):
                    self.skipTest("slipway-rank or PyTorch 2.11 is missing")
                raise
            self.assertTrue(run)


if __name__ == "__main__":
    import visible_skips

    visible_skips.main()
