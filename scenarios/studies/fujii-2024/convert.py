#!/usr/bin/env python3
"""Fujii et al. 2024 (arXiv 2411.06465): Llama-3.1-8B on TSUBAME4.0 (H100-94GB, four per node) and on A100-40GB.

Megatron-Core: FlashAttention 2, fused RMSNorm, sequence parallel, distributed optimizer, fp32 gradients. "dash" did
not run: out of memory, or more ranks than GPUs. Two GPUs of the A100 nodes share a port. TFLOP/s per GPU count

    12 B s L h^2 [1 + k/a + s/h + 1.5 f/h + V/(2Lh)]   per iteration
"""
# reads: model, gpu, seq_len, global_batch, tensor, context, pipeline, micro_batch, gpus, status, tflops_per_gpu
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (main, set_batch, set_cluster, set_degrees, set_first_llama, set_usual_machine,  # noqa: E402
                            shape_of_run)


def paper_flops(shape, sequence, sequences):
    layers, hidden = shape["layers"], shape["hidden"]
    return 12.0 * sequences * sequence * layers * hidden * hidden * (
        1 + shape["kv_heads"] / shape["heads"] + sequence / hidden + 1.5 * shape["ffn"] / hidden +
        shape["vocab"] / (2.0 * layers * hidden))


def read(cells, run):
    status, gpus, sequence = cells.status("ok", "dash"), cells.integer("gpus"), cells.integer("seq_len")
    machine = set_usual_machine(run, cells, ["h100-94gb", "a100-40gb"])
    per_node = cells.integer_or("gpus_per_node", 4 if machine == "h100-94gb" else 8)
    name = set_first_llama(run, cells.text("model"))
    run.set("model.sequence", sequence)
    run.set("cluster.trainer", "megatron-core")
    set_cluster(run, machine, gpus, per_node)
    if machine == "a100-40gb" and gpus > per_node:
        run.set("cluster.fabrics", "[{scope: node}, {scope: cluster, gpus_per_port: 2}]")
    tensor, context, pipeline = cells.integer("tensor"), cells.integer("context"), cells.integer("pipeline")
    set_degrees(run, tensor, context, pipeline, True)
    batch = cells.integer("global_batch")
    step_s = 0.0
    if status == "ok":
        step_s = paper_flops(shape_of_run(run), sequence, batch) / (gpus * cells.above_zero("tflops_per_gpu") * 1e12)
    status, _ = set_batch(run, status, gpus, tensor, context, pipeline, cells.integer("micro_batch"), batch)
    run.set("layout.zero", 1)  # the distributed optimizer, on any number of replicas
    run.result(status=status, step_s=step_s)
    table = f"{name} on {gpus} {machine}"
    run.place(group=f"t{tensor} c{context} p{pipeline} on {machine}", choice=table, table=table)


if __name__ == "__main__":
    main(__file__, """
Fujii et al. 2024, Accelerating Large Language Model Training with 4D Parallelism and Memory Consumption Estimator, arXiv 2411.06465
Llama-3.1-8B on H100-94GB (TSUBAME4.0, four a node) and A100-40GB (eight a node), Megatron-Core; step_s from TFLOP/s per GPU by the paper's formula
""", read)
