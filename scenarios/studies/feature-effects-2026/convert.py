#!/usr/bin/env python3
"""Effects of single features, as NVIDIA's skills and guides of Megatron-Bridge and Megatron-Core publish them.

Rows of one study differ in one lever each. Seconds where they are given, else TFLOP/s by Megatron's own FLOP formula.
"""
# reads: study, model, system, gpus, precision, seq, tp, pp, cp, vp, ep, etp, mbs, gbs, dispatcher, recompute_modules, cuda_graph, overlap, offload, other, outcome, step_s, tflops_per_gpu
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import re  # noqa: E402

from published_runs import (machine_named, main, set_cluster, set_experts, set_graphs, set_layout, set_merged,  # noqa: E402
                            set_model, set_pipeline, set_precision, set_recompute, set_usual_moments)


def scopes_of(written):
    """ "TE: attn, mamba" as "attn mamba"."""
    return written[4:].replace(",", "") if written.startswith("TE: ") else ""


def share_of(written):
    """ "25 %", "100 %, overlapped d2h/h2d" as "0.25", "1"."""
    found = re.match(r"(\d+\.?\d*) %", written)
    return f"{float(found[1]) / 100:g}" if found else None


def set_others(run, cells, model):
    """What the row's other words say that is a key."""
    other, offload = cells.text("other"), cells.text("offload")
    if cells.text("overlap").startswith("EP overlap"):
        set_merged(run)
    if "delay_wgrad" in cells.text("overlap"):
        run.set("schedule.delay_wgrad", True)
    if offload not in ("", "0 %"):
        share = share_of(offload)
        if share:
            run.set("run.optimizer.offload_fraction", share)
        else:
            run.refuse(f'the offload "{offload}"')
    if "LoRA" in cells.text("model"):
        run.refuse("LoRA of a rank that is not given")
    if other.startswith("+ "):
        run.refuse(f'the step "{other}" of a ladder of kernels')
    if "layout " in other and model == "deepseek-v3":
        run.set("model.predicted_tokens", 0)


def read(cells, run):
    status = {"ok": "ok", "OOM": "oom"}.get(cells.text("outcome"), "other")
    machine = machine_named("system", cells.text("system"), ["h100-80gb"])
    model, study = set_model(run, cells.text("model")), cells.text("study")
    run.place(group=study, choice=study, table=study, study=study)
    step_s = 0.0 if cells.empty("step_s") else cells.above_zero("step_s")
    if step_s == 0 and status == "ok" and cells.empty("tflops_per_gpu"):
        status = "other"
    run.result(status=status, step_s=step_s, tflops_per_gpu=cells.number_or("tflops_per_gpu", 0.0))
    run.set("cluster.machine", machine)
    if run.lacks(cells, ["gpus", "gbs"]):
        return
    gpus = cells.integer("gpus")
    run.set("cluster.trainer", "megatron-bridge")
    set_cluster(run, machine, gpus)
    if cells.empty("seq"):
        run.assume("sequences of 4,096 and micro-batches of one, as in the study beside it")
    tensor, pipeline, chunks = cells.degree("tp"), cells.degree("pp"), cells.degree("vp")
    set_layout(run, cells.integer_or("seq", 4096), cells.degree("mbs"), cells.integer("gbs"), tensor, cells.degree("cp"),
               pipeline, chunks)
    set_pipeline(run, model, pipeline, chunks)
    expert, expert_tensor = cells.degree("ep"), cells.whole_or("etp", 0)
    if expert_tensor == 0 and tensor > 1 and expert * tensor * pipeline > gpus:
        expert_tensor = 1
        run.assume("experts are not cut, as no GPUs are left for it")
    if not cells.empty("ep"):
        set_experts(run, expert, expert_tensor, cells.text("dispatcher"))
    elif tensor > 1:
        run.set("schedule.overlap_tensor", True)
    precision = cells.text("precision")
    set_precision(run, "FP8_CS" if precision == "FP8 current scaling" else precision)
    modules = cells.text("recompute_modules")
    set_recompute(run, "" if modules == "[]" else modules)
    scopes = scopes_of(cells.text("cuda_graph"))
    set_graphs(run, "transformer_engine" if scopes else "", scopes)
    set_usual_moments(run, model)
    set_others(run, cells, model)


if __name__ == "__main__":
    main(__file__, """
NVIDIA, effects of single features of Megatron-Bridge and Megatron-Core
""", read)
