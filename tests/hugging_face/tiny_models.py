#!/usr/bin/env python3
"""Tiny models of Hugging Face's transformers with their logits, and the logits of any folder of weights.

tiny_models.py make FOLDER            writes FOLDER/<name>/{config.json, *.safetensors, expected.safetensors} of each model
tiny_models.py logits DIR EXPECTED    prints the largest difference between the logits of the model in DIR and those in
                                      EXPECTED, for its tokens

expected.safetensors holds `tokens` (I64 [sequences, tokens]) and `logits` (F32 [sequences, tokens, vocabulary]), in
float32. tests/data/hugging_face_weights/ was made with torch 2.11.0, transformers 5.24.0 and safetensors 0.8.0.
"""
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

SHAPE = dict(vocab_size=256, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2)  # fmt: skip
# Name: model_type, what differs, dtype on disk, largest file.
MODELS = {
    # Two files and an index; a base and an epsilon that are no defaults.
    "llama": ("llama", dict(rope_theta=500000.0, rms_norm_eps=1e-3), torch.float32, 20000),
    # Heads wider than hidden / heads.
    "llama-tied": ("llama", dict(tie_word_embeddings=True, head_dim=6), torch.bfloat16, 10**9),
    "qwen2": ("qwen2", dict(tie_word_embeddings=True), torch.float16, 10**9),
    "qwen3": ("qwen3", dict(tie_word_embeddings=True, head_dim=8, num_key_value_heads=1), torch.float64, 10**9),
}


def logits_of(model, tokens):
    with torch.no_grad():
        return model(tokens).logits.to(torch.float32).contiguous()


def loaded(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def make(folder):
    for number, (name, (kind, features, dtype, largest)) in enumerate(MODELS.items()):
        torch.manual_seed(number)
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **(SHAPE | features)))
        with torch.no_grad():
            for parameter in model.parameters():  # larger than initial weights, so that an error shows in the logits
                is_vector = parameter.dim() == 1
                parameter.copy_(torch.randn_like(parameter) * (0.2 if is_vector else 0.3) + (1.0 if is_vector else 0.0))
        model.to(dtype).save_pretrained(folder / name, max_shard_size=largest)
        (folder / name / "generation_config.json").unlink(missing_ok=True)
        tokens = torch.randint(0, SHAPE["vocab_size"], (2, 12))
        save_file({"tokens": tokens, "logits": logits_of(loaded(folder / name), tokens)},
                  folder / name / "expected.safetensors")


def compare(folder, expected):
    stored = load_file(expected)
    print((logits_of(loaded(folder), stored["tokens"]) - stored["logits"]).abs().max().item())


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"] and len(sys.argv) == 3:
        make(pathlib.Path(sys.argv[2]))
    elif sys.argv[1:2] == ["logits"] and len(sys.argv) == 4:
        compare(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
