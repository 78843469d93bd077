#!/usr/bin/env python3
"""InternEvo's tests of InternLM-7B on A100 (InternLM/InternEvo doc/en/train_performance.md), up to 1,024 GPUs.

Tokens per second and GPU. zero1 GPUs share the optimizer's states (-1: all replicas), inside a node. A node has four
ports of 100 Gb/s. The rows of its memory test have no times. Where samples are packed into one (pack), attention is
still cut every seq tokens (cu_seqlens in internlm/data/tokenized/packed_dataset.py); else where samples end.
"""
# reads: table, model, gpu, gpus, tp, pp, zero1, fsdp, pack, activation_ckpt, seq, micro_bsz, micro_num, global_tokens, tokens_per_gpu_per_s
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (Refused, machine_named, main, set_cluster, set_layout, set_model, set_precision,  # noqa: E402
                            set_recompute)

# A port is 12.5 GB/s; large messages reach 0.9 of it, as the machine profiles assume of networks.
FOUR_PORTS = "[{scope: node}, {scope: cluster, name: roce, bandwidth: 11.25e9, gpus_per_port: 2}]"


def copies_of_shards(cells, replicas):
    """Copies of what ZeRO shards."""
    if cells.text("zero1") == "-1":
        return 1
    ranks = cells.integer("zero1")
    if replicas % ranks != 0:
        raise Refused(f"column zero1: {ranks} ranks do not divide {replicas} replicas")
    return replicas // ranks


def read(cells, run):
    gpus, gpu = cells.integer("gpus"), cells.text("gpu")
    group = cells.text("model") + " on " + gpu[:4]
    run.place(group=group, choice=cells.text("model"), table=f"{group}, line {cells.line}")
    if cells.empty("tokens_per_gpu_per_s"):
        run.result(status="other")
        run.refuse(f"a test of memory on {gpu}, a GPU without a profile, and without a step time")
        run.set("cluster.machine", "a800")
        return
    machine = machine_named("gpu", gpu, ["a100-80gb"])
    set_model(run, cells.text("model"))
    sequence, tokens = cells.integer("seq"), cells.integer("global_tokens")
    run.result(step_s=tokens / (gpus * cells.above_zero("tokens_per_gpu_per_s")))
    run.set("cluster.trainer", "internevo")
    set_cluster(run, machine, gpus)
    if gpus > 8:
        run.set("cluster.fabrics", FOUR_PORTS)
    tensor, pipeline = cells.integer("tp"), cells.integer("pp")
    set_layout(run, sequence, cells.integer("micro_bsz"), tokens // sequence, tensor, 1, pipeline,
               full_shards=cells.text("fsdp") == "yes")
    if tensor > 1:
        run.set("layout.sequence_parallel", False)  # sequence_parallel=False, or tensor mode mtp: configs/7B_sft.py
    run.set("layout.vocab_multiple", 0)
    run.set("layout.replicate", copies_of_shards(cells, gpus // (tensor * pipeline)))
    set_precision(run, "bf16")
    set_recompute(run, "full" if cells.flag("activation_ckpt") else "")
    if not cells.flag("pack"):
        run.assume("samples fill their sequences")


if __name__ == "__main__":
    main(__file__, """
InternLM, InternEvo, training performance of InternLM-7B on A100
""", read)
