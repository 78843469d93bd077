#!/usr/bin/env python3
"""build.py TORCH OUT CXX HEADERS...: NVIDIA's libraries, as far as LibTorch is linked with them, without a GPU.

TORCH: the torch/ folder of an installed PyTorch. HEADERS: folders with the headers of CUDA and NCCL. OUT gets one library
for each name that libtorch_cuda.so looks for; preload them all (LD_PRELOAD). What the sources beside this define does what they say (state.h); every other function ends the
process with its name, so that nothing is passed over in silence.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
USERS = ["libtorch_cuda.so", "libc10_cuda.so", "libtorch_nvshmem.so", "libtorch_cuda_linalg.so", "libtorch_python.so"]
# By the version that a symbol asks for, or by the beginning of its name where the library has no versions.
BY_PREFIX = {"nccl": "libnccl.so.2", "cusparseLt": "libcusparseLt.so.0", "cuFile": "libcufile.so.0",
             "curand": "libcurand.so.10", "cufft": "libcufft.so.12", "nvshmem": "libnvshmem_host.so.3"}
SOURCES = {"libcudart.so.13": ["device.cpp", "memory.cpp", "streams.cpp", "capture.cpp", "launch.cpp", "kernels.cpp"], "libcuda.so.1": ["driver.cpp"], "libcublas.so.13": ["blas.cpp"],
           "libcublasLt.so.13": ["blas_lt.cpp"], "libcudnn.so.9": ["dnn.cpp"], "libnccl.so.2": ["nccl.cpp"]}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wanted(torch):
    symbols = {"libcuda.so.1": {}}  # opened while a program runs
    for user in USERS:
        path = os.path.join(torch, "lib", user)
        for line in run("nm", "-D", "--undefined-only", path).splitlines():
            name, _, version = line.split()[-1].partition("@")
            library = version.lstrip("@") if ".so." in version else None
            if version == "NVSHMEM":
                library = "libnvshmem_host.so.3"
            if not version:
                library = next((of for prefix, of in BY_PREFIX.items() if name.startswith(prefix)), None)
            if library:
                symbols.setdefault(library, {})[name] = version.lstrip("@")
        for line in run("readelf", "-d", path).splitlines():
            needed = re.search(r"NEEDED.*\[(lib(cu|nccl|nv).*)\]", line)
            if needed:
                symbols.setdefault(needed.group(1), {})
    return symbols


def defined(objects):
    names = set()
    for path in objects:
        names |= {line.split()[-1] for line in run("nm", "--defined-only", path).splitlines() if " T " in line}
    return names


def main(torch, out, compiler, *headers):
    os.makedirs(out, exist_ok=True)
    flags = ["-std=c++20", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(HERE, "..", ".."),
             *(word for folder in headers for word in ("-isystem", folder))]
    objects = {}
    for library, sources in SOURCES.items():
        for source in sources:
            path = os.path.join(out, source.replace(".cpp", ".o"))
            run(compiler, *flags, "-c", os.path.join(HERE, source), "-o", path)
            objects.setdefault(library, []).append(path)
    for library, symbols in sorted(wanted(torch).items()):
        stem = os.path.join(out, library)
        ours = defined(objects.get(library, []))
        with open(stem + ".c", "w") as file:
            file.write("#include <stdio.h>\n#include <stdlib.h>\n"
                       "static void missing(const char* name) "
                       "{ fprintf(stderr, \"cuda double: %s is not there\\n\", name); abort(); }\n")
            file.writelines(f'void {name}(void) {{ missing("{name}"); }}\n' for name in sorted(symbols) if name not in ours)
        with open(stem + ".map", "w") as file:
            versions = sorted(set(symbols.values()) - {""})
            file.writelines(f"{version} {{ global: *; }};\n" for version in versions[:1])
        run(compiler, "-x", "c", "-fPIC", "-w", "-fno-builtin", "-c", stem + ".c", "-o", stem + ".o")
        version = ["-Wl,--version-script=" + stem + ".map"] if versions else []
        run(compiler, "-shared", "-o", stem, stem + ".o", *objects.get(library, []), "-Wl,-soname," + library, *version)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
