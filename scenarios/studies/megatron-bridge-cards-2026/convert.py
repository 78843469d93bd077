#!/usr/bin/env python3
"""Model verification cards of NVIDIA-NeMo/Megatron-Bridge (examples/model_verification_cards): the mean step of 41 to 50.

functional rows are sanity runs; a card without degrees does not say its recipe.
"""
# reads: model, item, hardware, gpus, precision, mode, seq, gbs, mbs, tp, pp, vpp, cp, ep, etp, routing, cuda_graph, dispatcher, other_features, step_ms
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import re  # noqa: E402

from published_runs import (machine_named, main, set_cluster, set_experts, set_graphs, set_layout, set_model,  # noqa: E402
                            set_pipeline, set_precision, set_usual_moments, set_usual_recompute)


def scopes_of(written):
    """ "{'implementation': 'transformer_engine', 'scopes': ['attn', 'mlp']}" as "attn mlp"; "{}": none."""
    found = re.search(r"'scopes': \[([^\]]*)\]", written)
    return found[1].replace("'", "").replace(",", "") if found else ""


def read(cells, run):
    machine, gpus = machine_named("hardware", cells.text("hardware"), ["h100-80gb"]), cells.integer("gpus")
    model, precision = set_model(run, cells.text("model")), cells.text("precision")
    group = f"{model} on {machine}"
    run.place(group=group, choice=model, table=f"{group}, line {cells.line}")  # a family is left out as a whole
    run.result(step_s=cells.above_zero("step_ms") / 1e3, tflops_per_gpu=cells.number_or("tflops_gpu", 0.0))
    run.exclude("unknown_recipe", cells.text("mode") != "performance")
    run.set("cluster.trainer", "megatron-bridge")
    set_cluster(run, machine, gpus)
    if run.lacks(cells, ["mbs", "tp", "pp"]):
        return
    pipeline, chunks = cells.integer("pp"), cells.degree("vpp")
    set_layout(run, cells.integer("seq"), cells.integer("mbs"), cells.integer("gbs"), cells.integer("tp"),
               cells.degree("cp"), pipeline, chunks, "megatron_fsdp" in cells.text("other_features"))
    set_pipeline(run, model, pipeline, chunks)
    set_experts(run, cells.degree("ep"), cells.whole_or("etp", 0), cells.text("dispatcher"))
    set_precision(run, precision)
    set_usual_recompute(run, model, machine, precision)
    set_usual_moments(run, model)
    scopes = scopes_of(cells.text("cuda_graph"))
    if scopes:
        set_graphs(run, "transformer_engine", scopes)
    if "sequence_packing" in cells.text("other_features"):
        run.refuse("several samples packed into a sequence, which do not attend to each other")
    if cells.text("item").startswith("peft"):
        run.refuse("LoRA of a rank that is not given")


if __name__ == "__main__":
    main(__file__, """
NVIDIA, Megatron-Bridge, model verification cards
""", read)
