#!/usr/bin/env python3
"""loads_test.py BUILD: weights that `slipway execute` has trained and saved load in transformers, with the same loss.

A text of one sample tells which tokens a step has. Its loss here and that of transformers' logits differ by rounding.
SLIPWAY_TRANSFORMERS names a Python with torch and transformers (pip install torch transformers); exit status 77: unset.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TEXT = "Weights go on"  # 13 bytes: twelve predictions
LOSS = """
import sys, torch
from transformers import AutoModelForCausalLM
model, found = AutoModelForCausalLM.from_pretrained(sys.argv[1], output_loading_info=True)
assert not any(found.values()), found
tokens = torch.tensor([list(sys.argv[2].encode())])
with torch.no_grad():
    logits = model(tokens[:, :-1]).logits[0]
print(torch.nn.functional.cross_entropy(logits, tokens[0, 1:]).item())
"""


def loss_there(python, folder):
    done = subprocess.run([python, "-c", LOSS, folder, TEXT], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"transformers does not load {folder}: {done.stderr}")
    return float(done.stdout)


def scenario(folder, saved):
    (folder / "one.txt").write_text(TEXT)
    path = folder / "scenario.yaml"
    path.write_text(
        f"model: {{config: {SOURCE}/tests/data/hugging_face_weights/{saved}/config.json, sequence: 12}}\n"
        f"cluster: {{machine: {SOURCE}/scenarios/examples/machines/cpu-test.yaml, gpus_per_node: 2}}\n"
        "layout: {pipeline: 2}\n"
        "schedule: {name: 1f1b, micro_batch: 1, global_batch: 1}\n"
        "run: {steps: 3, lr: 0.03, dtype: float32, data: one.txt}\n"
    )
    return path


def loss_here(build, folder, saved):
    """Of the saved weights: those that a run starts from."""
    execute = [build / "slipway", "execute", scenario(folder, saved)]
    words = dict(check=True, capture_output=True, env={**os.environ, "SLIPWAY_RANK": str(build / "slipway-rank")})
    subprocess.run([*execute, "--out", folder / "trained", "--save-weights", folder / "weights"], **words)
    subprocess.run([*execute, "--out", folder / "again", "--weights", folder / "weights"], **words)
    return float((folder / "again" / "losses.csv").read_text().splitlines()[1].split(",")[2])


def main(build):
    python = os.environ.get("SLIPWAY_TRANSFORMERS")
    if not python:
        print("skipped: SLIPWAY_TRANSFORMERS names no Python with torch and transformers")
        return 77
    for saved in ("llama", "llama-tied", "qwen2", "qwen3"):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            here, there = loss_here(build, folder, saved), loss_there(python, folder / "weights")
            print(f"{saved}: loss {here:.7f} here, {there:.7f} in transformers")
            if abs(here - there) > 1e-5 * there:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
