#!/usr/bin/env python3
"""MosaicML's LLM Foundry throughput tables (2023): MPT models under FSDP on A100 and H100.

micro_batch is per GPU, global_batch in sequences. Model shapes are those of the project's MPT configurations: 1.3b,
2.7b, 6.7b and 65b for the table's 1b, 3b, 7b and 70b. Learned positions, biases and a tied vocabulary of 50,368 give the
table's parameter counts.
"""
# reads: model, seq, gpus, gpu, micro_batch, global_batch, tokens_per_s, precision, sharding, act_ckpt
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (main, plain_word, set_batch, set_cluster, set_shapes, set_usual_machine)  # noqa: E402

SHAPES = {"125m": ("125m", 12, 768, 12), "350m": ("350m", 24, 1024, 16), "760m": ("760m", 24, 1536, 12),
          "1b": ("1b", 24, 2048, 16), "3b": ("3b", 32, 2560, 20), "7b": ("7b", 32, 4096, 32),
          "13b": ("13b", 40, 5120, 40), "30b": ("30b", 48, 7168, 56), "70b": ("70b", 80, 8192, 64)}
SHAPES.update({"1.3b": SHAPES["1b"], "2.7b": SHAPES["3b"], "6.7b": SHAPES["7b"], "65b": SHAPES["70b"]})
# ZeRO stage, and whether shards stay inside a node.
SHARDINGS = {"FULL_SHARD": (3, False), "SHARD_GRAD_OP": (2, False), "NO_SHARD": (0, False), "HYBRID_SHARD": (3, True),
             "_HYBRID_SHARD_ZERO2": (2, True)}
# Of computing and of gradients.
PRECISIONS = {"bf16": ("bfloat16", "bfloat16"), "amp_bf16": ("bfloat16", "float32"), "fp16": ("float16", "float16"),
              "amp_fp16": ("float16", "float32"), "amp_fp8": ("bfloat16", "float32"), "fp32": ("float32", "float32")}


def read(cells, run):
    machine = set_usual_machine(run, cells, ["h100-80gb", "a100-80gb"])
    gpus, sequence, batch = cells.integer("gpus"), cells.integer("seq"), cells.integer("global_batch")
    name, layers, hidden, heads = cells.choice("model", SHAPES, plain_word(cells.text("model")))
    set_shapes(run, "mpt-" + name, "gpt", layers=layers, hidden=hidden, ffn=4 * hidden, heads=heads, vocab=50368,
               sequence=sequence)
    run.set("cluster.trainer", "llm-foundry")
    set_cluster(run, machine, gpus)
    run.set("schedule.kernels", "flash2")
    run.set("schedule.recompute", "full" if cells.flag("act_ckpt") else "none")
    if cells.is_set("act_offload"):
        run.refuse("activations kept in the host's memory")
    zero, inside_node = cells.choice("sharding", SHARDINGS)
    if inside_node and gpus > 8:
        run.refuse("replicas that share their shards in groups of 8 GPUs")
    run.set("layout.zero", zero if gpus > 1 else 0)
    dtype, gradients = cells.choice("precision", PRECISIONS)
    run.set("run.dtype", dtype)
    run.set("run.gradient_dtype", gradients)
    if cells.text("precision") == "amp_fp8":
        run.refuse("products in fp8, of which the table does not say which")
    run.place(group=f"mpt-{name} on {machine}", choice=f"mpt-{name} on {machine}",
              table=f"mpt-{name} at {sequence} on {gpus} {machine}")
    run.result(step_s=batch * sequence / cells.above_zero("tokens_per_s"))
    set_batch(run, "ok", gpus, 1, 1, 1, cells.integer("micro_batch"), batch)


if __name__ == "__main__":
    main(__file__, """
MosaicML, LLM Foundry, throughput tables of its benchmarks, 2023
MPT models under FSDP on A100-40GB, A100-80GB and H100-80GB, eight a node; step_s from tokens/s
""", read)
