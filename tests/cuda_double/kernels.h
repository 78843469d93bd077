// Names of the kernels that a program registers with the CUDA double, and how often each is launched.
#pragma once

namespace cuda_double {

// `host`: the function that stands for the kernel in the program; both live as long as the process.
void name_kernel(const void* host, const char* name);
void count_launch(const void* host);
void count_call(const char* name);  // of a function of the runtime or of cuBLAS

}  // namespace cuda_double
