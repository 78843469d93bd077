// Names of the kernels that a program registers with the CUDA double, and the number of launches of each.
#pragma once

namespace cuda_double {

// `host`: the program's function for the kernel. Both arguments live as long as the process.
void name_kernel(const void* host, const char* name);
void count_launch(const void* host);
void count_call(const char* name);  // of a function of the runtime or of cuBLAS

// What is loaded at first use waits until the device has nothing to do, and ends the process when that never happens.
// Operations of NCCL occupy it until their peers have begun theirs (tests/cuda_double/nccl.cpp).
void load(const char* what);

}  // namespace cuda_double
