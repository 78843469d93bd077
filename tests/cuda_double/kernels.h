// Names of the kernels that a program registers with the CUDA double, and the number of launches of each.
#pragma once

namespace cuda_double {

// `host`: the program's function for the kernel. Both arguments live as long as the process.
void name_kernel(const void* host, const char* name);
void count_launch(const void* host);
void count_call(const char* name);  // of a function of the runtime or of cuBLAS

}  // namespace cuda_double
