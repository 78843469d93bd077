#!/usr/bin/env python3
"""Megatron-LM's recipes for mixtures of experts (examples/moe_recipes of its branch dev): arguments by their names.

With TFLOP/s per GPU by Megatron's own FLOP formula. Of two figures of a recipe the one of the pull request counts, which
says how it was measured.
"""
# reads: source, tflops_per_gpu, model, recipe, gpu, gpus, features, seq_length, micro_batch_size, global_batch_size, tensor_model_parallel_size, pipeline_model_parallel_size, expert_model_parallel_size, expert_tensor_parallel_size, context_parallel_size, pipeline_model_parallel_layout, moe_token_dispatcher_type, moe_flex_dispatcher_backend, overlap_moe_expert_parallel_comm, delay_wgrad_compute, recompute_modules, fine_grained_activation_offloading, offload_modules, chunked_optimizer_state_offload, cuda_graph_impl, cuda_graph_scope, fp8_recipe, fp8_param_gather, exp_avg_dtype
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (machine_named, main, set_cluster, set_experts, set_graphs, set_layout, set_merged,  # noqa: E402
                            set_model, set_pipeline, set_precision, set_recompute, stages_of)


def words_of(text):
    return text.replace("+", " ")


def read(cells, run):
    has_figure = not cells.empty("tflops_per_gpu")
    machine, gpus = machine_named("gpu", cells.text("gpu"), ["h100-80gb"]), cells.integer("gpus")
    model = set_model(run, cells.text("model"))
    group = f"{model} on {machine}"
    run.place(group=group, choice=model, table=f"{group}, line {cells.line}")
    run.result(status="ok" if has_figure else "other", tflops_per_gpu=cells.number_or("tflops_per_gpu", 0.0))
    run.version_of = cells.text("recipe") if has_figure else ""  # without a figure no version of one
    run.version = "pull request" if "pull request" in cells.text("source") else "README"

    run.set("cluster.trainer", "megatron-bridge")
    run.assume("Megatron-Core has the habits that Megatron-Bridge's recipes set")
    set_cluster(run, machine, gpus)
    pipeline, listed = cells.integer("pipeline_model_parallel_size"), cells.text("pipeline_model_parallel_layout")
    chunks = stages_of(listed) // pipeline if listed else 1
    set_layout(run, cells.integer("seq_length"), cells.integer("micro_batch_size"), cells.integer("global_batch_size"),
               cells.integer("tensor_model_parallel_size"), cells.integer("context_parallel_size"), pipeline, chunks)
    if listed:
        run.set("layout.split", f'"{listed}"')
    else:
        set_pipeline(run, model, pipeline, chunks)
    set_experts(run, cells.integer("expert_model_parallel_size"), cells.integer("expert_tensor_parallel_size"),
                cells.text("moe_flex_dispatcher_backend") or cells.text("moe_token_dispatcher_type"))
    if cells.is_set("overlap_moe_expert_parallel_comm"):
        set_merged(run)
    if cells.is_set("delay_wgrad_compute"):
        run.set("schedule.delay_wgrad", True)
    set_precision(run, cells.text("fp8_recipe") or "bf16")
    if cells.is_set("fp8_param_gather"):
        run.set("run.fp8_param_gather", True)
    set_recompute(run, words_of(cells.text("recompute_modules")))
    # --external-cuda-graph of one recipe was the name of cuda_graph_impl transformer_engine.
    scope, implementation = cells.text("cuda_graph_scope"), cells.text("cuda_graph_impl")
    set_graphs(run, "transformer_engine" if scope and not implementation else implementation, words_of(scope))
    if "paged stash" in cells.text("features"):
        run.assume("activations in pages (moe_paged_stash) cost no time")
    if cells.is_set("chunked_optimizer_state_offload"):
        run.refuse("optimizer states that go to the host's memory and back in chunks")
    if cells.is_set("fine_grained_activation_offloading"):
        run.set("schedule.offload", "[" + ", ".join(words_of(cells.text("offload_modules")).split()) + "]")
    # --main-grads-dtype is fp32 by default, and these recipes set nothing else.
    run.set("run.gradient_dtype", "float32")
    if cells.text("exp_avg_dtype") == "bf16":
        run.set("run.optimizer.moment_dtype", "bfloat16")


if __name__ == "__main__":
    main(__file__, """
NVIDIA, Megatron-LM, recipes for mixtures of experts
""", read)
