#!/usr/bin/env python3
"""AWS's comparison of dispatchers of experts (awslabs/awsome-distributed-ai, 3.test_cases/megatron/megatron-bridge).

On nodes with EFA: NCCL's all-to-all against DeepEP, with overlap and without. One run a cell, balanced routing forced.
"""
# reads: model, gpu, network, tp, etp, cp, gpus, gbs, ep, pp, vpp, mbs, overlap, recompute, dispatcher, step_s
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (machine_named, main, plain_word, set_cluster, set_experts, set_layout, set_merged,  # noqa: E402
                            set_model, set_pipeline, set_recompute)


def read(cells, run):
    machine, gpus = machine_named("gpu", cells.text("gpu"), ["h100-80gb"]), cells.integer("gpus")
    model = set_model(run, cells.text("model"))
    group = f"{model} on {machine}"
    run.place(group=group, choice=model, table=f"{group}, line {cells.line}", study=group)
    run.result(step_s=cells.above_zero("step_s"), tflops_per_gpu=cells.number_or("tflops_gpu", 0.0),
               transport=cells.text("dispatcher"))
    run.set("cluster.trainer", "megatron-bridge")
    set_cluster(run, machine, gpus)
    run.assume("EFA is InfiniBand of the machine's profile")
    merges, chunks, pipeline = cells.text("overlap") == "on", cells.degree("vpp"), cells.integer("pp")
    if merges and cells.empty("vpp"):
        chunks = 2  # overlap needs chunks; the other model's rows have two
        run.assume("two chunks")
    set_layout(run, cells.integer_or("seq", 4096), cells.integer("mbs"), cells.integer("gbs"), cells.integer("tp"),
               cells.degree("cp"), pipeline, chunks)
    set_pipeline(run, model, pipeline, chunks)
    set_experts(run, cells.integer("ep"), cells.integer("etp"), cells.text("dispatcher"))
    if merges:
        set_merged(run)
    set_recompute(run, "full" if plain_word(cells.text("recompute")) == "full" else "")


if __name__ == "__main__":
    main(__file__, """
AWS, awsome-distributed-ai, dispatchers of experts under Megatron-Bridge
""", read)
