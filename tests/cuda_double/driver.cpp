// libcuda.so.1 without a GPU: PyTorch's own calls of the driver. PyTorch reports names that it does not find.
// It does not use cuda.h, which PyTorch's wheels need not bring: a CUresult is an int, a CUcontext a pointer.
extern "C" {

int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return 0;
}
int cuCtxGetCurrent(void** context) {
  static int something = 0;
  *context = &something;
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "an error of the CUDA double";
  return 0;
}

}  // extern "C"
