#!/usr/bin/env python3
"""Hugging Face, The Ultra-Scale Playbook (2025): Llamas of 1.3B to 9B on H100-80GB, eight per node, with nanotron.

1F1B, sequence parallel (tp_mode REDUCE_SCATTER; ALL_REDUCE has none), fp32 sums of gradients. after_pp_fix separates
two versions of the trainer. A run out of memory has no columns of its own, so its layout is read from its name,
"3.57G_dp16_tp2_pp1_acc8_mbs1_seq4096_zero1_...". Without a column tie_word_embeddings, the widest model has an untied
head and the others a tied one, as the parameter counts of successful runs show. Mem Alloc is the memory after the step,
Mem Res the peak of PyTorch's caching allocator; both are printed in units of 2^30 bytes.
"""
# reads: gpus, name, seq_len, mbs, batch_accum, dp, tp, pp, zero_stage, hidden_size, interm_dim, num_layers, num_heads, vocab_size, status
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import re  # noqa: E402

from published_runs import Refused, main, set_cluster, set_degrees, set_shapes  # noqa: E402

GIBIBYTE = 1073741824.0


def named(name, part):
    """The number after "dp", "tp", ... in the run's name."""
    found = re.search("_" + part + r"([0-9]{1,9})(\.0)?(_|$)", name)
    if not found:
        raise Refused(f"column name: '{name}' has no _{part}N_")
    return int(found[1])


def read(cells, run):
    status, gpus, name = cells.status("Success", "OOM"), cells.integer("gpus"), cells.text("name")
    hidden, heads, sequence = cells.integer("hidden_size"), cells.integer("num_heads"), cells.integer("seq_len")
    tied = hidden < 4096 if cells.empty("tie_word_embeddings") else cells.flag("tie_word_embeddings")
    model = "llama-" + name.split("_")[0]
    set_shapes(run, model, "llama", layers=cells.integer("num_layers"), hidden=hidden, ffn=cells.integer("interm_dim"),
               heads=heads, kv_heads=cells.integer_or("num_kv_heads", heads), vocab=cells.integer("vocab_size"),
               sequence=sequence, tied=tied)

    def figure(column, part):
        return cells.integer(column) if status == "ok" else named(name, part)

    data, tensor, pipeline = figure("dp", "dp"), figure("tp", "tp"), figure("pp", "pp")
    scattered = cells.empty("tp_mode") or cells.choice("tp_mode", {"REDUCE_SCATTER": True, "ALL_REDUCE": False})
    micro_batch, accumulated = figure("mbs", "mbs"), figure("batch_accum", "acc")
    zero = named(name, "zero") if cells.empty("zero_stage") else cells.whole_or("zero_stage", 0)
    if data * tensor * pipeline != gpus:
        raise Refused("dp x tp x pp is not the number of GPUs")
    run.set("cluster.trainer", "nanotron")
    set_cluster(run, "h100-80gb", gpus)
    set_degrees(run, tensor, 1, pipeline, scattered)
    run.set("layout.zero", zero if data > 1 else 0)
    run.set("schedule.micro_batch", micro_batch)
    batch = accumulated * micro_batch * data
    run.set("schedule.global_batch", batch)
    if not cells.empty("accumulate_grad_in_fp32") and not cells.flag("accumulate_grad_in_fp32"):
        run.refuse("sums of gradients in 16 bits")
    run.exclude("after_pp_fix", not cells.empty("after_pp_fix") and not cells.flag("after_pp_fix"))
    run.place(group=model, choice=model, table=f"{model} on {gpus} GPUs")
    run.result(status=status)
    if status != "ok":
        return
    tokens = float(batch * sequence)
    run.result(step_s=tokens / (gpus * cells.number("tok/s/gpu")) if cells.empty("step_s_derived")
               else cells.number("step_s_derived"),
               allocated_bytes=round(cells.number_or("Mem Alloc (GB)", 0.0) * GIBIBYTE),
               reserved_bytes=round(cells.number_or("Mem Res (GB)", 0.0) * GIBIBYTE),
               all_reduce_bytes_per_s=cells.number_or("AR Intra-node (GB/s)", 0.0) * 1e9)


if __name__ == "__main__":
    main(__file__, """
Hugging Face, The Ultra-Scale Playbook, 2025
Llamas of 1.3B, 3.6B and 8.9B on H100-80GB, eight a node, nanotron; bytes: allocated after the step, and the peak of the caching allocator
""", read)
