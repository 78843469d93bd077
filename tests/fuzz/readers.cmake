# What the fuzz targets need of scenarios/: the rooms that read files, without prices (no_prices.cpp). Lists of sources and of
# objects are filtered by the same expressions, so that a test links what `make fuzz` links.
string(CONCAT SLIPWAY_READERS "(/(files|language|trainers|tables|kineto|weights)/|embedded_(files|tables)\\.|"
                              "/predict/(readable|answer_keys|description|chrome_trace|step_times)\\.)")
set(SLIPWAY_NO_READERS "(_command|price|price_memory|priced_run|pooled_runs|memory_refit|write_weight_folder|weight_folder)\\.cpp(\\.o)?$")
# Of libslipway: what takes a caller's text and a caller's schedule.
set(SLIPWAY_LIBRARY_READERS ${CMAKE_SOURCE_DIR}/library/error.cpp ${CMAKE_SOURCE_DIR}/library/scenario.cpp
    ${CMAKE_SOURCE_DIR}/schedules/check/asked_schedule.cpp)
