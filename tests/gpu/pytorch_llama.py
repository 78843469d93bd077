#!/usr/bin/env python3
"""The model of llama.yaml in plain PyTorch, eager or compiled: what a GPU does for somebody who writes it by hand.

    pytorch_llama.py [--compile] [--steps N] [--device cuda|cpu] [--layers N ...]

bfloat16 weights with float32 master weights, flash attention, fused AdamW, clipping to the global norm; the same shapes,
tokens per step and micro-batches. Prints one line of JSON: the median step of those after the first five, in seconds.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


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

    def __init__(self, model, lr):
        self.weights = list(model.parameters())
        self.masters = [w.detach().float() for w in self.weights]
        for master in self.masters:
            master.grad = torch.zeros_like(master)
        self.optimizer = torch.optim.AdamW(self.masters, lr=lr, fused=True)

    def take_gradients(self):
        torch._foreach_add_([m.grad for m in self.masters], [w.grad for w in self.weights])
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self):
        nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=True)
        self.optimizer.step()
        torch._foreach_copy_(self.weights, self.masters)
        torch._foreach_zero_([m.grad for m in self.masters])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=15)
    for name, value in (("layers", 16), ("hidden", 2048), ("ffn", 5632), ("heads", 16), ("vocab", 32000),
                        ("sequence", 2048), ("micro-batch", 4), ("micro-batches", 2)):
        parser.add_argument("--" + name, type=int, default=value)
    words = parser.parse_args()
    torch.manual_seed(1)
    model = Llama(words.layers, words.hidden, words.ffn, words.heads, words.vocab, words.sequence)
    model = model.to(words.device, torch.bfloat16)
    trainer = Trainer(model, 3e-4)
    run = torch.compile(model) if words.compile else model
    wait = torch.cuda.synchronize if words.device == "cuda" else lambda: None
    times = []
    with torch.no_grad():
        data = torch.randint(256, (words.micro_batches, words.micro_batch, words.sequence + 1), device=words.device)
    for _ in range(words.steps):
        wait()
        begin = time.perf_counter()
        for batch in data:
            (run(batch[:, :-1], batch[:, 1:]) / words.micro_batches).backward()
            trainer.take_gradients()
        trainer.step()
        wait()
        times.append(time.perf_counter() - begin)
    tokens = words.micro_batches * words.micro_batch * words.sequence
    step = statistics.median(times[min(5, len(times) - 1):])
    print(json.dumps({"step_s": step, "tokens_per_s": tokens / step, "torch": torch.__version__}))


main()
