#!/usr/bin/env python3
"""PrimeIntellect's prime-rl (benchmarks/baselines): FSDP with full recomputation, one sequence a micro-batch.

Of runs that ended and runs out of memory. rl rows train on samples that another process draws; the step is a training
step.
"""
# reads: type, model, gpus, device, lora_rank, seq, activation, ep, cp, micro_batches, success, error, micro_step_s_mean
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import (machine_named, main, set_cluster, set_experts, set_layout, set_lora, set_model,  # noqa: E402
                            set_precision, set_recompute)


def read(cells, run):
    ended = cells.flag("success")
    gpus, model, device = cells.integer("gpus"), set_model(run, cells.text("model")), cells.text("device")
    group = f"{model} on {device}"
    run.place(group=group, choice=model, table=f"{group}, line {cells.line}")
    machine = machine_named("device", device, ["h100-80gb"])
    micro_batches, context = cells.integer("micro_batches"), cells.degree("cp")
    # "micro step" is the step of all micro-batches: their tokens / tokens_per_s_mean, where the speed is steady.
    run.result(status="ok" if ended else "oom" if "OutOfMemory" in cells.text("error") else "other",
               step_s=cells.above_zero("micro_step_s_mean") if ended else 0.0)
    run.set("cluster.trainer", "torchtitan")
    run.assume("prime-rl has the habits of torchtitan, whose FSDP it uses")
    set_cluster(run, machine, gpus)
    set_layout(run, cells.integer("seq"), 1, micro_batches * gpus // context, context=context, full_shards=True)
    set_experts(run, cells.degree("ep"), 0, "")
    set_precision(run, "bf16")
    set_recompute(run, "full")
    if cells.text("activation") == "Offload":
        run.set("schedule.offload", "[layer_inputs]")
    if not cells.empty("lora_rank"):
        set_lora(run, cells.integer("lora_rank"), "", "adapters on all Linears; the table names none")


if __name__ == "__main__":
    main(__file__, """
PrimeIntellect, prime-rl, benchmarks of FSDP
""", read)
