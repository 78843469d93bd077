#!/usr/bin/env python3
"""Makes the folder that tests/gpu/run.py needs, on a machine that has slipway: bundles, predictions, text, programs.

    kit.py BUILD OUT [--package TARBALL]

BUILD has slipway (and slipway-rank, slipway-rank-cuda). With the tarball of `make package` the folder runs on any node
that has PyTorch 2.11 and a driver; without, on this machine only.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))

EXPERTS = {"model.experts": 4, "model.experts_per_token": 2}
# Name, scenario, overrides. All ranks of a case share one GPU.
TINY = [
    ("one rank", {}),
    ("tensor 2, pipeline 2, data 2, ZeRO 1", {
        "layout.tensor": 2, "layout.sequence_parallel": "true", "layout.pipeline": 2, "layout.data": 2, "layout.zero": 1}),
    ("tensor 2, context 2, data 2, ZeRO 3", {
        "layout.tensor": 2, "layout.context": 2, "layout.data": 2, "layout.zero": 3}),
    ("ring attention, tensor 2, context 4", {
        "layout.tensor": 2, "layout.context": 4, "layout.context_exchange": "ring", "schedule.kernels": "flash2_rmsnorm"}),
    ("pipeline 4, data 2, ZeRO 2", {"layout.pipeline": 4, "layout.data": 2, "layout.zero": 2}),
    ("interleaved, pipeline 2", {"layout.pipeline": 2, "schedule.name": "interleaved-1f1b"}),
    ("zb-v, pipeline 4", {"layout.pipeline": 4, "schedule.name": "zb-v"}),
    ("chimera, pipeline 4", {"layout.pipeline": 4, "schedule.name": "chimera"}),
    ("experts, one rank", EXPERTS),
    ("experts, tensor 2, pipeline 2, data 2, ZeRO 1", {
        **EXPERTS, "layout.tensor": 2, "layout.sequence_parallel": "true", "layout.pipeline": 2, "layout.data": 2, "layout.zero": 1}),
]
# One process a rank, so that messages go through NCCL, which takes two processes of one GPU for two nodes when each names
# another host (run.py). They take turns on the GPU, so these are few steps.
APART = [
    ("two processes, tensor 2", {"layout.tensor": 2, "layout.sequence_parallel": "true"}),
    ("two processes, pipeline 2", {"layout.pipeline": 2}),
    ("two processes, interleaved, pipeline 2", {"layout.pipeline": 2, "schedule.name": "interleaved-1f1b"}),
    ("two processes, data 2, ZeRO 1", {"layout.data": 2, "layout.zero": 1}),
    ("two processes, data 2, ZeRO 3", {"layout.data": 2, "layout.zero": 3}),
    ("two processes, ring attention, context 2", {
        "layout.context": 2, "layout.context_exchange": "ring", "schedule.kernels": "flash2_rmsnorm"}),
    ("two processes, experts 2, data 2", {**EXPERTS, "layout.data": 2, "layout.expert": 2}),
    ("two processes, checkpoints, pipeline 2", {"layout.pipeline": 2, "run.checkpoint_steps": 2}),
    ("two processes, bfloat16, pipeline 2", {"layout.pipeline": 2, "run.dtype": "bfloat16"}),
]
# Against the losses in float64, to what bfloat16 gives.
NARROW = [("bfloat16, one rank", {"run.dtype": "bfloat16"}),
          ("bfloat16, experts, one rank", {**EXPERTS, "run.dtype": "bfloat16"})]
LLAMA = [
    ("one rank", {}),
    ("pipeline 2 on one GPU", {"layout.pipeline": 2}),
    ("tensor 2, pipeline 2 on one GPU", {
        "layout.tensor": 2, "layout.sequence_parallel": "true", "layout.pipeline": 2}),
]
MACHINES = ["h100-80gb", "h200"]  # whose step is predicted; run.py takes the one that is there
DEGREES = ["layout.tensor", "layout.context", "layout.pipeline", "layout.data"]


def ranks_of(overrides):
    ranks = 1
    for key in DEGREES:
        ranks *= overrides.get(key, 1)
    return ranks


def slipway(build, *words):
    done = subprocess.run([os.path.join(build, "slipway"), *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"kit.py: slipway {' '.join(words)}\n{done.stderr}")
    return done.stdout


def settings(overrides, machine):
    values = {**overrides, "cluster.ranks_per_gpu": ranks_of(overrides), "cluster.machine": machine}
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def make_case(build, out, scenario, name, overrides, apart):
    path = os.path.join(HERE, scenario + ".yaml")
    bundle = f"{scenario}-{'-'.join(name.replace(',', '').split())}.slip"
    slipway(build, "lower", path, "-o", os.path.join(out, bundle), *settings(overrides, MACHINES[0]))
    predicted = {}
    for machine in MACHINES:
        answer = json.loads(slipway(build, "simulate", path, "--json", *settings(overrides, machine)))
        predicted[machine] = {key: answer.get(key) for key in ("step_time_s", "tokens_per_s", "mfu")}
    return {"scenario": scenario, "name": name, "ranks": ranks_of(overrides), "processes": ranks_of(overrides) if apart else 1,
            "bundle": bundle, "predicted": predicted,
            "model": "experts" if "model.experts" in overrides else "plain",
            # ZeRO 2 and 3 record nothing, with experts it is refused.
            "graphs": overrides.get("layout.zero", 0) < 2 and "model.experts" not in overrides,
            "narrow": "run.dtype" in overrides}


def programs(build, out, package):
    if package is None:
        return {device: os.path.abspath(os.path.join(build, program))
                for device, program in (("cpu", "slipway-rank"), ("gpu", "slipway-rank-cuda"))
                if os.path.exists(os.path.join(build, program))}
    with tarfile.open(package) as archive:
        archive.extractall(out)
    launcher = "slipway-rank/slipway-rank"  # relative to the kit; SLIPWAY_DEVICE picks the program
    found = {"cpu": launcher}
    if os.path.exists(os.path.join(out, "slipway-rank/bin/slipway-rank-cuda")):
        found["gpu"] = launcher
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("out")
    parser.add_argument("--package", help="what `make package` has written")
    parser.add_argument("--only", choices=["tiny", "llama"], help="the cases of one scenario")
    words = parser.parse_args()
    shutil.rmtree(words.out, ignore_errors=True)
    os.makedirs(words.out)
    cases = [make_case(words.build, words.out, scenario, name, overrides, list_of is APART)
             for scenario, list_of in (("tiny", TINY), ("tiny", NARROW), ("tiny", APART), ("llama", LLAMA)) if words.only in (None, scenario)
             for name, overrides in list_of]
    shutil.copy(os.path.join(HERE, "../../scenarios/data/us-founding-documents.txt"), os.path.join(words.out, "text.txt"))
    for script in ("run.py", "pytorch_llama.py"):
        shutil.copy(os.path.join(HERE, script), words.out)
    with open(os.path.join(words.out, "kit.json"), "w") as file:
        json.dump({"cases": cases, "programs": programs(words.build, words.out, words.package)}, file, indent=1)
    print(f"{words.out}: {len(cases)} cases; python3 {words.out}/run.py")


main()
