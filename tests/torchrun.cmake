# SLIPWAY_TORCHRUN for tests: a torchrun command line, empty where it cannot run. Tests read it from the environment
# and skip when it is empty or missing; ctest sets it for every test whose file names SLIPWAY_TORCHRUN.
set(SLIPWAY_TORCHRUN "")
if(NOT TARGET slipway_torch)
  return()
endif()
get_filename_component(site_packages ${SLIPWAY_TORCH_FOLDER} DIRECTORY)
get_filename_component(python ${site_packages}/../../../bin/python ABSOLUTE)
if(NOT EXISTS ${python} OR NOT EXISTS ${site_packages}/typing_extensions.py)
  message(STATUS "torchrun tests are skipped: they need ${python} and ${site_packages}/typing_extensions.py")
  return()
endif()

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
