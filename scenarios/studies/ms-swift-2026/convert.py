#!/usr/bin/env python3
"""Comments of ms-swift's examples (modelscope/ms-swift), "8 * 65GiB. 80s/it", beside the arguments of the command.

The GPU is not stated. Rows with seconds and a layout are those of the command megatron.
"""
# reads: comment, gpus, s_per_it, command, model, tuner, tp, pp, cp, ep, etp, vpp, mbs, gbs, max_length, recompute, offload, fp8
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import main, set_cluster, set_experts, set_layout, set_lora, set_model, set_precision  # noqa: E402


def read(cells, run):
    comment, has_time = cells.text("comment"), not cells.empty("s_per_it")
    # Attention kernels 3 and products in FP8 need Hopper.
    machine = "h100-80gb" if "fa3" in comment or not cells.empty("fp8") else "a100-80gb"
    model = set_model(run, cells.text("model"))
    run.place(group=model, choice=model, table=f"{model}, line {cells.line}")
    run.exclude("unknown_recipe")  # no row names its GPU
    run.result(status="ok" if has_time else "other", step_s=cells.above_zero("s_per_it") if has_time else 0.0)
    run.set("cluster.machine", machine)
    if run.lacks(cells, ["gpus", "mbs", "gbs"]):
        return
    run.set("cluster.trainer", "megatron-bridge")
    run.assume("the GPU is " + machine)
    set_cluster(run, machine, cells.integer("gpus"))
    set_layout(run, cells.integer("max_length"), cells.integer("mbs"), cells.integer("gbs"), cells.degree("tp"),
               cells.degree("cp"), cells.degree("pp"), cells.degree("vpp"))
    set_experts(run, cells.degree("ep"), cells.whole_or("etp", 0), "")
    set_precision(run, cells.text("fp8") if not cells.empty("fp8") and "BF16" not in comment else "bf16")
    run.set("schedule.recompute", cells.text("recompute") or "none")
    if cells.is_set("offload"):
        run.set("run.optimizer.offload_fraction", cells.text("offload_fraction") or "1")
    if cells.is_set("packing"):
        run.assume("samples packed into a sequence attend to each other")
    if cells.text("tuner").startswith("lora") and not comment.startswith("full"):
        set_lora(run, cells.integer("lora_rank"), "",
                 "adapters on all Linears, ms-swift's default (--target_modules all-linear)")
    if "/dpo" in cells.text("source") or "rlhf" in cells.text("source"):
        run.refuse("a reference model beside the trained one (DPO)")


if __name__ == "__main__":
    main(__file__, """
ModelScope, ms-swift, comments of its examples
""", read)
