# What the fuzz targets need of scenarios/: the rooms that read files, without prices (no_prices.cpp). Lists of sources and of
# objects are filtered by the same expressions, so that a test links what `make fuzz` links.
set(SLIPWAY_READERS "(/(files|language|answers|tables|kineto|import|trainers|weights)/|embedded_files\\.)")
set(SLIPWAY_NO_READERS "(_command|price|price_memory|priced_run|memory_refit|weight_folder)\\.cpp(\\.o)?$")
