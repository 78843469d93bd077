#!/usr/bin/env python3
"""Tables in the columns that Slipway's own tables and files of --runs had before a run was a scenario.

A column for each setting of a run, in base units, or a whole scenario in the column scenario.
"""
# reads: trainer, machine, model, family, layers, hidden, ffn, heads, kv_heads, vocab, tied, sequence, gpus, gpus_per_node, tensor, sequence_parallel, context, pipeline, chunks, zero, micro_batch, global_batch, recompute, kernels, gradient_dtype, status, step_s
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (MODELS, STATUSES, TRAINERS, machine_named, main, set_batch, set_cluster, set_degrees,  # noqa: E402
                            set_shapes)


def set_model(run, cells):
    shape = {key: cells.integer(key) for key in ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")}
    name, tied = cells.text("model"), cells.flag("tied")
    if cells.choice("family", {"llama": True, "gpt": False}):
        known = MODELS.get(name, {})
        if known.get("family") == "llama" and all(known.get(key, known.get("heads")) == str(value)
                                                  for key, value in shape.items()):
            run.set("model.name", name)
        else:
            set_shapes(run, name, "llama", tied=tied, **shape)
    else:
        del shape["kv_heads"]
        set_shapes(run, name, "gpt", tied=tied, **shape)
    run.set("model.sequence", cells.integer("sequence"))


def set_run(run, cells, status):
    trainer, gpus, per_node = cells.text("trainer"), cells.integer("gpus"), cells.integer("gpus_per_node")
    machine = machine_named("machine", cells.text("machine"))
    run.set("cluster.trainer", trainer)
    set_cluster(run, machine, gpus, per_node)
    if cells.integer_or("gpus_per_port", 1) > 1 and gpus > per_node:
        run.set("cluster.fabrics", "[{scope: node}, {scope: cluster, gpus_per_port: %d}]" % cells.integer("gpus_per_port"))
    tensor, context, pipeline = cells.integer("tensor"), cells.integer("context"), cells.integer("pipeline")
    set_degrees(run, tensor, context, pipeline, cells.flag("sequence_parallel"))
    if cells.integer("chunks") > 1:
        run.set("layout.chunks", cells.integer("chunks"))
        run.set("schedule.name", "interleaved-1f1b")
    run.set("schedule.kernels", cells.text("kernels"))
    run.set("schedule.recompute", cells.text("recompute"))
    run.set("run.dtype", cells.text("dtype") or "bfloat16")
    # Others reduce gradients in a dtype of their own, whatever the run keeps.
    if TRAINERS.get(trainer, {}).get("reduces_in") == "run":
        run.set("run.gradient_dtype", cells.text("gradient_dtype"))
    if cells.is_set("fp8"):
        run.refuse("products in fp8, of which the table does not say which")
    status, data = set_batch(run, status, gpus, tensor, context, pipeline, cells.integer("micro_batch"),
                             cells.integer("global_batch"))
    group = cells.whole_or("shard_group", 0)
    if 0 < group < data:
        run.set("layout.replicate", data // group)
    run.set("layout.zero", cells.whole_or("zero", 0) if data > 1 else 0)
    return status


def read(cells, run):
    status = cells.choice("status", {word: word for word in STATUSES})
    run.result(step_s=cells.number("step_s") if status == "ok" else 0.0)
    for column in ("allocated_bytes", "reserved_bytes", "all_reduce_bytes_per_s"):
        run.result(**{column: cells.number_or(column, 0.0)})
    if not cells.empty("assumed"):
        run.assume(cells.text("assumed"))
    run.exclude("after_pp_fix", not cells.empty("after_pp_fix") and not cells.flag("after_pp_fix"))
    for column in ("table", "group", "choice"):
        run.result(**{column: cells.text(column)})
    if cells.empty("scenario"):
        set_model(run, cells)
        status = set_run(run, cells, status)
    else:
        run.result(scenario=cells.text("scenario"))
    run.result(status=status)


if __name__ == "__main__":
    main(__file__, "", read)
