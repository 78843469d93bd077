#!/usr/bin/env python3
"""NVIDIA's performance summary of NeMo AutoModel (NVIDIA-NeMo/Automodel docs/performance-summary.mdx).

PyTorch's FSDP2, experts by DeepEP, LoRA, on H100. GBS is the step's batch in sequences, MBS that of one pass, LBS that of
one call, GA the calls of a step. What the table lacks is that of the benchmark's recipe (examples/llm_benchmark), in the
stored version that was read; a row whose batch is another has an unknown recipe.
"""
# reads: in_head, phase, system, Model, #GPUs, GBS, MBS, LBS, GA, Seq Length, TP, PP, CP, EP, VP, FSDP, Kernel Optimizations, Time per Global Step (s)
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (machine_named, main, set_cluster, set_experts, set_layout, set_lora, set_model,  # noqa: E402
                            set_precision, set_recompute)

# By phase and model: GBS, LBS, activation_checkpointing, sequence parallel where tensor > 1, ep_size (0: no experts).
RECIPES = {
    ("pretrain", "qwen3-30b-a3b"): (512, 4, True, False, 8),  # qwen/qwen3_moe_30b_te_deepep.yaml@51d4df5
    ("pretrain", "gpt-oss-20b"): (256, 2, False, False, 8),  # gpt_oss/gptoss_20b_te_deepep.yaml@9af7a77
    ("pretrain", "gpt-oss-120b"): (512, 1, True, False, 64),  # gpt_oss/gptoss_120b_te_deepep.yaml@05de44f
    ("pretrain", "deepseek-v3"): (256, 4, True, False, 64),  # deepseek/deepseek_v3_te_deepep.yaml@21bb6c6
    ("pretrain", "llama-3.1-70b"): (128, 1, True, False, 0),  # llama3_3/custom_llama3_1_70b_pretrain_..._8nodes.yaml
    ("lora", "llama-3.1-8b"): (32, 2, False, False, 0),  # llama3_1/llama3_1_8b_peft_benchmark.yaml@e05319e
    ("lora", "qwen2.5-7b"): (32, 2, False, False, 0),  # qwen/qwen2_5_7b_peft_benchmark.yaml@4f5f864
    ("lora", "llama-3.1-70b"): (32, 2, True, True, 0),  # llama3_3/custom_llama3_3_70b_instruct_peft_benchmark.yaml
    ("lora", "qwen2.5-32b"): (32, 2, True, False, 0),  # qwen/custom_qwen2_5_32b_peft_benchmark.yaml@6b7342a
}


def degree_of(cells, column):
    """ "-" is a degree of 1 too."""
    return 1 if cells.text(column) == "-" else cells.degree(column)


def set_recipe(run, cells, model, tensor):
    recipe = RECIPES.get((cells.text("phase"), model))
    run.exclude("unknown_recipe", recipe is None or recipe[:2] != (cells.integer("GBS"), cells.integer("LBS")))
    if recipe is None:
        return
    _, _, recomputes, sequence_parallel, expert = recipe
    run.assume("recomputation of the benchmark's recipe in examples/llm_benchmark")
    set_recompute(run, "full" if recomputes else "")
    if tensor > 1:
        run.set("layout.sequence_parallel", sequence_parallel)
    if expert == 0:
        return
    if cells.text("EP") == "-":
        run.assume("experts on the ranks of the same recipe")
    set_experts(run, expert if cells.text("EP") == "-" else cells.integer("EP"), 0,
                "DeepEP" if "DeepEP" in cells.text("Kernel Optimizations") else "")


def read(cells, run):
    machine, gpus = machine_named("system", cells.text("system"), ["h100-80gb"]), cells.integer("#GPUs")
    model, phase = set_model(run, cells.text("Model")), cells.text("phase")
    group = f"{phase} of {model}"
    run.place(group=group, choice=model, table=f"{group}, line {cells.line}")
    run.result(step_s=cells.above_zero("Time per Global Step (s)"), tflops_per_gpu=cells.number_or("Model TFLOPs/sec/GPU", 0.0))
    run.set("cluster.trainer", "automodel")
    set_cluster(run, machine, gpus)
    tensor, pipeline = cells.integer("TP"), cells.integer("PP")
    set_layout(run, cells.integer("Seq Length"), cells.integer("MBS"), cells.integer("GBS"), tensor, cells.integer("CP"),
               pipeline, degree_of(cells, "VP") if pipeline > 1 else 1, full_shards=True)
    run.set("layout.vocab_multiple", 0)
    # Layers of a pipeline keep their weights between the passes: reshard_after_forward in distributed/config.py.
    if pipeline > 1:
        run.set("layout.zero", 2)
    if gpus == 1:
        run.set("layout.zero", 0)
    if pipeline > 1 and cells.integer("GA") > 1:
        run.refuse(f"a pipeline that empties {cells.integer('GA')} times a step")
    set_recipe(run, cells, model, tensor)
    set_precision(run, "bf16")
    # The recipes load weights as bf16, and PyTorch's Adam keeps its moments in the weights' dtype.
    run.set("run.optimizer.moment_dtype", "bfloat16")
    if model == "deepseek-v3":
        run.set("run.gradient_dtype", "bfloat16")  # mp_policy.reduce_dtype of its recipe
    if phase == "lora":
        set_lora(run, 16, "", "adapters of rank 16 on all Linears (dim 16, target_modules '*_proj' of the recipes)")
    run.exclude("superseded", cells.text("in_head") != "yes")


if __name__ == "__main__":
    main(__file__, """
NVIDIA, NeMo AutoModel, performance summary
""", read)
