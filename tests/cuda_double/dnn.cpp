// libcudnn.so.9 without a GPU: its version, which PyTorch reads when it chooses an attention. It is too old for
// cuDNN's, so FlashAttention is taken. Any use ends the process.
#include <cstddef>

extern "C" {

std::size_t cudnnGetVersion() { return 90100; }
std::size_t cudnnGetCudartVersion() { return 13000; }

}  // extern "C"
