"""torchrun from the CPU part of the PyTorch wheel: torchrun.py STUBS TORCHRUN_ARGUMENTS...

`import torch` loads every NVIDIA library that the wheel links (3.3 GB), though torchrun calls none of them. STUBS
is a folder of empty libraries with their names: one that is already loaded satisfies the loader, and with lazy
binding its missing functions are never looked for. A library that really is installed is left alone.
"""
import ctypes
import os
import sys
import sysconfig
import warnings
from pathlib import Path


def load_stubs(stubs: Path) -> None:
    wheels = Path(sysconfig.get_path("purelib")) / "nvidia"
    for stub in sorted(stubs.iterdir()):
        if any(wheels.glob(f"*/lib/{stub.name}")):
            continue
        try:
            ctypes.CDLL(stub.name, mode=os.RTLD_LAZY)
        except OSError:
            ctypes.CDLL(str(stub), mode=os.RTLD_LAZY)


if __name__ == "__main__":
    sys.setdlopenflags(os.RTLD_LAZY)
    load_stubs(Path(sys.argv.pop(1)))
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    from torch.distributed.run import main

    main()
