#!/usr/bin/env python3
"""torchtitan's runs in bf16, FP8, MXFP8 and NVFP4 on Blackwell (pytorch/torchtitan torchtitan/components/quantization).

mxfp8.md and nvfp4.md: one node, FSDP, torch.compile. The pages say neither the exact GPU nor, in part, the model and the
recomputation, so no row is scored.
"""
# reads: model, system, gpus, precision, seq, local_batch, gbs, fsdp, ac, compile, tokens_per_s, tokens_per_s_is
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from published_runs import joined_words, machine_named, main, set_cluster, set_layout, set_model, set_precision  # noqa: E402


def precision_of(written):
    """ "mxfp8_cublas_rceil" and "float8 tensorwise" as recipes. Rounding of scales changes no time."""
    word = joined_words(written)
    return "mxfp8" if word.startswith("mxfp8") else "tensorwise" if word == "float8tensorwise" else written


def read(cells, run):
    gpus, system = cells.integer("gpus"), cells.text("system")
    machine = "gb200" if "184 GiB" in system else machine_named("system", system)  # a B200 has 179
    model = set_model(run, cells.text("model"))
    group = f"{model} on {machine}"
    run.place(group=group, choice=model, table=f"{group}, line {cells.line}", study=group)
    run.exclude("unknown_recipe")
    sequence, batch = cells.integer("seq"), cells.integer("gbs")
    run.result(step_s=batch * sequence / (gpus * cells.above_zero("tokens_per_s")))
    if "presumably" in cells.text("model"):
        run.assume("the model is " + model)
    if "presumably" in cells.text("tokens_per_s_is"):
        run.assume("tokens/s are of one GPU")
    run.set("cluster.trainer", "torchtitan")
    set_cluster(run, machine, gpus)
    set_layout(run, sequence, cells.integer("local_batch"), batch, full_shards=True)
    run.set("layout.vocab_multiple", 0)
    precision = cells.text("precision")
    if "bf16)" in precision:
        run.refuse("layers in two precisions: " + precision)
    else:
        set_precision(run, precision_of(precision))
    if "run.fp8" not in run.keys:
        run.set("run.fp8", f'"{precision}"')  # of pairs of levers
    if "SAC" in cells.text("ac"):
        run.refuse(f"recomputation of single operators ({cells.text('ac')})")
    else:
        run.assume("nothing is recomputed")
    if cells.text("compile") == "yes":
        run.assume("element-wise kernels are single, although torch.compile fuses them")


if __name__ == "__main__":
    main(__file__, """
PyTorch, torchtitan, training in MXFP8 and NVFP4
""", read)
