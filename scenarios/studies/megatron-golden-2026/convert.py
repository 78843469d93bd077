#!/usr/bin/env python3
"""Golden values of Megatron-LM's functional tests (NVIDIA/Megatron-LM tests/functional_tests).

The bytes that the last rank prints, and the arguments of the test. The models are tiny, so their times are the host's
and are not scored.
"""
# reads: date, family, test_case, gpu, gpus, mem_alloc_bytes, mem_max_alloc_bytes, tp, pp, cp, ep, etp, layers_per_vp, mbs, gbs, seq, layers, hidden, ffn, heads, dist_opt, transformer_impl, env_vars, other_args
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import re  # noqa: E402

from published_runs import (Refused, machine_named, main, set_cluster, set_experts, set_layout, set_precision,  # noqa: E402
                            set_recompute, words_of)


def is_on(cells, column):
    return cells.text(column) == "True"


def other(cells, name):
    """The value of "name=value" in the other arguments; empty: not there."""
    found = re.search(f" {re.escape(name)}=([^ ]*) ", " " + cells.text("other_args") + " ")
    return found[1] if found else ""


def number_in(text, where):
    """The whole number that a text begins with."""
    found = re.match(r"\d+", text)
    if not found or not 1 <= int(found[0]) <= 1e9:
        raise Refused(f"{where}: '{text}' is no whole number from 1 to 1e9")
    return int(found[0])


def number_of(cells, name, otherwise):
    said = other(cells, name)
    return number_in(said, name) if said else otherwise


def vocabulary(run, cells):
    """GPT-2's byte pairs, the tokens of the tests' data, padded as Megatron-LM does; unless the test says a vocabulary."""
    tokens, case = 50257, cells.text("test_case")
    if other(cells, "vocab-size"):
        tokens = number_of(cells, "vocab-size", 0)
    elif cells.text("family") == "mixtral":
        tokens = 32000 if case.startswith("mixtral") else 129280
    elif "15b_8t" in case:
        tokens = 256000
    multiple = cells.integer_or("vocab_div", 128) * cells.integer_or("tp", 1)
    run.assume(f"a vocabulary of {tokens} tokens")
    return -(-tokens // multiple) * multiple


def set_expert_shapes(run, cells):
    run.set("model.experts", cells.integer("experts"))
    run.set("model.experts_per_token", cells.integer_or("topk", 2))
    if not cells.empty("shared_ffn"):
        run.set("model.shared_ffn", cells.integer("shared_ffn"))
    frequency = cells.text("moe_layer_freq")  # "([0]*3+[1]*11)"
    if frequency.startswith("([0]*"):
        run.set("model.dense_layers", number_in(frequency[5:], "moe_layer_freq"))
        run.set("model.dense_ffn", cells.integer_or("ffn", 4 * cells.integer("hidden")))
    set_experts(run, cells.integer_or("ep", 1), cells.integer_or("etp", 0),
                cells.text("flex_backend") or cells.text("dispatcher"))


def set_model_shapes(run, cells):
    hidden = cells.integer("hidden")
    ffn = cells.integer_or("ffn", 4 * hidden)
    gated, rotary, latent = is_on(cells, "swiglu"), cells.text("pos") == "rope", is_on(cells, "mla")
    has_experts = not cells.empty("experts")
    # A GPT as the language has it has learned positions and biases.
    as_gpt = (not gated and not has_experts and cells.empty("kv_groups") and cells.empty("norm") and not latent and
              not rotary)
    run.set("model.family", "gpt" if as_gpt else "llama")
    run.set("model.layers", cells.integer("layers"))
    run.set("model.hidden", hidden)
    run.set("model.heads", cells.integer("heads"))
    run.set("model.ffn", cells.integer_or("moe_ffn", ffn) if has_experts else ffn)
    run.set("model.vocab", vocabulary(run, cells))
    run.set("model.tied", not is_on(cells, "untied"))
    if as_gpt:
        run.set("model.max_positions", cells.integer("seq"))
        if other(cells, "disable-bias-linear") == "True":
            run.assume("Linears with biases")
        return
    run.set("model.kv_heads", cells.integer_or("kv_groups", cells.integer("heads")))
    if not cells.empty("kv_channels") and not latent:
        run.set("model.head_dim", cells.integer("kv_channels"))
    if not gated:
        run.set("model.mlp", "gelu")
    if cells.text("norm") != "RMSNorm":
        run.set("model.norm", "layer")
    if not rotary:
        run.set("model.positions", "learned")
        run.set("model.max_positions", cells.integer("seq"))
    if other(cells, "disable-bias-linear") != "True":
        run.set("model.bias", True)
    if latent:
        # Defaults of Megatron-LM's arguments, where a test does not say otherwise.
        run.set("model.kv_latent", cells.integer_or("kv_lora", 32))
        run.set("model.q_latent", cells.integer_or("q_lora", 0))
        run.set("model.qk_head_dim", number_of(cells, "qk-head-dim", 128))
        run.set("model.rope_head_dim", number_of(cells, "qk-pos-emb-head-dim", 64))
        run.set("model.v_head_dim", number_of(cells, "v-head-dim", 128))
    if not cells.empty("mtp_layers"):
        run.set("model.predicted_tokens", cells.integer("mtp_layers"))
    if has_experts:
        set_expert_shapes(run, cells)


def printed_settings(cells):
    """How the run allocates, beside what is counted (models/memory/printed_memory.h)."""
    settings = {}
    if "CUBLAS_WORKSPACE_CONFIG=:4096:8" in cells.text("env_vars"):
        settings["fixed_workspace"] = "true"
    if cells.text("transformer_impl") == "local":
        settings["transformer_engine"] = "false"
    if cells.text("dropout") != "0.0":
        settings["dropout"] = "true"
    # Megatron's own fused cross entropy keeps the fp32 logits beside their exponentials.
    if other(cells, "cross-entropy-loss-fusion") == "True" and other(cells, "cross-entropy-fusion-impl") != "te":
        settings["logit_bytes"] = "10"
    # Gradients and their fp32 copies for the optimizer: megatron/core/optimizer/optimizer.py, Float16Optimizer.
    if is_on(cells, "fp16") and not is_on(cells, "dist_opt"):
        settings["optimizer_more_bytes"] = "4"
    return "{" + ", ".join(f"{key}: {value}" for key, value in settings.items()) + "}"


def set_recomputation(run, cells):
    recompute = cells.text("recompute")
    if recompute == "selective" and not cells.empty("recompute_modules"):
        set_recompute(run, " ".join(words_of(cells.text("recompute_modules"))))
    else:
        set_recompute(run, {"full": "full", "selective": "core_attn"}.get(recompute, ""))


def read(cells, run):
    gpu, family, case = cells.text("gpu"), cells.text("family"), cells.text("test_case")
    machine = machine_named("gpu", "A100-80GB" if gpu == "unspecified" else gpu, ["h100-80gb", "a100-80gb"])
    group = f"{family} on {machine}"
    run.place(group=group, choice=group, table=f"{group}, line {cells.line}")
    run.exclude("memory_only")
    run.result(step_s=cells.number_or("iter_s_median", 1.0))
    run.version_of, run.version = f"{case} on {gpu}", cells.text("date")
    run.set("cluster.machine", machine)
    if cells.empty("mem_alloc_bytes") or family not in ("gpt", "moe", "mixtral"):
        run.result(status="other")
        return
    run.result(allocated_bytes=cells.number("mem_alloc_bytes"), reserved_bytes=cells.number("mem_max_alloc_bytes"))
    if run.lacks(cells, ["hidden", "layers", "heads", "seq", "mbs", "gbs"]):
        return
    gpus = cells.integer_or("gpus", cells.integer_or("gpus_inferred", 8))
    if cells.empty("gpus") and cells.empty("gpus_inferred"):
        run.assume("eight GPUs")
    run.set("cluster.trainer", "megatron-core")
    set_cluster(run, machine, gpus)
    set_model_shapes(run, cells)
    tensor, pipeline, chunks, layers = cells.degree("tp"), cells.degree("pp"), cells.degree("vp"), cells.integer("layers")
    if not cells.empty("layers_per_vp"):
        chunks = max(1, layers // pipeline // cells.integer("layers_per_vp"))
    shards = is_on(cells, "fsdp")
    set_layout(run, cells.integer("seq"), cells.integer("mbs"), cells.integer("gbs"), tensor, cells.degree("cp"), pipeline,
               chunks, shards)
    if not cells.empty("pp_layout"):
        run.set("layout.split", '"' + cells.text("pp_layout") + '"')
    run.set("layout.vocab_multiple", 1)  # it is padded
    if not shards:
        run.set("layout.zero", 1 if is_on(cells, "dist_opt") else 0)
    if tensor > 1:
        run.set("layout.sequence_parallel", is_on(cells, "sp"))
    run.set("run.dtype", "float16" if is_on(cells, "fp16") else "bfloat16" if is_on(cells, "bf16") else "float32")
    if not cells.empty("fp8"):
        set_precision(run, cells.text("fp8_recipe") or "fp8")
    unfused = cells.text("attn_backend") == "unfused" or cells.text("transformer_impl") == "local"
    run.set("schedule.kernels", "fused_softmax" if unfused else "flash2_rmsnorm")
    set_recomputation(run, cells)
    if is_on(cells, "fine_offload"):
        run.set("schedule.offload", "[" + ", ".join(words_of(cells.text("offload_modules"))) + "]")
    if cells.text("optimizer") == "muon":
        run.refuse("the optimizer Muon")
    if other(cells, "num-distributed-optimizer-instances") == "2":
        run.set("layout.replicate", 2)
    if family == "gpt" and "grpo" in case:
        run.refuse("a second model for sampling (GRPO)")
    run.result(printed=printed_settings(cells))


if __name__ == "__main__":
    main(__file__, """
NVIDIA, Megatron-LM, golden values of its functional tests
""", read)
