#!/usr/bin/env python3
"""vTrain (MICRO 2024): small GPTs on one node of eight A100-SXM-80GB (arXiv 2312.12391, validation set-up).

Trained with Megatron-DeepSpeed: full recompute, 1F1B, its fused softmax. The table has no vocabulary; 51,200, tied, is
assumed (GPT-2's, padded by Megatron-LM for eight tensor ranks).
"""
# reads: gpus, tp, dp, pp, global_batch, micro_batch, hidden, heads, layers, seq, iter_ms
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (Refused, main, recompute_word, set_batch, set_cluster, set_degrees, set_shapes,  # noqa: E402
                            set_usual_machine)

VOCABULARY = 51200


def read(cells, run):
    run.assume(f"tied vocabulary of {VOCABULARY}")
    of_paper = "eight A100-SXM-80GB in the paper's validation set-up (arXiv 2312.12391)"
    machine = "a100-80gb"
    if cells.empty("gpu"):
        run.assume("gpu is a100-80gb: " + of_paper)
    else:
        machine = set_usual_machine(run, cells, ["a100-80gb"], of_paper)
    gpus, hidden, layers, sequence = (cells.integer(name) for name in ("gpus", "hidden", "layers", "seq"))
    model = f"gpt-{layers}x{hidden}"
    set_shapes(run, model, "gpt", layers=layers, hidden=hidden, ffn=4 * hidden, heads=cells.integer("heads"),
               vocab=VOCABULARY, sequence=sequence)
    run.set("cluster.trainer", "megatron-deepspeed")
    set_cluster(run, machine, gpus)
    tensor, pipeline, batch = cells.integer("tp"), cells.integer("pp"), cells.integer("global_batch")
    set_degrees(run, tensor, 1, pipeline)
    run.set("schedule.kernels", "fused_softmax")  # FusedScaleMaskSoftmax
    run.set("schedule.recompute", recompute_word(cells, "full"))  # "full (use_checkpoint=true ...)"
    run.set("run.dtype", "float16")
    run.place(group=model, choice=model, table=f"{model} on {gpus} GPUs, batch {batch}")
    _, data = set_batch(run, "ok", gpus, tensor, 1, pipeline, cells.integer("micro_batch"), batch)
    if data != cells.integer("dp"):
        raise Refused("column dp does not match gpus / (tp x pp)")
    run.result(step_s=cells.number("iter_ms") / 1e3)


if __name__ == "__main__":
    main(__file__, """
Bang et al., vTrain, MICRO 2024
small GPTs on one node of A100, Megatron-DeepSpeed, full recompute, 1F1B; the vocabulary (51,200, tied) is an assumption
""", read)
