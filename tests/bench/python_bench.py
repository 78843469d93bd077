#!/usr/bin/env python3
"""python_bench.py SLIPWAY [PREDICTIONS]: predictions per second and core of the Python module, for llama-8b-64xh100.yaml with
one key changed each time (default: 400).

CPU time counts: that of this process, and of its worker with the processes that simulate. One key is changed at a time, and
each answer is compared, digit by digit, with that of the command line for the first few of each key.
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CASE = SOURCE / "scenarios/examples/llama-8b-64xh100.yaml"
KEYS = {
    "layout.zero": [0, 1, 2, 3],
    "schedule.recompute": ["none", "selective", "full"],
    "schedule.name": ["1f1b", "gpipe", "zb-h1", "zb-h2"],
    "schedule.global_batch": [32, 48, 64, 96, 128],
    "model.sequence": [2048, 4096, 8192],
    "cluster.machine": ["h100-80gb", "h200", "a100-80gb"],
    "run.routing_skew": [0],
}


def cpu_s(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def changes(count):
    single = [{key: value} for key, values in KEYS.items() for value in values]
    return [single[at % len(single)] for at in range(count)]


def without_clocks(answer):
    return {key: value for key, value in answer.items() if key != "simulate_wall_s"}


def of_the_command_line(overrides):
    words = [word for key, value in overrides.items() for word in ("--set", f"{key}={value}")]
    done = subprocess.run([os.environ["SLIPWAY_PROGRAM"], "simulate", CASE, *words, "--json"], check=True, capture_output=True)
    return json.loads(done.stdout)


def worker_cpu_s(slipway_worker):
    """Of the one idle worker and its children that have ended."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    for process in slipway_worker.worker_ids():
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1].split()
        total += sum(map(int, fields[11:15])) / ticks
    return total


def main():
    os.environ["SLIPWAY_PROGRAM"] = str(pathlib.Path(sys.argv[1]).resolve())
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    sys.path.insert(0, str(SOURCE / "scenarios/python"))
    import slipway
    from slipway import worker

    scenario = slipway.Scenario(CASE)
    todo = changes(count)
    distinct = {json.dumps(each): each for each in todo}
    for each in distinct.values():  # warm
        slipway.predict(scenario, each)
    python, work, wall = cpu_s(resource.RUSAGE_SELF), worker_cpu_s(worker), time.perf_counter()
    answers = [(each, slipway.predict(scenario, each)) for each in todo]
    wall = time.perf_counter() - wall
    python, work = cpu_s(resource.RUSAGE_SELF) - python, worker_cpu_s(worker) - work
    differing = 0
    for name, each in distinct.items():
        expected = without_clocks(of_the_command_line(each))
        for _, answer in filter(lambda pair: pair[0] == each, answers):
            if without_clocks(answer) != expected:
                differing += 1
                print(f"differs from the command line: {name}")
    # What lies beside the prediction: a request that only prints the version.
    began, idle = time.perf_counter(), cpu_s(resource.RUSAGE_SELF) + worker_cpu_s(worker)
    for _ in range(count):
        worker.answer_to(["--version"])
    beside = (time.perf_counter() - began) / count
    idle = (cpu_s(resource.RUSAGE_SELF) + worker_cpu_s(worker) - idle) / count
    print(f"{count} predictions, {len(distinct)} different ones, in {wall:.2f} s: {count / wall:.0f} a second")
    print(f"CPU: {1000 * work / count:.2f} ms each in the worker and its children, {1000 * python / count:.3f} ms in Python: "
          f"{count / (work + python):.0f} a second and core")
    print(f"an empty request takes {1000 * beside:.3f} ms, {1000 * idle:.3f} ms of CPU")
    print(f"{differing} answers differ from the command line")
    return 1 if differing else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main())
