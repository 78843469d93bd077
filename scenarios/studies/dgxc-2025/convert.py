#!/usr/bin/env python3
"""NVIDIA's DGX Cloud benchmarking recipes (NVIDIA/dgxc-benchmarking), all releases.

Seconds of a step of NeMo (Megatron-Core), of PaxML, MaxText and Hugging Face's trainer. Only NeMo's rows have a layout.
"""
# reads: model, size, framework, phase, precision, gpu, gpus, seq, gbs, mbs, tp, pp, cp, vp, ep, etp, step_s, check_tokens
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (machine_named, main, set_cluster, set_experts, set_layout, set_lora, set_model,  # noqa: E402
                            set_pipeline, set_precision, set_recompute)


def set_recomputed(run, model, machine):
    """NVIDIA/NeMo scripts/performance/recommended_model_configs: of these models only DeepSeek-V3 has such modules."""
    if model != "deepseek-v3":
        set_recompute(run, "")
        run.assume("nothing is computed again")
        return
    set_recompute(run, "core_attn" if machine.startswith("gb") else "mla_up_proj")
    run.assume("modules that NeMo's recipe of DeepSeek-V3 computes again")


def read(cells, run):
    machine, gpus = machine_named("gpu", cells.text("gpu"), ["h100-80gb"]), cells.integer("gpus")
    model = set_model(run, cells.text("model") + "-" + cells.text("size"))
    group = f"{model} on {machine}"
    run.place(group=group, choice=model, table=f"{group}, line {cells.line}")  # a family is left out as a whole
    run.exclude("contradiction", cells.text("check_tokens") != "ok")
    step_s = cells.number_or("step_s", 0.0)
    run.result(step_s=step_s, status="ok" if step_s > 0 else "other", tflops_per_gpu=cells.number_or("tflops_per_gpu", 0.0))
    run.set("cluster.machine", machine)
    if run.lacks(cells, ["tp", "mbs"]):
        return
    run.set("cluster.trainer", "megatron-bridge")
    run.assume("NeMo has the habits of Megatron-Bridge, its successor")
    set_cluster(run, machine, gpus)
    tensor, pipeline, chunks = cells.integer("tp"), cells.integer("pp"), cells.degree("vp")
    if model == "nemotron-4-340b" and cells.text("vp") == "NA" and pipeline > 1:
        # Releases before and after it have the same degrees, times within a tenth, and say 12.
        chunks = 12
        run.assume("virtual stages as in the releases that name them")
    set_layout(run, cells.integer("seq"), cells.integer("mbs"), cells.integer("gbs"), tensor, cells.degree("cp"), pipeline,
               chunks, not cells.empty("fsdp"))
    if not cells.empty("layers"):
        run.set("model.layers", cells.integer("layers"))  # small clusters train fewer
    set_pipeline(run, model, pipeline, chunks)
    # User buffers of Transformer Engine in NeMo's recipes of dense models: nemo/collections/llm/recipes/tp_overlap_configs.
    if cells.degree("ep") > 1:
        set_experts(run, cells.degree("ep"), cells.whole_or("etp", 0), "")
    elif tensor > 1:
        run.set("schedule.overlap_tensor", True)
    # NeMo's recipe of FP8 until 25.04 is "hybrid" with delayed scaling: bf16_with_fp8_mixed.
    set_precision(run, cells.text("precision"))
    set_recomputed(run, model, machine)
    # NVIDIA/NeMo nemo/collections/llm/recipes/llama3_8b.py and llama3_70b.py: peft.dim of finetune_recipe, 8 and 16;
    # target_modules of finetune_performance_optimizations, ['linear_qkv'].
    rank = 8 if model == "llama-3.1-8b" else 16
    if cells.text("phase") == "lora":
        set_lora(run, rank, "qkv",
                 f"adapters of rank {rank} on queries, keys and values, as NeMo's recipe in performance mode")


if __name__ == "__main__":
    main(__file__, """
NVIDIA, DGX Cloud benchmarking recipes, all releases
""", read)
