# cmake -DSOURCE=... -DBUILD=... -DTORCH=... -P rank_only.cmake: on a GPU node there may be nothing but LibTorch. So
# the rank program must configure without looking for any package, and build without finding one.
if(NOT SOURCE OR NOT BUILD OR NOT TORCH)
  message(FATAL_ERROR "SOURCE, BUILD and TORCH must be given")
endif()

set(trace ${BUILD}/configure.trace)
file(MAKE_DIRECTORY ${BUILD})
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G Ninja -DSLIPWAY_RANK_ONLY=ON -DSLIPWAY_TORCH=${TORCH}
          -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 --trace --trace-redirect=${trace}
  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(failed)
  message(FATAL_ERROR "configuring with SLIPWAY_RANK_ONLY failed:\n${output}")
endif()

# CUDAToolkit is the GPU build's; ccache is no part of the program; gloo's headers belong to LibTorch's Gloo.
file(STRINGS ${trace} searches REGEX "(find_package|find_library|find_path|pkg_check_modules|pkg_search_module) ?\\(")
foreach(line IN LISTS searches)
  if(line MATCHES "^${SOURCE}/" AND NOT line MATCHES "CUDAToolkit|gloo/")
    message(FATAL_ERROR "SLIPWAY_RANK_ONLY looked for more than LibTorch:\n${line}")
  endif()
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --parallel 2 --target slipway-rank
                RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(failed)
  message(FATAL_ERROR "building slipway-rank with SLIPWAY_RANK_ONLY failed:\n${output}")
endif()
