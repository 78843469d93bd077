"""The process behind the Python module: equal to the command line to the last bit, from threads and forks, through Ctrl-C,
progress and crashes; and `slipway worker` itself, as another program would use it.

Run by ctest with SLIPWAY_PROGRAM, PYTHONPATH and EXAMPLES, and by setup/check-package.sh on an installed wheel.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import slipway
from slipway import worker

EXAMPLES = Path(os.environ["EXAMPLES"])
# Seconds of simulation, which Ctrl-C ends.
LONG = (EXAMPLES / "llama-8b-64xh100.yaml", {"schedule.global_batch": 4096})
HOW_LONG = {"exact": True, "steps": 20}
# An example and keys to change in it, one after another.
CHANGES = {
    "gpt3-175b-1024xa100": [{}],
    "llama-70b-1024xh100": [{}],
    "llama-8b-64xh100": [{}, {"layout.tensor": 4, "layout.data": 4}, {"schedule.name": "gpipe"}, {"layout.zero": 3},
                         {"schedule.recompute": "full"}, {"schedule.global_batch": 64}, {"model.sequence": 4096}],
    "llama-8b-h100-and-a100": [{}, {"layout.split": "balanced", "layout.pipeline": 2}],
    "mixtral-8x7b-64xh100": [{}, {"run.routing_skew": 0.5}],
    "tiny-llama-cpu": [{}, {"schedule.name": "zb-h1"}, {"run.optimizer": "kfac", "schedule.name": "gpipe"}],
}


def without_clocks(text):
    answer = json.loads(text) if isinstance(text, (str, bytes)) else dict(text)
    return {key: value for key, value in answer.items() if not key.endswith("_wall_s") and
            key not in ("screening_s", "simulation_s")}


def of_the_command_line(*words):
    done = subprocess.run([slipway.program_path(), *map(str, words), "--json"], check=True, capture_output=True)
    return without_clocks(done.stdout)


def settings(overrides):
    return [word for key, value in overrides.items() for word in ("--set", f"{key}={value}")]


class Answers(unittest.TestCase):
    def test_are_those_of_the_command_line_to_the_last_bit_in_any_order(self):
        for turn in range(2):  # the second finds a process that has answered all of them
            for name, changes in CHANGES.items():
                file = EXAMPLES / f"{name}.yaml"
                for overrides in changes:
                    with self.subTest(name, overrides=overrides, turn=turn):
                        answer = slipway.predict(file, overrides)
                        if turn == 0 or name == "llama-8b-64xh100":
                            self.assertEqual(without_clocks(answer), of_the_command_line("simulate", file, *settings(overrides)))

    def test_of_other_commands_are_those_of_the_command_line(self):
        file = EXAMPLES / "tiny-llama-cpu.yaml"
        calls = [("memory", slipway.memory(file), []), ("explain", slipway.explain(file), []), ("plan", slipway.plan(file), []),
                 ("plan", slipway.plan(file, top=3, keep=["schedule.name"]), ["--top", "3", "--keep", "schedule.name"]),
                 ("study", slipway.study(file, {"schedule.name": ["gpipe", "1f1b"]}), ["--vary", "schedule.name=gpipe,1f1b"])]
        for command, answer, words in calls:
            with self.subTest(command, words=words):
                self.assertEqual(without_clocks(answer), of_the_command_line(command, file, *words))

    def test_of_yaml_text_and_of_a_dict_are_those_of_the_file(self):
        file = EXAMPLES / "llama-8b-64xh100.yaml"
        text = file.read_text()
        expected = without_clocks(slipway.predict(file))
        self.assertEqual(without_clocks(slipway.Scenario.from_yaml(text, name="llama-8b-64xh100").predict()), expected)
        self.assertEqual(without_clocks(slipway.predict(slipway.Scenario(text, name="llama-8b-64xh100"))), expected)

    def test_of_keys_with_dots_in_a_dict_are_overrides(self):
        scenario = slipway.Scenario({"model": "llama-3.1-8b", "cluster": {"machine": "h100-80gb", "nodes": 1, "gpus_per_node": 8},
                                     "schedule": {"global_batch": 16, "micro_batch": 1}, "layout.tensor": 8})
        self.assertEqual(scenario.overrides, {"layout.tensor": 8})
        self.assertEqual(scenario.predict()["ranks"], 8)
        self.assertEqual(scenario.with_({"layout.tensor": 4}).overrides, {"layout.tensor": 4})

    def test_go_through_pickle(self):
        answer = slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml")
        again = pickle.loads(pickle.dumps(answer))
        self.assertEqual(again, answer)
        self.assertEqual(again.step_time_s, answer.step_time_s)

    def test_from_a_folder_that_changes_find_its_files(self):
        before = os.getcwd()
        try:
            for folder in (EXAMPLES.resolve(), EXAMPLES.resolve().parent, EXAMPLES.resolve()):
                os.chdir(folder)
                name = os.path.relpath(EXAMPLES.resolve() / "tiny-llama-cpu.yaml")
                self.assertGreater(slipway.predict(name).step_time_s, 0)
        finally:
            os.chdir(before)


class Processes(unittest.TestCase):
    def test_are_kept_for_the_next_call(self):
        slipway.close()
        slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml")
        first = worker.worker_ids()
        self.assertEqual(len(first), 1)
        slipway.memory(EXAMPLES / "tiny-llama-cpu.yaml")
        self.assertRaises(slipway.ScenarioError, slipway.predict, EXAMPLES / "tiny-llama-cpu.yaml", {"layout.tensor": 3})
        self.assertEqual(worker.worker_ids(), first)
        slipway.close()
        self.assertEqual(worker.worker_ids(), [])
        with self.assertRaises(ProcessLookupError):
            os.kill(first[0], 0)

    def test_are_as_many_as_threads_call_at_once(self):
        file = EXAMPLES / "llama-8b-64xh100.yaml"
        batches = [32, 64, 96, 128] * 4
        with ThreadPoolExecutor(4) as pool:
            threaded = list(pool.map(lambda batch: slipway.predict(file, {"schedule.global_batch": batch}).step_time_s, batches))
        one_by_one = [slipway.predict(file, {"schedule.global_batch": batch}).step_time_s for batch in batches[:4]]
        self.assertEqual(threaded, one_by_one * 4)

    def test_of_a_forked_child_are_its_own(self):
        file = EXAMPLES / "tiny-llama-cpu.yaml"
        expected = slipway.predict(file).step_time_s
        before = worker.worker_ids()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                own = slipway.predict(file).step_time_s == expected and not set(worker.worker_ids()) & set(before)
                slipway.close()
                status = 0 if own else 2
            finally:
                os._exit(status)
        os.close(write)
        os.close(read)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(slipway.predict(file).step_time_s, expected)
        self.assertEqual(worker.worker_ids(), before)

    def test_that_crash_raise_the_signal_and_the_next_call_works(self):
        slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml")
        (crashing,) = worker.worker_ids()[-1:]
        threading.Timer(1.0, os.kill, (crashing, signal.SIGSEGV)).start()
        with self.assertRaises(slipway.RunFailed) as caught:
            slipway.predict(*LONG, **HOW_LONG)
        self.assertIn("slipway simulate: the process that worked on it was ended by SIGSEGV", str(caught.exception))
        self.assertEqual(caught.exception.signal, signal.SIGSEGV)
        self.assertGreater(slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml").step_time_s, 0)
        self.assertNotIn(crashing, worker.worker_ids())

    def test_that_were_killed_between_two_calls_are_replaced(self):
        slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml")
        for each in worker.worker_ids():
            os.kill(each, signal.SIGKILL)
        time.sleep(0.2)
        self.assertGreater(slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml").step_time_s, 0)

    def test_end_with_their_caller(self):
        code = ("import os, slipway; from slipway import worker\n"
                f"slipway.predict({str(EXAMPLES / 'tiny-llama-cpu.yaml')!r})\n"
                "print(worker.worker_ids()[0], flush=True)\nos._exit(0)\n")
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        self.assertTrue(gone(int(done.stdout)))


def gone(process, within_s=10):
    for _ in range(int(within_s * 20)):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{process}/stat").read_text().split(") ")[1].startswith("Z"):
            return True
        time.sleep(0.05)
    return False


def interrupt_after(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


class Interrupts(unittest.TestCase):
    def interrupted(self, call):
        began = time.monotonic()
        interrupt_after(1.5)
        self.assertRaises(KeyboardInterrupt, call)
        self.assertLess(time.monotonic() - began, 20)

    def test_end_a_simulation_and_the_next_call_works(self):
        slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml")
        self.interrupted(lambda: slipway.predict(*LONG, **HOW_LONG))
        after = slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml")
        self.assertEqual(without_clocks(after), of_the_command_line("simulate", EXAMPLES / "tiny-llama-cpu.yaml"))

    def test_end_a_plan_whose_process_lives_on(self):
        slipway.close()
        slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml")
        before = worker.worker_ids()
        self.interrupted(lambda: slipway.plan(EXAMPLES / "llama-70b-1024xh100.yaml"))
        self.assertEqual(worker.worker_ids(), before)
        self.assertGreater(slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml").step_time_s, 0)

    def test_leave_no_process_behind(self):
        self.interrupted(lambda: slipway.explain(EXAMPLES / "gpt3-175b-1024xa100.yaml", exact=None))
        slipway.close()
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        if children.exists():
            self.assertEqual(children.read_text().split(), [])


class Progress(unittest.TestCase):
    def test_is_reported_to_a_function(self):
        seen = []
        threading.Timer(2.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            slipway.predict(*LONG, progress=lambda share, what: seen.append((share, what)), **HOW_LONG)
        self.assertTrue(seen)
        self.assertTrue(any("llama-8b-64xh100" in what or "simulating" in what for _, what in seen), seen)
        self.assertTrue(all(share is None or 0 <= share <= 1 for share, _ in seen), seen)

    def test_that_raises_ends_the_work(self):
        def stop(share, what):
            raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, slipway.predict, *LONG, progress=stop, **HOW_LONG)
        self.assertGreater(slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml").step_time_s, 0)

    def test_changes_no_answer(self):
        file = EXAMPLES / "llama-8b-64xh100.yaml"
        self.assertEqual(without_clocks(slipway.predict(file, progress=lambda *_: None)), without_clocks(slipway.predict(file)))


class Errors(unittest.TestCase):
    def test_have_key_message_and_remedy_one_by_one(self):
        with self.assertRaises(slipway.ScenarioError) as caught:
            slipway.predict(EXAMPLES / "llama-8b-64xh100.yaml", {"layout.tensor": 3, "run.lr": -1})
        keys = [error.key for error in caught.exception.errors]
        self.assertIn("layout.tensor", keys)
        self.assertIn("run.lr", keys)
        for error in caught.exception.errors:
            self.assertTrue(error.message and error.remedy, error)
            self.assertIn(str(error), str(caught.exception))
        self.assertEqual(caught.exception.key, keys[0])
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.errors, str(again)), (caught.exception.errors, str(caught.exception)))

    def test_of_a_file_have_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "wrong.yaml"
            file.write_text("model: llama-3.1-8b\ncluster: {machine: h100-80gb}\nschedule: nowhere\n")
            with self.assertRaises(slipway.ScenarioError) as caught:
                slipway.predict(file)
        self.assertEqual((caught.exception.errors[0].place, caught.exception.key), (f"{file}:3", "schedule.name"))

    def test_of_a_plan_and_a_study_have_keys_too(self):
        file = EXAMPLES / "llama-8b-64xh100.yaml"
        with self.assertRaises(slipway.ScenarioError) as caught:
            slipway.plan(file, {"model.layers": -1})
        self.assertEqual(caught.exception.key, "model.layers")

    def test_of_a_dict_name_no_file(self):
        scenario = {"model": "llama-3.1-8b", "cluster": {"machine": "h100-80gb", "nodes": 8, "gpus_per_node": 8},
                    "layout": {"pipeline": 2}, "schedule": {"global_batch": 64, "micro_batch": 1, "fill": "evaluation"}}
        with self.assertRaises(slipway.ScenarioError) as caught:
            slipway.plan(scenario)
        self.assertNotIn("scenario.yaml", str(caught.exception))
        self.assertIn("plan does not price", str(caught.exception))

    def test_of_an_option_name_it(self):
        with self.assertRaisesRegex(slipway.ScenarioError, "unknown option '--no-such'"):
            slipway.predict(EXAMPLES / "tiny-llama-cpu.yaml", no_such=1)

    def test_where_nothing_fits_has_the_answer(self):
        with self.assertRaises(slipway.RunFailed) as caught:
            slipway.plan(EXAMPLES / "gpt3-175b-1024xa100.yaml", {"cluster.nodes": 1, "schedule.global_batch": 8})
        self.assertEqual(caught.exception.answer["best"], [])
        self.assertTrue(caught.exception.answer["remedies"])


class Protocol(unittest.TestCase):
    def lines(self, *requests):
        text = "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in requests)
        done = subprocess.run([slipway.program_path(), "worker"], input=text, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_answers_every_line(self):
        file = str(EXAMPLES / "tiny-llama-cpu.yaml")
        first, second, third, fourth, fifth = self.lines(
            {"id": 7, "arguments": ["simulate", file, "--json"]}, {"id": "b", "arguments": ["--version"]}, "nonsense", "",
            {"id": 3, "arguments": ["execute", file]}, {"id": 4, "arguments": ["simulate", file, "--set", "layout.tensor=7"]})
        self.assertEqual((first["id"], first["status"], first["errors"]), (7, 0, []))
        self.assertEqual(without_clocks(first["answer"]), of_the_command_line("simulate", file))
        self.assertRegex(second["answer"], r"^slipway \d+\.\d+\.\d+\n$")
        self.assertEqual((third["id"], third["status"]), (None, 2))
        self.assertIn("runs in no worker", fourth["messages"])
        self.assertEqual(fifth["status"], 2)
        self.assertIn("layout.tensor", [error["key"] for error in fifth["errors"]])

    def test_reads_a_scenario_from_the_request_and_only_in_it(self):
        text = (EXAMPLES / "llama-8b-64xh100.yaml").read_text()
        request = {"id": 1, "arguments": ["simulate", "here.yaml", "--json"]}
        first, second = self.lines({**request, "scenario": {"path": "here.yaml", "text": text}}, request)
        self.assertEqual(first["answer"]["scenario"], "here")
        self.assertIn("cannot read 'here.yaml'", second["messages"])

    def test_prints_nothing_of_a_command_between_answers(self):
        file = str(EXAMPLES / "tiny-llama-cpu.yaml")
        (answer,) = self.lines({"id": 1, "arguments": ["show", file]})
        self.assertIn("rank 0", answer["answer"])


if __name__ == "__main__":
    unittest.main()
