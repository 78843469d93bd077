"""The Python module beside the program: its answers are those of the command line, its errors are in the command's words.

Run by ctest with SLIPWAY_PROGRAM and PYTHONPATH, and by setup/check-package.sh on an installed wheel, both with EXAMPLES, the
folder scenarios/examples.
"""

import json
import os
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import slipway

EXAMPLES = Path(os.environ["EXAMPLES"])
# llama-8b-64xh100.yaml as a dict.
LLAMA = {
    "model": {"name": "llama-3.1-8b", "sequence": 8192},
    "cluster": {"machine": "h100-80gb", "nodes": 8, "gpus_per_node": 8},
    "layout": {"tensor": 8, "sequence_parallel": True, "pipeline": 4, "data": 2, "zero": 1},
    "schedule": {"name": "1f1b", "micro_batch": 1, "global_batch": 32},
    "run": {"tokens": "15 T"},
}
TINY = {
    "model": {"family": "llama", "layers": 4, "hidden": 64, "ffn": 160, "heads": 4, "kv_heads": 2, "vocab": 256, "sequence": 64},
    "cluster": {"machine": "machines/cpu-test.yaml", "nodes": 1, "gpus_per_node": 2},
    "layout": {"pipeline": 2},
    "schedule": {"name": "1f1b", "micro_batch": 2, "global_batch": 8, "kernels": "flash2"},
}


def of_the_command_line(*words):
    """What the program prints."""
    done = subprocess.run([slipway.program_path(), *map(str, words), "--json"], check=True, capture_output=True)
    return of_any_run(json.loads(done.stdout))


def of_any_run(answer):
    """Without what differs between two runs, or between a file and a dict with the same keys."""
    return {key: value for key, value in answer.items() if key not in ("simulate_wall_s", "scenario")}


class Answers(unittest.TestCase):
    def test_of_a_dict_are_those_of_the_file_with_the_same_keys(self):
        file = EXAMPLES / "llama-8b-64xh100.yaml"
        expected = of_the_command_line("simulate", file)
        self.assertEqual(of_any_run(slipway.simulate(file)), expected)
        self.assertEqual(of_any_run(slipway.simulate(LLAMA)), expected)
        self.assertEqual(of_any_run(slipway.memory(LLAMA)), of_the_command_line("memory", file))

    def test_with_overrides_are_those_of_set(self):
        file = EXAMPLES / "llama-8b-64xh100.yaml"
        expected = of_the_command_line("simulate", file, "--set", "layout.tensor=4", "--set", "layout.data=4", "--steps", 4)
        overrides = {"layout.tensor": 4, "layout.data": 4}
        self.assertEqual(of_any_run(slipway.simulate(file, overrides, steps=4)), expected)
        self.assertEqual(of_any_run(slipway.simulate(LLAMA, overrides, steps=4)), expected)

    def test_are_the_same_from_many_threads(self):
        layouts = [{"layout.tensor": tensor, "layout.data": 16 // tensor} for tensor in (2, 4, 8)]
        with ThreadPoolExecutor() as pool:
            threaded = list(pool.map(lambda layout: slipway.simulate(LLAMA, layout)["step_time_s"], layouts))
        self.assertEqual(threaded, [slipway.simulate(LLAMA, layout)["step_time_s"] for layout in layouts])

    def test_of_a_study_are_those_of_its_points(self):
        study = slipway.study(LLAMA, {"schedule.name": ["1f1b", "gpipe"], "layout.zero": [0, 1]})
        self.assertEqual([point["step_time_s"] for point in study["points"]],
                         [slipway.simulate(LLAMA, {"schedule.name": name, "layout.zero": zero})["step_time_s"]
                          for name in ("1f1b", "gpipe") for zero in (0, 1)])

    def test_take_relative_paths_from_the_current_folder(self):
        before = os.getcwd()
        try:
            os.chdir(EXAMPLES)
            here = slipway.simulate(TINY)
        finally:
            os.chdir(before)
        cluster = {**TINY["cluster"], "machine": EXAMPLES.resolve() / "machines" / "cpu-test.yaml"}  # a Path is a text too
        self.assertEqual(slipway.simulate({**TINY, "cluster": cluster})["step_time_s"], here["step_time_s"])

    def test_of_files_have_the_page_of_report(self):
        answer = slipway.answer_of("validate", EXAMPLES.parent / "studies/aws-dispatchers-2026/runs.csv")
        self.assertIn("<html", answer.page())

    def test_may_write_files_as_the_command_does(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            slipway.simulate(EXAMPLES / "tiny-llama-cpu.yaml", trace=trace)
            self.assertIn("traceEvents", json.loads(trace.read_text()))
            # compare refuses a prediction as a measurement: its error is that of its two arguments, in their order.
            with self.assertRaisesRegex(slipway.ScenarioError, "it is not the trace of an executed run"):
                slipway.compare(trace, trace)


class Numbers(unittest.TestCase):
    def test_of_other_libraries_are_taken_by_their_value(self):
        class Eight:  # as numpy.int64
            def item(self):
                return 8

        layout = {**LLAMA["layout"], "tensor": Eight()}
        self.assertEqual(slipway.simulate({**LLAMA, "layout": layout})["step_time_s"], slipway.simulate(LLAMA)["step_time_s"])


class Errors(unittest.TestCase):
    def refused(self, scenario, *arguments, **options):
        with self.assertRaises(slipway.ScenarioError) as caught:
            slipway.simulate(scenario, *arguments, **options)
        return str(caught.exception)

    def test_name_the_key_and_what_is_allowed_without_a_file(self):
        message = self.refused({**LLAMA, "layout": {"tensor": 3}})
        self.assertIn("layout.tensor: layout.tensor = 3 does not divide model.heads = 32; allowed: 1, 2, 4, 8, 16, 32", message)
        self.assertTrue(all(line.startswith(("layout.", "schedule.")) for line in message.splitlines()), message)

    def test_of_a_missing_section_name_no_temporary_file(self):
        message = self.refused({key: value for key, value in LLAMA.items() if key != "schedule"})
        self.assertTrue(message.startswith("schedule: this required key is missing"), message)

    def test_of_a_file_name_file_and_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "wrong.yaml"
            file.write_text("model: llama-3.1-8b\ncluster: {machine: h100-80gb}\nschedule: nowhere\n")
            self.assertIn(f"{file}:3: schedule.name: 'nowhere' is not known", self.refused(file))

    def test_of_commands_in_processes_of_their_own_have_key_and_remedy(self):
        with self.assertRaises(slipway.ScenarioError) as caught:
            slipway.execute(LLAMA, {"layout.tensor": 3})
        self.assertIn("layout.tensor", [defect.key for defect in caught.exception.errors])
        self.assertTrue(all(defect.remedy for defect in caught.exception.errors))

    def test_of_a_name_for_a_file_are_value_errors(self):
        with self.assertRaises(ValueError):
            slipway.Scenario(EXAMPLES / "tiny-llama-cpu.yaml", name="other")

    def test_of_an_option_that_is_not_there_name_it(self):
        self.assertIn("unknown option '--no-such'", self.refused(LLAMA, no_such=1))

    def test_of_values_that_no_scenario_has_are_type_errors(self):
        with self.assertRaises(TypeError):
            slipway.simulate({**LLAMA, "layout": {"tensor": object()}})

    def test_of_a_command_that_fails_are_run_failed(self):
        os.environ["SLIPWAY_RANK"] = "/nowhere/slipway-rank"
        try:
            with tempfile.TemporaryDirectory() as folder, self.assertRaises(slipway.RunFailed) as caught:
                slipway.execute(EXAMPLES / "tiny-llama-cpu.yaml", out=Path(folder) / "run")
        finally:
            del os.environ["SLIPWAY_RANK"]
        self.assertIn("/nowhere/slipway-rank is not there", str(caught.exception))

    def test_of_a_program_that_is_not_there_say_where_it_is_looked_for(self):
        before = {name: os.environ.pop(name, None) for name in ("SLIPWAY_PROGRAM", "PATH")}
        os.environ["PATH"] = "/nowhere"
        try:
            if (Path(slipway.__file__).parent / "bundle").exists():
                self.assertTrue(os.path.exists(slipway.program_path()))
            else:
                self.assertRaisesRegex(FileNotFoundError, "SLIPWAY_PROGRAM", slipway.program_path)
        finally:
            os.environ.update({name: value for name, value in before.items() if value is not None})


if __name__ == "__main__":
    unittest.main()
