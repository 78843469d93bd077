#!/usr/bin/env python3
"""Two tables of Megatron-LM.

Narayanan et al. 2021 (arXiv 2104.04473, table 1): GPTs of 1.7B to 1T on A100-80GB with full recompute. The paper's
table lacks micro-batch and chunks; its authors' script has them (examples/sc21/run_table_1.sh of NVIDIA/Megatron-LM at
79a3bb6). A row without them that the script does not have is refused: both change a step by 10 to 20 %. Their TFLOP/s
count 96 B s L h^2 (1 + s/(6h) + V/(16Lh)), vocabulary 51,200, of which a quarter of the layers' part is recomputation. A
row without recomputation counts 72 B s L h^2 (1 + s/(6h) + V/(12Lh)), without recomputed attention as well
(Korthikanti et al. 2022, arXiv 2205.05198).

The project's weak scaling of tensor and data parallelism (2021): DGX-2 (V100) and DGX A100, sequence 1024, in
milliseconds.
"""
# reads: gpu, heads, hidden, layers, tp, pp, gpus, global_batch, seq, tflops_per_gpu
# reads: gpu, hidden, heads, layers, tp, dp, gpus, global_batch, iter_ms
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (Refused, main, recompute_word, set_batch, set_cluster, set_degrees, set_shapes,  # noqa: E402
                            set_usual_machine)

VOCABULARY = 51200
# Micro-batch and chunks of the authors' script, by layers, width and GPUs.
SCRIPT = {(24, 2304, 32): (16, 1), (30, 3072, 64): (16, 1), (36, 4096, 128): (16, 1),
          (40, 6144, 256): (8, 1), (48, 8192, 512): (4, 1), (60, 10240, 1024): (2, 3),
          (80, 12288, 1536): (2, 2), (96, 16384, 1920): (1, 2), (105, 20480, 2520): (1, 3),
          (128, 25600, 3072): (1, 1)}
# Some of a DGX-2's sixteen GPUs have its switches, not the pairs of a DGX-1, whose share of the links the profile has.
DGX2_SWITCH = "[{scope: node, bandwidth: 136.5000001e9}]"


def set_gpt(cells, run, sequence):
    hidden, layers = cells.integer("hidden"), cells.integer("layers")
    model = f"gpt-{layers}x{hidden}"
    set_shapes(run, model, "gpt", layers=layers, hidden=hidden, ffn=4 * hidden, heads=cells.integer("heads"),
               vocab=VOCABULARY, sequence=sequence)
    run.set("cluster.trainer", "megatron-lm")
    run.set("schedule.kernels", "fused_softmax")
    run.set("run.dtype", "float16")
    run.set("run.gradient_dtype", "float16")  # fp16 buffers are reduced as they are
    return model


def counted_flops(cells, recompute, sequence, sequences):
    layers, hidden, s = float(cells.integer("layers")), float(cells.integer("hidden")), float(sequence)
    per_layer = 96 if recompute == "full" else 72
    return sequences * s * hidden * (per_layer * layers * hidden * (1 + s / (6 * hidden)) + 6 * float(VOCABULARY))


def of_script(cells, names, place):
    """A number that the paper's table lacks: of the row, else of the authors' script."""
    for name in names:
        if not cells.empty(name):
            return cells.integer(name)
    key = tuple(cells.integer(name) for name in ("layers", "hidden", "gpus"))
    if key in SCRIPT:
        return SCRIPT[key][place]
    raise Refused(f"column {names[0]} is missing or empty; a step depends on it, and no value is assumed; add the authors' "
                  "value (of Narayanan et al. 2021, table 1: examples/sc21/run_table_1.sh in Megatron-LM)")


def read_scaling(cells, run):
    sequence, batch, gpus = cells.integer("seq"), cells.integer("global_batch"), cells.integer("gpus")
    model = set_gpt(cells, run, sequence)
    machine = set_usual_machine(run, cells, ["a100-80gb"])
    set_cluster(run, machine, gpus)
    tensor, pipeline = cells.integer("tp"), cells.integer("pp")
    set_degrees(run, tensor, 1, pipeline, cells.is_set("sequence_parallel"))
    recompute = recompute_word(cells, "full")
    run.set("schedule.recompute", recompute)
    run.place(group=model, choice=model, table=model)
    micro_batch = of_script(cells, ["micro_batch"], 0)
    chunks = of_script(cells, ["chunks", "interleave"], 1) if pipeline > 1 else 1
    if chunks > 1:
        run.set("layout.chunks", chunks)
        run.set("schedule.name", "interleaved-1f1b")
    set_batch(run, "ok", gpus, tensor, 1, pipeline, micro_batch, batch)
    run.result(step_s=counted_flops(cells, recompute, sequence, float(batch)) /
               (gpus * cells.above_zero("tflops_per_gpu") * 1e12))


def read_tensor(cells, run):
    batch, gpus = cells.integer("global_batch"), cells.integer("gpus")
    model = set_gpt(cells, run, 1024)
    machine = set_usual_machine(run, cells, ["a100-40gb"])
    set_cluster(run, machine, gpus, 16 if machine == "v100-32gb" else 8)
    if machine == "v100-32gb" and 1 < gpus < 8:
        run.set("cluster.fabrics", DGX2_SWITCH)
    run.set("schedule.recompute", "full")
    table = f"{model} on {gpus} {machine}"
    run.place(group=table, choice=table, table=table)
    tensor, micro_batch = cells.integer("tp"), batch // cells.integer("dp")
    run.assume(f"one micro-batch of {micro_batch}")  # without accumulation
    set_degrees(run, tensor)
    set_batch(run, "ok", gpus, tensor, 1, 1, micro_batch, batch)
    run.result(step_s=cells.number("iter_ms") / 1e3)


if __name__ == "__main__":
    main(__file__, """
Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, arXiv 2104.04473
GPTs of 1.7B to 1T on A100-80GB (table 1; micro_batch and chunks are those of the authors' script, examples/sc21/run_table_1.sh of NVIDIA/Megatron-LM at 79a3bb6), step_s from TFLOP/s per GPU by the paper's formula; and the project's weak scaling of tensor and data parallelism on DGX-2 (V100) and DGX A100, 2021
""", read_scaling, read_tensor)
