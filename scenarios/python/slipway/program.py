"""Where the program is, and what `slipway` and `slipway-rank` of an installed wheel start."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

BUNDLE = Path(__file__).resolve().parent / "bundle"


def program_path() -> str:
    """The path of slipway: SLIPWAY_PROGRAM, the one in this wheel, or the one in PATH.

    Raises FileNotFoundError where there is none.
    """
    named = os.environ.get("SLIPWAY_PROGRAM")
    if named:
        return named
    if (BUNDLE / "slipway").exists():
        return str(BUNDLE / "slipway")
    found = shutil.which("slipway")
    if found is None:
        raise FileNotFoundError("there is no slipway in this package and none in PATH; set SLIPWAY_PROGRAM to its path")
    return found


def environment() -> dict[str, str]:
    """The environment of the program: ranks run with this Python's PyTorch, unless SLIPWAY_TORCH names another."""
    variables = dict(os.environ)
    if not variables.get("SLIPWAY_TORCH"):
        torch = importlib.util.find_spec("torch")  # does not import it
        if torch is not None and torch.submodule_search_locations:
            variables["SLIPWAY_TORCH"] = torch.submodule_search_locations[0]
    return variables


def _become(program: Path) -> NoReturn:
    os.execve(program, [str(program), *sys.argv[1:]], environment())


def main() -> NoReturn:
    """The command `slipway`: this process becomes the program of the wheel."""
    _become(BUNDLE / "slipway")


def rank() -> NoReturn:
    """The command `slipway-rank`, for torchrun, srun and mpirun."""
    _become(BUNDLE / "slipway-rank")
