#!/usr/bin/env python3
"""Measures the kernels of the GPU of this machine with PyTorch, in the columns that `slipway kernels` reads.

    measure.py MACHINE FOLDER [--only KIND]... [--seconds S]

MACHINE is the name that the rows get (`slipway list machines`). Writes into FOLDER:
    gemm.csv               products in bfloat16 and fp8; fp8 casts its input first, as in training
    attention-flash.csv    causal attention, forward, by PyTorch's flash kernel and by cuDNN's
    attention-cudnn.csv
    latent-attention.csv   heads of DeepSeek-V3: 192 numbers of query and key, 128 of value
    grouped-gemm.csv       the three products of the experts of a GPU, their activation, their rows out and back
    backward.csv           attention's backward pass over its forward pass; not for `slipway kernels`
Needs PyTorch 2.10 or newer on CUDA. A kernel that this GPU or PyTorch lacks is named, with the reason. Exit status: 0;
1 where a kind has no row at all.
"""
import argparse
import csv
import os
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DEVICE = "cuda"
SETS = 3          # of inputs, used in turn, so that none is in the cache from the call before
REPLAYS = 5       # of which the median counts
LARGEST_F8 = 448  # of e4m3


class Kind:
    """The rows of one file; a shape that fails is said once, with its reason."""

    def __init__(self, folder, name, columns):
        self.path, self.name, self.columns, self.rows, self.reasons = os.path.join(folder, name + ".csv"), name, columns, [], {}

    def add(self, shape, measure):
        try:
            seconds = measure()
            self.rows.append([*shape, f"{seconds:.4g}"])
        except (RuntimeError, ValueError, NotImplementedError, torch.OutOfMemoryError) as error:
            reason = " ".join(str(error).split())[:160]
            self.reasons.setdefault(reason, []).append(shape)
        torch.cuda.empty_cache()

    def write(self, title):
        for reason, shapes in self.reasons.items():
            print(f"{self.name}: {len(shapes)} shapes failed, the first {shapes[0]}: {reason}", file=sys.stderr)
        print(f"{self.name}: {len(self.rows)} shapes", file=sys.stderr, flush=True)
        if not self.rows:
            return False
        with open(self.path, "w", newline="") as file:
            file.write(f"# {title}\n")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows(self.rows)
        return True


def elapsed(run):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3


def seconds_in_graph(calls, budget):
    """Median seconds of one of `calls`, started one behind the other without the host."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls * 2:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    once = elapsed(calls[0])
    rounds = max(1, min(20, int(budget / REPLAYS / (once * len(calls)))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for call in calls:
                call()
    graph.replay()
    torch.cuda.synchronize()
    return statistics.median(elapsed(graph.replay) for _ in range(REPLAYS)) / (rounds * len(calls))


def seconds_eager(call, budget):
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    calls = max(3, min(50, int(budget / REPLAYS / elapsed(call))))
    return statistics.median(elapsed(lambda: [call() for _ in range(calls)]) for _ in range(REPLAYS)) / calls


def numbers(*shape, scale=1.0):
    return torch.randn(shape, device=DEVICE, dtype=torch.bfloat16) * scale


@torch.compile(dynamic=True)
def cast_fp8(x):
    scale = x.abs().amax().float().clamp(min=1e-12) / LARGEST_F8
    return (x.float() / scale).clamp(-LARGEST_F8, LARGEST_F8).to(torch.float8_e4m3fn), scale


@torch.compile(dynamic=True)
def gated(gate_up, ffn):
    return F.silu(gate_up[:, :ffn]) * gate_up[:, ffn:]


def gemm(machine, folder, budget):
    kind = Kind(folder, "gemm", ["gpu", "format", "m", "n", "k", "seconds"])
    # (n, k) of Llama 3 8B and 70B, of DeepSeek-V3, and square ones; tensor degrees 1 to 8.
    weights = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (3584, 4096), (4096, 1792), (10240, 8192),
               (8192, 8192), (57344, 8192), (8192, 28672), (7168, 8192), (8192, 3584), (1280, 8192), (8192, 1024),
               (24576, 1536), (7168, 16384), (2048, 2048), (16032, 4096)]

    def bfloat16(m, n, k):
        pairs = [(numbers(m, k), numbers(n, k)) for _ in range(SETS)]
        return seconds_in_graph([lambda x=x, w=w: F.linear(x, w) for x, w in pairs], budget)

    def fp8(m, n, k):
        pairs = [(numbers(m, k), *cast_fp8(numbers(n, k))) for _ in range(SETS)]

        def product(x, w, scale):
            narrow, scale_x = cast_fp8(x)
            return torch._scaled_mm(narrow, w.t(), scale_x, scale, out_dtype=torch.bfloat16, use_fast_accum=True)
        return seconds_in_graph([lambda p=p: product(*p) for p in pairs], budget)

    for name, measure in (("bfloat16", bfloat16), ("fp8", fp8)):
        for m in (1024, 2048, 4096, 8192, 16384):
            for n, k in weights:
                kind.add((machine, name, m, n, k), lambda: measure(m, n, k))
    return kind.write(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}: F.linear and torch._scaled_mm with its cast")


def heads_of(sequences, heads, tokens, width, gradient=False):
    return numbers(sequences, heads, tokens, width).requires_grad_(gradient)


ATTENTION = [(b, s, a, kv, d) for d, heads in ((128, ((8, 1), (32, 8), (32, 32), (64, 8))), (64, ((16, 16), (64, 8))))
             for a, kv in heads for s in (1024, 2048, 4096, 8192, 16384) for b in (1, 2, 8) if b * s <= 32768]


def attention(machine, folder, budget, backend, name):
    kind = Kind(folder, name, ["gpu", "format", "sequences", "tokens", "heads", "kv_heads", "head_dim", "seconds"])

    def measure(b, s, a, kv, d):
        sets = [[heads_of(b, of, s, d) for of in (a, kv, kv)] for _ in range(SETS)]
        with sdpa_kernel(backend):
            return seconds_in_graph([lambda t=t: F.scaled_dot_product_attention(*t, is_causal=True, enable_gqa=a != kv)
                                     for t in sets], budget)

    for b, s, a, kv, d in ATTENTION:
        kind.add((machine, "bfloat16", b, s, a, kv, d), lambda: measure(b, s, a, kv, d))
    return kind.write(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}: {backend.name}. Causal, forward.")


def latent_attention(machine, folder, budget):
    kind = Kind(folder, "latent-attention", ["gpu", "format", "sequences", "tokens", "heads", "seconds"])

    def measure(b, s, a):
        sets = [[heads_of(b, a, s, d) for d in (192, 192, 128)] for _ in range(SETS)]
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
            return seconds_in_graph([lambda t=t: F.scaled_dot_product_attention(*t, is_causal=True) for t in sets], budget)

    for a in (16, 32, 64, 128):
        for s in (1024, 2048, 4096, 8192, 16384):
            for b in (1, 2, 4):
                if b * s <= 16384:
                    kind.add((machine, "bfloat16", b, s, a), lambda: measure(b, s, a))
    return kind.write(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}: cuDNN. Causal, forward; heads of 192 "
                      "numbers of query and key and 128 of value.")


def grouped_gemm(machine, folder, budget):
    kind = Kind(folder, "grouped-gemm", ["gpu", "format", "tokens", "hidden", "ffn", "experts_per_token", "experts", "tensor",
                                         "expert_parallel", "distribution", "seconds"])

    def measure(tokens, hidden, ffn, top, experts, parallel):
        mine = experts // parallel
        rows = tokens * top // parallel  # balanced
        own = tokens // parallel
        ends = torch.arange(1, mine + 1, device=DEVICE, dtype=torch.int32) * (rows // mine)
        sets = [(numbers(own, hidden), torch.randint(own, (rows,), device=DEVICE), torch.rand(rows, 1, device=DEVICE).bfloat16(),
                 numbers(mine, 2 * ffn, hidden, scale=hidden ** -0.5).transpose(1, 2),
                 numbers(mine, hidden, ffn, scale=ffn ** -0.5).transpose(1, 2))
                for _ in range(SETS)]

        def experts_of(x, source, weight, up, down):
            y = F.grouped_mm(gated(F.grouped_mm(x.index_select(0, source), up, offs=ends), ffn), down, offs=ends)
            return torch.zeros_like(x).index_add_(0, source, y * weight)
        return seconds_in_graph([lambda t=t: experts_of(*t) for t in sets], budget)

    for hidden, ffn, top, experts, degrees in ((2048, 768, 8, 128, (1, 4, 8, 32)), (4096, 1536, 8, 128, (4, 8, 32)),
                                               (4096, 14336, 2, 8, (1, 2, 4, 8)), (7168, 2048, 8, 256, (8, 32, 64)),
                                               (2880, 2880, 4, 128, (4, 16))):
        for parallel in degrees:
            for tokens in (1024, 4096, 8192, 16384, 65536):
                rows = tokens * top // parallel
                if rows % (experts // parallel) == 0 and 1024 <= rows <= 65536:
                    kind.add((machine, "bfloat16", tokens, hidden, ffn, top, experts, 1, parallel, "balanced"),
                             lambda: measure(tokens, hidden, ffn, top, experts, parallel))
    return kind.write(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}: F.grouped_mm; all three products of a "
                      "gated MLP.")


def backward(machine, folder, budget):
    kind = Kind(folder, "backward", ["gpu", "kernel", "sequences", "tokens", "heads", "kv_heads", "query_dim", "value_dim",
                                     "forward_seconds", "seconds"])

    def measure(backend, b, s, a, kv, d, dv, row):
        q, k, v = heads_of(b, a, s, d, True), heads_of(b, kv, s, d, True), heads_of(b, kv, s, dv, True)
        with sdpa_kernel(backend):
            def forward():
                return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=a != kv)
            with torch.no_grad():
                row.append(f"{seconds_eager(forward, budget):.4g}")
            result = forward()
            gradient = torch.randn_like(result)
            return seconds_eager(lambda: torch.autograd.grad(result, (q, k, v), gradient, retain_graph=True), budget)

    for name, backend, d, dv, heads in (("flash", SDPBackend.FLASH_ATTENTION, 128, 128, ((32, 8), (32, 32))),
                                        ("cudnn", SDPBackend.CUDNN_ATTENTION, 128, 128, ((32, 8), (32, 32))),
                                        ("cudnn", SDPBackend.CUDNN_ATTENTION, 192, 128, ((64, 64),))):
        for a, kv in heads:
            for b, s in ((2, 2048), (2, 4096), (2, 8192), (1, 16384)):
                shape = [machine, name, b, s, a, kv, d, dv]
                kind.add(shape, lambda: measure(backend, b, s, a, kv, d, dv, shape))
    return kind.write(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}: gradients of query, key and value; causal.")


KINDS = {
    "gemm": gemm,
    "grouped-gemm": grouped_gemm,
    "latent-attention": latent_attention,
    "attention-flash": lambda *words: attention(*words, SDPBackend.FLASH_ATTENTION, "attention-flash"),
    "attention-cudnn": lambda *words: attention(*words, SDPBackend.CUDNN_ATTENTION, "attention-cudnn"),
    "backward": backward,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine")
    parser.add_argument("folder")
    parser.add_argument("--only", action="append", choices=list(KINDS), help="measure this kind; may be repeated")
    parser.add_argument("--seconds", type=float, default=0.1, help="of one shape, about")
    words = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("measure.py: PyTorch sees no GPU here")
    os.makedirs(words.folder, exist_ok=True)
    torch.manual_seed(1)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", file=sys.stderr)
    done = [KINDS[name](words.machine, words.folder, words.seconds) for name in words.only or KINDS]
    sys.exit(0 if all(done) else 1)


main()
