#!/usr/bin/env python3
"""Runs a kit (tests/gpu/kit.py) on the GPU of this machine and prints one table; needs Python and PyTorch 2.11 only.

    run.py [KIT] [--only correctness|processes|speed] [--device gpu|cpu] [--out FOLDER]

Correctness: layouts of up to eight ranks, which share the GPU, against one rank: losses of 20 steps in float64 to 1e-9
relative; one rank on the GPU against one on the CPU; in bfloat16, to 2e-2 over five steps; with CUDA graphs; and
(processes) two processes that share the GPU and speak through NCCL. Speed, without graphs and with them: tokens/s, MFU, predicted step / measured step, the gap between two tasks
on the device, what one task costs the executor, and PyTorch, eager and compiled, on the same model. Exit status: 0, 1 when something disagrees or fails,
77 when there is no GPU or no program for it (ctest: skipped). --device cpu tries the first part without a GPU.
"""
import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

TOLERANCE = 1e-9
NARROW_TOLERANCE, NARROW_STEPS = 2e-2, 5  # of bfloat16 against float64
APART_STEPS = 8  # of the first two or three, messages and starts take turns
WARM_UP = 5  # steps that are not timed
LIMIT_S = 150  # of one run; a GPU that waits for itself ends never
COMPILE_LIMIT_S = 400


def free_port():
    while True:
        port = random.randint(20000, 29999)  # below those that the kernel gives away
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def finished(command, environment=None, limit_s=LIMIT_S):
    try:
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"did not end within {limit_s} s")


# What is known so far, should somebody stop us before the table.
def add(rows, row):
    rows.append(row)
    print("  ".join(cell for cell in row if cell), file=sys.stderr, flush=True)


class Kit:
    def __init__(self, folder, device, out):
        self.folder, self.device, self.out = folder, device, out
        with open(os.path.join(folder, "kit.json")) as file:
            content = json.load(file)
        self.cases, self.programs = content["cases"], content["programs"]

    def of(self, scenario):
        return [case for case in self.cases if case["scenario"] == scenario]

    def start(self, device, words, processes=1):
        program = os.path.join(self.folder, self.programs[device])
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT")}
        environment["SLIPWAY_DEVICE"] = "cpu" if device == "cpu" else ""
        ranks = [environment] if processes == 1 else self.environments(environment, processes)
        with ThreadPoolExecutor(len(ranks)) as threads:
            ended = list(threads.map(lambda of_rank: finished([program, *words], of_rank), ranks))
        for done in ended:
            if done.returncode != 0:
                raise RuntimeError(" ".join(done.stderr.split())[-300:] or f"ended with status {done.returncode}")

    # Every process takes the first GPU. NCCL refuses that to processes of one host, so each names a host of its own, and
    # they speak through the loopback device.
    def environments(self, base, processes):
        port = str(free_port())
        return [{**base, "RANK": str(rank), "WORLD_SIZE": str(processes), "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": port, "NCCL_HOSTID": f"node{rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
                for rank in range(processes)]

    def run(self, case, device=None, graphs=False):
        device = device or self.device
        folder = os.path.join(self.out, f"{device}-{'graphs-' if graphs else ''}{case['bundle']}")
        shutil.rmtree(folder, ignore_errors=True)
        self.start(device, [os.path.join(self.folder, case["bundle"]), "--out", folder, "--data",
                            os.path.join(self.folder, "text.txt"),
                            "--ranks-per-process", str(case["ranks"] // case["processes"]),
                            "--threads", str(max(1, (os.cpu_count() or 1) // case["ranks"]) if device == "gpu" else 1),
                            *(["--steps", str(APART_STEPS)] if case["processes"] > 1 else []),
                            *(["--cuda-graphs"] if graphs else [])], case["processes"])
        return folder


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def check_device(kit):
    if kit.device == "cpu":
        return "CPU"
    if not os.path.exists("/dev/nvidiactl"):
        skip("no NVIDIA GPU here (no /dev/nvidiactl)")
    if "gpu" not in kit.programs:
        skip("slipway-rank-cuda is not in the kit: nvcc 13 was not on PATH where it was built")
    try:
        import torch
    except ImportError:
        skip("python3 has no PyTorch here")
    if not torch.cuda.is_available():
        skip("PyTorch sees no usable GPU")
    return torch.cuda.get_device_name(0)


def losses_of(folder):
    with open(os.path.join(folder, "rank-0.losses")) as file:
        return [float(line.split()[2]) for line in file]


def difference(losses, reference):
    if len(losses) < len(reference):
        raise RuntimeError(f"{len(losses)} losses instead of {len(reference)}")
    if 0 in reference:
        raise RuntimeError("a loss of the reference is 0: nothing was computed")
    return max(abs(a - b) / abs(b) for a, b in zip(losses, reference))


# Starts of the steps on every rank; a step is as long as on the slowest.
def step_seconds(folder, ranks):
    starts = []
    for rank in range(ranks):
        first = {}
        with open(os.path.join(folder, f"rank-{rank}.records")) as file:
            for line in file:
                fields = line.split("\t")
                step, start = int(fields[0]), float(fields[5])
                first[step] = min(start, first.get(step, start))
        starts.append([first[step] for step in sorted(first)])
    steps = len(starts[0])
    return statistics.median(max(of[k + 1] - of[k] for of in starts) for k in range(min(WARM_UP, steps - 2), steps - 1))


# How long the device has nothing to do between two tasks of rank 0's compute lane, and how many tasks a step has.
def gap_between_tasks(folder):
    tasks = {}
    with open(os.path.join(folder, "rank-0.records")) as file:
        for line in file:
            fields = line.split("\t")
            if fields[2] == "compute":
                tasks.setdefault(int(fields[0]), []).append((float(fields[5]), float(fields[6])))
    last = max(tasks)
    gaps = [b[0] - a[1] for step in range(min(WARM_UP, last), last + 1) for a, b in zip(tasks[step], tasks[step][1:])]
    return (statistics.median(gaps) if gaps else 0.0), len(tasks[last])


def compare(kit, rows, name, case, reference, device=None, graphs=False):
    tolerance, steps = (NARROW_TOLERANCE, NARROW_STEPS) if case["narrow"] else (TOLERANCE, len(reference))
    if case["processes"] > 1:
        steps = min(steps, APART_STEPS)
    try:
        apart = difference(losses_of(kit.run(case, device, graphs)), reference[:steps])
        verdict = "same" if apart <= tolerance else "DIFFERENT"
        detail = f"{verdict}, {apart:.0e}"
    except RuntimeError as error:
        verdict, detail = "FAILED", f"FAILED: {error}"
    label = name if case["narrow"] else f"float64, {name}"
    add(rows, [label, str(case["ranks"]), detail, *[""] * 5])
    return verdict == "same"


def correctness(kit, rows, only):
    cases = kit.of("tiny")
    references = {}  # by model: losses of its first case, which is one rank in float64
    try:
        for case in cases:
            if case["model"] not in references:
                references[case["model"]] = losses_of(kit.run(case))
    except RuntimeError as error:
        add(rows, ["float64, one rank", "1", f"FAILED: {error}", *[""] * 5])
        return False
    reference = references[cases[0]["model"]]
    agree, on_gpu = [], kit.device == "gpu"
    for apart in [apart for part, apart in (("correctness", False), ("processes", True)) if only in (None, part)]:
        chosen = [case for case in cases[1:] if (case["processes"] > 1) == apart]
        if on_gpu and not apart:
            agree.append(compare(kit, rows, "one rank on the CPU", cases[0], reference, device="cpu"))
        agree += [compare(kit, rows, case["name"], case, references[case["model"]]) for case in chosen]
        if on_gpu:
            agree += [compare(kit, rows, f"CUDA graphs: {case['name']}", case, references[case["model"]], graphs=True)
                      for case in ([] if apart else cases[:1]) + chosen if case["graphs"]]
    return all(agree)


def predicted_for(case, name):
    machine = "h200" if "H200" in name else "h100-80gb" if "H100" in name else None
    return case["predicted"].get(machine) if machine else None


def speed_row(name, ranks, step, tokens, predicted, gap=""):
    mfu = ratio = ""
    if predicted:
        per_token = predicted["mfu"] / predicted["tokens_per_s"]
        mfu = f"{100 * per_token * tokens / step:.1f} %"
    if predicted and ranks:
        ratio = f"{predicted['step_time_s'] / step:.3f}"
    return [name, str(ranks) if ranks else "", "", f"{1e3 * step:.1f} ms", f"{tokens / step:,.0f}", mfu, ratio, gap]


def speed(kit, name, rows):
    well, tokens, predicted = True, 0, None
    for case, graphs in [(case, graphs) for case in kit.of("llama") for graphs in (False, True)]:
        name_of_case = case["name"] + (", CUDA graphs" if graphs else "")
        guess = case["predicted"]["h100-80gb"]
        tokens = round(guess["tokens_per_s"] * guess["step_time_s"])
        predicted = predicted_for(case, name)
        try:
            folder = kit.run(case, graphs=graphs)
            gap, tasks = gap_between_tasks(folder)
            add(rows, speed_row(f"bfloat16, {name_of_case}", case["ranks"], step_seconds(folder, case["ranks"]), tokens,
                                predicted, f"{1e6 * gap:.1f} us, {tasks} tasks"))
        except RuntimeError as error:
            well = False
            add(rows, [f"bfloat16, {name_of_case}", str(case["ranks"]), f"FAILED: {error}", *[""] * 5])
    for label, words in (("PyTorch, eager", []), ("PyTorch, compiled", ["--compile"]),
                         ("PyTorch, optimizer compiled too", ["--compile", "--compile-optimizer"])):
        script = os.path.join(kit.folder, "pytorch_llama.py")
        done = finished([sys.executable, script, "--text", os.path.join(kit.folder, "text.txt"), *words],
                        limit_s=COMPILE_LIMIT_S)
        if done.returncode != 0:
            well = False
            add(rows, [label, "", "FAILED: " + (done.stderr.strip().splitlines() or ["no message"])[-1], *[""] * 5])
            continue
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        add(rows, speed_row(label, 0, answer["step_s"], tokens, predicted))
    return well


def overhead(kit):
    path = os.path.join(kit.out, "measured")
    kit.start(kit.device, ["--measure", path, "--dtype", "bfloat16"])
    told = {}
    with open(path + ".0") as file:
        for line in file:
            fields = dict(word.split("=") for word in line.split() if "=" in word)
            if line.startswith("measure task_overhead"):
                told[fields["lanes"]] = float(fields["seconds"]) * 1e6
    print(f"Micro-benchmarks (slipway calibrate S.yaml -o gpu.yaml --measured FILE): {path}.0")
    return f"One task of the executor: {told['1']:.1f} us on one lane, {told['2']:.1f} us by turns on two (bar: 10 us)."


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kit", nargs="?", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--only", choices=["correctness", "processes", "speed"])
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--out", help="keeps what the runs and the micro-benchmarks write there")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = os.path.abspath(words.out or temporary)
        os.makedirs(out, exist_ok=True)
        kit = Kit(os.path.abspath(words.kit), words.device, out)
        name = check_device(kit)
        print(f"{name}; losses against one rank (bar: {TOLERANCE:.0e} relative over all steps); a step is the median after {WARM_UP}\n")
        rows, well = [["", "ranks", "losses", "step", "tokens/s", "MFU", "predicted/measured", "gap between tasks"]], True
        if words.only != "speed":
            well = correctness(kit, rows, words.only) and well
        if words.only in (None, "speed") and kit.device == "gpu":
            well = speed(kit, name, rows) and well
        print_table(rows)
        if words.only in (None, "speed") and kit.device == "gpu":
            print()
            print(overhead(kit))
    sys.exit(0 if well else 1)


main()
