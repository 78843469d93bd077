// Names of the kernels that a program registers with the CUDA double, and how often each is launched.
#pragma once

namespace slipway {

// `host`: the function that stands for the kernel in the program; both live as long as the process.
void name_kernel(const void* host, const char* name);
// Of a kernel, or of what stands in for one ("gemm").
void count_launch(const void* host);
void count_call(const char* name);

}  // namespace slipway
