# slipway-rank-cuda, the rank program for GPUs: the same sources with exec/transport/cuda/ in place of exec/transport/cpu/. Built where
# nvcc 13 is on PATH. Headers are taken from its toolkit or from the NVIDIA wheels beside torch/ (a full `pip install
# torch` brings them), or from CMAKE_INCLUDE_PATH. To compile and link, no GPU and none of the libraries is needed.
find_program(SLIPWAY_NVCC nvcc DOC "NVIDIA's compiler, version 13; without it slipway-rank-cuda is not built")
if(NOT SLIPWAY_NVCC OR NOT TARGET slipway_torch_cuda)
  message(STATUS "slipway-rank-cuda is not built: nvcc 13 is not on PATH")
  return()
endif()
execute_process(COMMAND ${SLIPWAY_NVCC} --version OUTPUT_VARIABLE nvcc_version)
if(NOT nvcc_version MATCHES "release 13\\.")
  message(STATUS "slipway-rank-cuda is not built: ${SLIPWAY_NVCC} is not version 13")
  return()
endif()

get_filename_component(toolkit ${SLIPWAY_NVCC} REALPATH)
get_filename_component(toolkit ${toolkit}/../.. ABSOLUTE)
set(wheels ${SLIPWAY_TORCH_FOLDER}/../nvidia)
set(cuda_headers)
foreach(header cuda_runtime_api.h cublas_v2.h cusparse.h cusolverDn.h nccl.h)
  string(MAKE_C_IDENTIFIER "SLIPWAY_HAS_${header}" found)
  find_path(${found} ${header} HINTS ${toolkit}/include ${wheels}/cu13/include ${wheels}/nccl/include)
  if(NOT ${found})
    message(STATUS "slipway-rank-cuda is not built: ${header} is missing; install all of PyTorch's NVIDIA wheels, "
                   "or add its folder to CMAKE_INCLUDE_PATH")
    return()
  endif()
  list(APPEND cuda_headers ${${found}})
endforeach()
list(REMOVE_DUPLICATES cuda_headers)
set(SLIPWAY_CUDA_HEADERS ${cuda_headers} CACHE INTERNAL "Folders with the headers of CUDA and NCCL")
find_library(SLIPWAY_CUDART NAMES libcudart.so libcudart.so.13
             HINTS ${toolkit}/lib64 ${toolkit}/lib ${wheels}/cu13/lib)

file(GLOB cuda_sources CONFIGURE_DEPENDS transport/cuda/*.cpp)
add_executable(slipway-rank-cuda main.cpp ${sources} ${cuda_sources})
target_compile_definitions(slipway-rank-cuda PRIVATE USE_C10D_NCCL SLIPWAY_VERSION="${PROJECT_VERSION}")
target_include_directories(slipway-rank-cuda SYSTEM PRIVATE ${cuda_headers})
target_link_libraries(slipway-rank-cuda PRIVATE slipway_run slipway_torch_cuda ${SLIPWAY_CUDART})
target_precompile_headers(slipway-rank-cuda PRIVATE <ATen/ATen.h> <torch/csrc/autograd/custom_function.h>)
