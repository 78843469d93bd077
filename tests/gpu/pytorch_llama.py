#!/usr/bin/env python3
"""The model of llama.yaml in plain PyTorch, eager or compiled: what a GPU does for somebody who writes it by hand.

    pytorch_llama.py [--compile [--compile-optimizer]] [--text FILE] [--steps N] [--device cuda|cpu] [--layers N ...]
                     [--trace FILE]

bfloat16 weights with float32 master weights, flash attention, fused AdamW, clipping to the global norm; the same shapes,
tokens per step and micro-batches, and nothing that waits for the device between steps. Prints one line of JSON: the median
step of those after the first five, in seconds, and the loss of the last. --trace: PyTorch's profiler writes the last two
steps there, as docs/profiler-traces.md says; it makes them slower.
"""
import argparse
import contextlib
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule


class Layer(nn.Module):
    def __init__(self, hidden, ffn, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.up, self.down = nn.Linear(hidden, 2 * ffn, bias=False), nn.Linear(ffn, hidden, bias=False)

    def turn(self, x, cosine, sine):
        first, second = x.chunk(2, -1)
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)

    def forward(self, x, cosine, sine):
        batch, sequence, hidden = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, sequence, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(self.turn(q, cosine, sine), self.turn(k, cosine, sine), v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, sequence, hidden))
        gate, up = self.up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, layers, hidden, ffn, heads, vocab, sequence):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.layers = nn.ModuleList(Layer(hidden, ffn, heads) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(hidden), nn.Linear(hidden, vocab, bias=False)
        half = hidden // heads // 2
        angle = torch.outer(torch.arange(sequence), 10000.0 ** (-torch.arange(half) / half))
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cosine, self.sine)
        return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())


class Trainer:
    """float32 masters of bfloat16 weights; gradients of all micro-batches add up in float32."""

    def __init__(self, model, lr, fused):
        self.weights = list(model.parameters())
        self.masters = [w.detach().float() for w in self.weights]
        for master in self.masters:
            master.grad = torch.zeros_like(master)
        # Compiled, the many small operations of the foreach form become few kernels.
        self.optimizer = torch.optim.AdamW(self.masters, lr=lr, fused=fused, foreach=not fused)

    def take_gradients(self, first):
        take = torch._foreach_copy_ if first else torch._foreach_add_
        take([m.grad for m in self.masters], [w.grad for w in self.weights])
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self):
        nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=True)
        self.optimizer.step()
        torch._foreach_copy_(self.weights, self.masters)


# Of one step after the other, in seconds, by the device's own clock.
class Stopwatch:
    def __init__(self, device):
        self.on_gpu, self.marks = device == "cuda", []

    def mark(self):
        if self.on_gpu:
            self.marks.append(torch.cuda.Event(enable_timing=True))
            self.marks[-1].record()
        else:
            self.marks.append(time.perf_counter())

    def times(self):
        if not self.on_gpu:
            return [after - before for before, after in zip(self.marks, self.marks[1:])]
        torch.cuda.synchronize()
        return [before.elapsed_time(after) / 1e3 for before, after in zip(self.marks, self.marks[1:])]


# Records the last two of `steps` steps, where somebody wants them; step() after each.
def recorder(path, steps, device):
    if path is None:
        return contextlib.nullcontext()
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    return profile(activities=kinds, schedule=schedule(wait=steps - 4, warmup=2, active=2), record_shapes=True,
                   on_trace_ready=lambda done: done.export_chrome_trace(path))


# [micro-batches, micro-batch, sequence + 1]: bytes of the text, as the scenario has them, or random ones.
def draw_data(words):
    shape = (words.micro_batches, words.micro_batch, words.sequence + 1)
    if words.text is None:
        return torch.randint(256, shape)
    with open(words.text, "rb") as file:
        text = file.read()
    tokens = torch.tensor(list(text)).repeat(-(-shape[0] * shape[1] * shape[2] // len(text)))
    return tokens[:shape[0] * shape[1] * shape[2]].view(shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--compile-optimizer", action="store_true")
    parser.add_argument("--text")
    parser.add_argument("--trace")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=15)
    for name, value in (("layers", 16), ("hidden", 2048), ("ffn", 5632), ("heads", 16), ("vocab", 32000),
                        ("sequence", 2048), ("micro-batch", 4), ("micro-batches", 2)):
        parser.add_argument("--" + name, type=int, default=value)
    words = parser.parse_args()
    if words.trace and words.steps < 5:
        parser.error("--trace needs --steps 5 or more: two that are recorded, two to warm up, one without")
    torch.manual_seed(1)
    model = Llama(words.layers, words.hidden, words.ffn, words.heads, words.vocab, words.sequence)
    model = model.to(words.device, torch.bfloat16)
    trainer = Trainer(model, 3e-4, fused=not words.compile_optimizer)
    run = torch.compile(model) if words.compile else model
    update = torch.compile(trainer.step) if words.compile_optimizer else trainer.step
    data = draw_data(words).to(words.device)
    watch = Stopwatch(words.device)
    watch.mark()
    with recorder(words.trace, words.steps, words.device) as recording:
        for _ in range(words.steps):
            for i, batch in enumerate(data):
                loss = run(batch[:, :-1], batch[:, 1:])
                (loss / words.micro_batches).backward()
                trainer.take_gradients(first=i == 0)
            update()
            watch.mark()
            if recording is not None:
                recording.step()
    times = watch.times()
    tokens = words.micro_batches * words.micro_batch * words.sequence
    step = statistics.median(times[min(5, len(times) - 1):])
    print(json.dumps({"step_s": step, "tokens_per_s": tokens / step, "loss": loss.item(), "torch": torch.__version__}))


main()
