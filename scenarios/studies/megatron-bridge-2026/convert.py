#!/usr/bin/env python3
"""NVIDIA's performance summary of Megatron-Bridge, all releases (docs/performance-summary*.md).

With the recipe of each row as that release's code has it (columns r_...). Seconds follow from tokens per second and GPU.
"""
# reads: release, in_head, phase, model_family, gpu, gpus, precision_norm, seq, gbs, mbs, tp, pp, cp, vp, ep, fsdp, tokens_per_s_per_gpu
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (machine_named, main, set_cluster, set_experts, set_graphs, set_layout, set_lora,  # noqa: E402
                            set_merged, set_model, set_pipeline, set_precision, set_recompute, set_usual_moments,
                            set_usual_recompute)


def has_recipe(cells):
    """ "(none with this layout) nearest ...": a release whose code has other degrees."""
    return not cells.empty("recipe") and not cells.text("recipe").startswith("(none")


def set_offloaded_layers(run, cells, llama_in_shards):
    """Layers whose activations are in the host's memory."""
    layers = cells.text("r_cpu_offloading_num_layers")
    if not layers and not has_recipe(cells) and llama_in_shards:
        layers = "40"  # scripts/performance/configs/llama/llama3_workload_base_configs.py
        run.assume("activations of 40 layers are in the host's memory, as in the next release")
    if layers:
        run.set("schedule.offload_layers", layers)


def read(cells, run):
    machine, gpus = machine_named("gpu", cells.text("gpu"), ["h100-80gb"]), cells.integer("gpus")
    model = set_model(run, cells.text("model_family"))
    group = f"{model} on {machine}"
    run.place(group=group, choice=model, table=f"{group}, line {cells.line}")  # a family is left out as a whole
    sequence, batch = cells.integer("seq"), cells.integer("gbs")
    run.result(step_s=batch * sequence / (gpus * cells.above_zero("tokens_per_s_per_gpu")),
               tflops_per_gpu=cells.number_or("model_tflops_per_gpu", 0.0))

    run.set("cluster.trainer", "megatron-bridge")
    set_cluster(run, machine, gpus)
    shards = cells.is_set("r_use_megatron_fsdp") or cells.text("fsdp") not in ("", "0", "n/a")
    tensor, context, pipeline = cells.integer("tp"), cells.integer("cp"), cells.integer("pp")
    chunks = cells.degree("vp") if pipeline > 1 else 1
    set_layout(run, sequence, cells.integer("mbs"), batch, tensor, context, pipeline, chunks, shards)
    set_pipeline(run, model, pipeline, chunks)
    has_experts = cells.text("moe") == "yes"
    if has_experts:
        set_experts(run, cells.degree("ep"), cells.whole_or("r_expert_tensor_parallel_size", 0),
                    cells.text("r_moe_flex_dispatcher_backend"))
        if cells.is_set("r_moe_a2a_overlap"):
            set_merged(run)
        if cells.text("variant") == "tokendrop":
            run.assume("no token is dropped, although the run drops those above an expert's capacity")
    # User buffers of Transformer Engine: scripts/performance and src/megatron/bridge/perf_recipes/llama (userbuffers_*).
    if not has_experts and tensor > 1:
        run.set("schedule.overlap_tensor", True)
    if model == "deepseek-v3" and cells.text("variant") == "w/o MTP":
        run.set("model.predicted_tokens", 0)

    precision = cells.text("precision_norm")
    mixed = "blockwise" if machine.startswith("h") else "mxfp8"  # MX on Blackwell, blocks of 128 on Hopper
    set_precision(run, mixed if precision == "FP8-MX/blockwise" else precision)
    if not cells.empty("r_recompute_num_layers"):
        run.refuse("full recomputation of some layers")
    elif has_recipe(cells):
        set_recompute(run, cells.text("r_recompute_modules"))
    else:
        set_usual_recompute(run, model, machine, precision)
    set_usual_moments(run, model)
    set_graphs(run, cells.text("r_cuda_graph_impl"), cells.text("r_cuda_graph_scope"))
    set_offloaded_layers(run, cells, model == "llama-3.1-70b" and shards)
    if not cells.empty("r_offload_modules"):
        run.set("schedule.offload", "[" + cells.text("r_offload_modules") + "]")
    # src/megatron/bridge/recipes/llama/llama3.py (peft.dim) and perf_recipes/llama (peft.target_modules).
    if cells.text("phase") == "lora":
        set_lora(run, 16, "qkv", "adapters of rank 16 on queries, keys and values, as Megatron-Bridge's perf_recipes/llama")

    run.exclude("superseded", cells.text("in_head") != "yes")
    run.exclude("unknown_recipe", cells.empty("recipe") or not cells.empty("recipe_differs") or
                (has_experts and cells.empty("r_moe_a2a_overlap")))  # hidden or not: a fifth of a step
    run.version = cells.text("release")
    run.version_of = " ".join(map(str, (
        cells.text("phase"), model, machine, gpus, precision, sequence, batch, cells.text("mbs"), cells.text("tp"),
        cells.text("cp"), pipeline, chunks, cells.degree("ep"), shards)))


if __name__ == "__main__":
    main(__file__, """
NVIDIA, Megatron-Bridge, performance summary of all releases
""", read)
