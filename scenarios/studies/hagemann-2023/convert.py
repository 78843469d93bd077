#!/usr/bin/env python3
"""Hagemann et al. 2023 (arXiv 2311.05610): Llama on A100-80GB, eight per node, trained with AA-Scaling (Megatron style).

4,194,304 tokens per step, AdamW in bf16 with ZeRO-1, 1F1B. recompute every_layer is full recompute. A run without
its kernel has neither time nor memory.
"""
# reads: model, seq_len, gpus, micro_batch, tensor, pipeline, sequence_parallel, recompute, kernel, status, step_time_s
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (MODELS, joined_words, main, recompute_word, set_batch, set_cluster, set_degrees,  # noqa: E402
                            set_first_llama)

TOKENS = 4194304
KERNELS = {"torch": "torch", "fused_softmax": "fused_softmax", "flash1": "flash1", "flash2": "flash2",
           "flash2+rmsnorm": "flash2_rmsnorm", "flash2(rmsnorm)": "flash2_rmsnorm"}


def read(cells, run):
    status, gpus, sequence = cells.status("ok", "oom"), cells.integer("gpus"), cells.integer("seq_len")
    # The study's models have a vocabulary of 128,000.
    name = cells.text("model").lower() + "-v128k"
    if name in MODELS:
        run.set("model.name", name)
    else:
        name = set_first_llama(run, cells.text("model"))
        run.set("model.vocab", 128000)
    run.set("model.sequence", sequence)
    tensor, pipeline, micro_batch = cells.integer("tensor"), cells.integer("pipeline"), cells.integer("micro_batch")
    run.set("cluster.trainer", "aa-scaling")
    set_cluster(run, "a100-80gb", gpus)
    set_degrees(run, tensor, 1, pipeline, cells.flag("sequence_parallel"))
    kernel = joined_words(cells.text("kernel")).replace("rms_norm", "rmsnorm")
    run.set("schedule.kernels", cells.choice("kernel", KERNELS, kernel))
    run.set("schedule.recompute", recompute_word(cells, "none"))
    status, data = set_batch(run, status, gpus, tensor, 1, pipeline, micro_batch, TOKENS // sequence)
    run.set("layout.zero", 1 if data > 1 else 0)
    run.result(status=status, step_s=cells.number("step_time_s") if status == "ok" else 0.0)
    table = f"{name} at {sequence} on {gpus} GPUs"
    run.place(group=f"{name} at {sequence}", choice=table, table=table)


if __name__ == "__main__":
    main(__file__, """
Hagemann et al. 2023, Efficient Parallelization Layouts for Large-Scale Distributed Model Training, arXiv 2311.05610
Llama with a vocabulary of 128,000 on A100-80GB, eight a node, AA-Scaling; 4,194,304 tokens a step, AdamW in bf16 with ZeRO-1, 1F1B
""", read)
