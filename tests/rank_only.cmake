# cmake -DSOURCE=... -DBUILD=... -DTORCH=... -P rank_only.cmake: on a GPU node there may be nothing but LibTorch. So
# the rank program must configure without looking for any package, and build from nothing else.
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

# exec/cuda.cmake is the GPU build's; ccache is no part of the program; gloo's headers belong to LibTorch's Gloo.
file(STRINGS ${trace} searches REGEX "(find_package|find_library|find_path|pkg_check_modules|pkg_search_module) ?\\(")
foreach(line IN LISTS searches)
  if(line MATCHES "^${SOURCE}/" AND NOT line MATCHES "exec/cuda.cmake|gloo/")
    message(FATAL_ERROR "SLIPWAY_RANK_ONLY looked for more than LibTorch:\n${line}")
  endif()
endforeach()

# Of what would be built, nothing names another library. Compiling exec/ once more would take minutes and tell
# nothing new: `slipway-rank` is linked from the same libraries in every build, and headers are the matter of
# include_arrows_test.
execute_process(COMMAND ninja -C ${BUILD} -t commands slipway-rank OUTPUT_VARIABLE commands RESULT_VARIABLE failed)
if(failed OR NOT commands MATCHES "libslipway_exec")
  message(FATAL_ERROR "slipway-rank is no target with SLIPWAY_RANK_ONLY:\n${commands}")
endif()
foreach(library simgrid boost yaml-cpp fmt eigen nlohmann gloo slipway_graph slipway_sim slipway_fit slipway_library slipway_scenarios)
  if(commands MATCHES "lib${library}[^/\n ]*\\.(so|a)|-l${library}|-isystem [^ ]*/${library}[^ ]*")
    message(FATAL_ERROR "slipway-rank is built with ${library}, which a GPU node need not have: ${CMAKE_MATCH_0}")
  endif()
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --parallel 2 --target slipway_program
                RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(failed)
  message(FATAL_ERROR "building slipway_program with SLIPWAY_RANK_ONLY failed:\n${output}")
endif()
