# Targets slipway_torch (torch_cpu, c10) and slipway_torch_cuda (torch_cuda, c10_cuda besides) for an installed
# PyTorch wheel. By hand, because find_package(Torch) of this wheel fails where no CUDA toolkit is installed.
# Looked for in: SLIPWAY_TORCH (cache), SLIPWAY_TORCH (environment), .venv as setup/libtorch.sh makes it. The last two are
# this machine's, so a cross build takes the first alone.
set(torch "${SLIPWAY_TORCH}")
if(NOT torch AND DEFINED ENV{SLIPWAY_TORCH} AND NOT CMAKE_CROSSCOMPILING)
  set(torch "$ENV{SLIPWAY_TORCH}")
endif()
set(pins "")
if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/slipway-pins)
  file(READ ${CMAKE_SOURCE_DIR}/.venv/slipway-pins pins)
endif()
if(NOT torch AND pins AND NOT CMAKE_CROSSCOMPILING)  # empty while an installation runs
  file(GLOB torch ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
endif()

if(NOT torch)
  if(SLIPWAY_RANK_ONLY)
    message(FATAL_ERROR "LibTorch not found: run setup/libtorch.sh, or set SLIPWAY_TORCH to the torch/ folder of "
                        "an installed PyTorch 2.11.")
  endif()
  set(SLIPWAY_TORCH_MISSING "LibTorch is not found: run setup/libtorch.sh, or set SLIPWAY_TORCH to the torch/ folder \
of an installed PyTorch 2.11" CACHE INTERNAL "Why slipway-rank is not built")
  message(STATUS "Everything but slipway-rank is built. ${SLIPWAY_TORCH_MISSING}.")
  return()
endif()
foreach(needed lib/libtorch_cpu.so lib/libc10.so include/ATen/ATen.h)
  if(NOT EXISTS ${torch}/${needed})
    message(FATAL_ERROR "SLIPWAY_TORCH=${torch} has no ${needed}: it must be the torch/ folder of an installed "
                        "PyTorch 2.11; run setup/libtorch.sh to get one.")
  endif()
endforeach()
message(STATUS "LibTorch: ${torch}")
set(SLIPWAY_TORCH_FOLDER ${torch} CACHE INTERNAL "The torch/ folder that is used")

foreach(name torch_cpu c10 torch_cuda c10_cuda)
  if(EXISTS ${torch}/lib/lib${name}.so)
    add_library(slipway_torch::${name} SHARED IMPORTED)
    set_target_properties(slipway_torch::${name} PROPERTIES IMPORTED_LOCATION ${torch}/lib/lib${name}.so)
  endif()
endforeach()

add_library(slipway_torch INTERFACE)
target_include_directories(slipway_torch SYSTEM INTERFACE
  ${torch}/include ${torch}/include/torch/csrc/api/include)
target_compile_definitions(slipway_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)  # as the wheel was built
target_link_libraries(slipway_torch INTERFACE slipway_torch::torch_cpu slipway_torch::c10)

if(TARGET slipway_torch::torch_cuda AND TARGET slipway_torch::c10_cuda)
  add_library(slipway_torch_cuda INTERFACE)
  # torch_cuda registers its kernels when it is loaded and no symbol of ours may name it; its own libraries
  # (cuDNN, NCCL, ...) need not be installed where the program is only linked.
  target_link_options(slipway_torch_cuda INTERFACE
    LINKER:--no-as-needed LINKER:--unresolved-symbols=ignore-in-shared-libs)
  target_link_libraries(slipway_torch_cuda INTERFACE
    slipway_torch slipway_torch::torch_cuda slipway_torch::c10_cuda)
endif()
