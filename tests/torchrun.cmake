# SLIPWAY_TORCHRUN for tests: a torchrun command line, empty where it cannot run; SLIPWAY_TORCHRUN_MISSING says why
# then. Tests read both from the environment (tests/support/torchrun.h) and skip with that reason; ctest sets them for every
# test whose file includes that header. The project's own .venv (setup/libtorch.sh) has all that torchrun needs.
set(SLIPWAY_TORCHRUN "")
set(SLIPWAY_TORCHRUN_MISSING "there is no LibTorch")
if(NOT TARGET slipway_torch)
  return()
endif()
get_filename_component(site_packages ${SLIPWAY_TORCH_FOLDER} DIRECTORY)
get_filename_component(python ${site_packages}/../../../bin/python ABSOLUTE)
foreach(needed ${python} ${site_packages}/typing_extensions.py ${site_packages}/torch/distributed/run.py)
  if(NOT EXISTS ${needed})
    if(site_packages MATCHES "^${CMAKE_SOURCE_DIR}/.venv/")
      message(FATAL_ERROR "${needed} is missing in .venv/, so torchrun cannot run: remove .venv/ and run setup/libtorch.sh")
    endif()
    set(SLIPWAY_TORCHRUN_MISSING "${needed} is not there, LibTorch is used from ${SLIPWAY_TORCH_FOLDER}")
    message(STATUS "Tests with torchrun are skipped: ${SLIPWAY_TORCHRUN_MISSING}")
    return()
  endif()
endforeach()
set(SLIPWAY_TORCHRUN_MISSING "")

# What torch_cuda, torch_python and torch_nvshmem of PyTorch 2.11 link (readelf -d) and the CPU part leaves out.
set(folder ${CMAKE_BINARY_DIR}/tests/torchrun_stubs)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/torchrun_stub.cpp "")
add_custom_target(torchrun_stubs ALL)
foreach(name libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcufft.so.12 libcufile.so.0 libcurand.so.10
             libcusparse.so.12 libcusparseLt.so.0 libnccl.so.2 libnvshmem_host.so.3)
  string(REGEX MATCH "^(.*\\.so)(\\..*)$" parts ${name})
  add_library(stub_${name} SHARED ${CMAKE_CURRENT_BINARY_DIR}/torchrun_stub.cpp)
  set_target_properties(stub_${name} PROPERTIES
    PREFIX "" OUTPUT_NAME ${CMAKE_MATCH_1} SUFFIX ${CMAKE_MATCH_2} LIBRARY_OUTPUT_DIRECTORY ${folder})
  add_dependencies(torchrun_stubs stub_${name})
endforeach()
set(SLIPWAY_TORCHRUN "${python} ${CMAKE_CURRENT_SOURCE_DIR}/torchrun.py ${folder}")
