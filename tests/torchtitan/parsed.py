#!/usr/bin/env python3
"""Parses a command line with torchtitan's own parser and prints the settings as JSON.

parsed.py --module llama3 --config llama3_8b --parallelism.tensor_parallel_degree 8

torchtitan imports PyTorch and a dozen of packages, which its parser does not use. Here they are empty stand-ins, so
that the parser runs where torchtitan and tyro alone are installed (setup/torchtitan.sh).
"""
import abc
import dataclasses
import importlib.abc
import importlib.machinery
import json
import sys
import types

STAND_INS = {
    "PIL", "datasets", "einops", "jinja2", "numpy", "requests", "safetensors", "spmd_types", "tensorboard",
    "tokenizers", "torch", "torch_checkpointing", "torchao", "torchdata", "triton", "wandb",
}  # fmt: skip


def decorates(arguments):
    return len(arguments) == 1 and isinstance(arguments[0], type)


class Anything(abc.ABCMeta):
    """Type of a class that can be subclassed, called, subscripted, and has every attribute."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return anything(name)

    def __call__(cls, *arguments, **options):
        if not cls.__dict__.get("_is_stand_in"):
            return super().__call__(*arguments, **options)
        return arguments[0] if decorates(arguments) and not options else object.__new__(cls)

    def __or__(cls, other):
        return cls

    def __ror__(cls, other):
        return cls

    def __iter__(cls):
        return iter(())

    def __len__(cls):
        return 0


def anything(name):
    def attribute(self, wanted):
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        return anything(wanted)

    members = {
        "_is_stand_in": True,
        "__class_getitem__": classmethod(lambda cls, item: cls),
        "__init_subclass__": classmethod(lambda cls, **options: None),
        "__getattr__": attribute,
        "__call__": lambda self, *arguments, **options: arguments[0] if decorates(arguments) else self,
        "__getitem__": lambda self, item: self,
        "__iter__": lambda self: iter(()),
        "__lt__": lambda self, other: False,
        "__ge__": lambda self, other: True,
    }
    return Anything(name, (), members)


class StandIn(types.ModuleType):
    def __getattr__(self, name):
        if name == "__version__":
            return "2.11.0"
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "is_available":
            return lambda: False
        setattr(self, name, anything(name))
        return self.__dict__[name]


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in STAND_INS else None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def main():
    sys.meta_path.insert(0, Finder())
    from torchtitan.config.manager import ConfigManager

    config = ConfigManager().parse_args(sys.argv[1:])
    model = config.model_spec.model
    checkpointing = config.activation_checkpoint
    print(json.dumps({
        "training": dataclasses.asdict(config.training),
        "parallelism": dataclasses.asdict(config.parallelism),
        "lr_scheduler": dataclasses.asdict(config.lr_scheduler),
        "optimizer": config.optimizer.param_groups[0].optimizer_kwargs,
        "activation_checkpoint": "none" if checkpointing is None else type(checkpointing).__qualname__.split(".")[0],
        "model": {"dim": model.dim, "layers": len(model.layers), "vocab": model.vocab_size},
    }))  # fmt: skip


if __name__ == "__main__":
    main()
