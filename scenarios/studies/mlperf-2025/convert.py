#!/usr/bin/env python3
"""MLPerf Training's language models (mlcommons/training_results_v*): the median step of a submission's runs.

With its layout where the submission has one configuration for that number of GPUs. MLCommons has verified none of it.
"""
# reads: version, benchmark, org, accelerator, accelerators_per_node, gpus, seq, gbs, step_s_median, tp, pp, cp, vp, mbs, fp8, fp4, cuda_graph
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (Refused, machine_named, main, set_cluster, set_graphs, set_layout, set_lora, set_model,  # noqa: E402
                            set_recompute)

MODELS = {"llama2_70b_lora": "llama-2-70b", "llama31_8b": "llama-3.1-8b", "gpt3": "gpt-3-175b"}
USUAL = ["h100-80gb", "a100-80gb"]


def read(cells, run):
    tunes = cells.text("benchmark") == "llama2_70b_lora"
    model = set_model(run, cells.choice("benchmark", MODELS))
    gpus, group = cells.integer("gpus"), model + " on " + cells.text("accelerator")
    run.place(group=group, choice=group, table=f"{group}, line {cells.line}")
    step_s = cells.number_or("step_s_median", 0.0)
    run.result(step_s=step_s, status="ok" if step_s > 0 else "other")
    if run.lacks(cells, ["step_s_median", "tp", "mbs"]):
        try:
            run.set("cluster.machine", machine_named("accelerator", cells.text("accelerator"), USUAL))
        except Refused:
            pass  # it has no layout in any case
        return
    machine = machine_named("accelerator", cells.text("accelerator"), USUAL)
    run.set("cluster.trainer", "megatron-bridge")
    run.assume("the submission has the habits of Megatron-Bridge")
    set_cluster(run, machine, gpus, cells.integer_or("accelerators_per_node", 8))
    tensor = cells.integer("tp")
    set_layout(run, cells.integer("seq"), cells.integer("mbs"), cells.integer("gbs"), tensor, cells.degree("cp"),
               cells.integer("pp"), cells.degree("vp"))
    if tensor > 1 and not tunes:
        run.set("schedule.overlap_tensor", True)
    four = cells.text("fp4") == "yes"
    if not four and cells.empty("fp8"):
        run.assume("products in FP8")  # NVIDIA's config_common.sh has FP8=True
    # And from round 5.1 on FP8_RECIPE=tensorwise.
    run.set("run.fp8", "nvfp4" if four else "tensorwise" if cells.text("version") >= "v5.1" else "delayed")
    set_recompute(run, "")
    run.assume("nothing is computed again")
    if cells.text("cuda_graph") == "1":
        set_graphs(run, "full_iteration", "")
    # mlcommons/training@00baefa llama2_70b_lora/run_llama_70B_scrolls_r16.sh: lora_r 16, qkv_proj and o_proj.
    if tunes:
        set_lora(run, 16, "qkv, out", "adapters of rank 16 on attention's projections, as the benchmark's rules")


if __name__ == "__main__":
    main(__file__, """
MLCommons, MLPerf Training submissions of language models (not verified by MLCommons)
""", read)
