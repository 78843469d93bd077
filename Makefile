# What a person types. Everything here is safe to run again: what is there already is left alone.
# Variables: SLIPWAY_TORCH=<torch/ folder of an installed PyTorch 2.11>, BUILD=<build folder>, JOBS=<number>.
BUILD ?= build
JOBS ?= $(shell nproc)
STEP := setup/step.sh
GENERATOR = $(if $(wildcard $(BUILD)/CMakeCache.txt),,-G Ninja)
TORCH = $(if $(SLIPWAY_TORCH),-DSLIPWAY_TORCH="$(SLIPWAY_TORCH)")

.PHONY: all setup configure demo test bench gpu-program test-gpu gpu-kit package clean help

all: configure
	@$(STEP) "Building $(BUILD)/slipway and $(BUILD)/slipway-rank" \
	  cmake --build $(BUILD) --parallel $(JOBS) --target slipway slipway-rank

setup:
	@$(STEP) "Debian packages" setup/debian.sh
	@$(STEP) "LibTorch" setup/libtorch.sh

configure: setup
	@$(STEP) "Configuring" cmake -S . -B $(BUILD) $(GENERATOR) $(TORCH)

demo: all
	@echo "==> Demo"
	@BUILD="$(BUILD)" scenarios/demo/run.sh  # tells its times itself: its last line is the result

test: configure
	@$(STEP) "Building programs and tests" cmake --build $(BUILD) --parallel $(JOBS)
	@echo "==> Running the tests"
	@ctest --test-dir $(BUILD) --parallel $(JOBS) --output-on-failure --no-tests=error

# Where nvcc 13 was found when the build was configured.
gpu-program: all
	@if cmake --build $(BUILD) --target help | grep -q slipway-rank-cuda; then \
	  $(STEP) "Building $(BUILD)/slipway-rank-cuda" cmake --build $(BUILD) --parallel $(JOBS) --target slipway-rank-cuda; fi

# 77: skipped, with the reason.
test-gpu: gpu-program
	@$(STEP) "Bundles and predictions" python3 tests/gpu/kit.py $(BUILD) $(BUILD)/gpu-kit
	@python3 tests/gpu/run.py $(BUILD)/gpu-kit || [ $$? -eq 77 ]

gpu-kit: package
	@$(STEP) "Bundles and predictions" python3 tests/gpu/kit.py $(BUILD) $(BUILD)/gpu-kit \
	  --package $(BUILD)/slipway-rank-$$($(BUILD)/slipway-rank --version | cut -d' ' -f2)-x86_64.tar.gz
	@tar -C $(BUILD) -czf $(BUILD)/gpu-kit.tar.gz gpu-kit && echo "$(BUILD)/gpu-kit.tar.gz: unpack it on a GPU node with PyTorch 2.11, python3 gpu-kit/run.py"

package: gpu-program
	@$(STEP) "Packing the rank program" env BUILD="$(BUILD)" setup/package.sh

bench: configure
	@$(STEP) "Benchmarks" cmake --build $(BUILD) --parallel $(JOBS) --target bench

clean:
	rm -rf $(BUILD)

help:
	@echo "make         install what is missing, build $(BUILD)/slipway and $(BUILD)/slipway-rank"
	@echo "make demo    the main job: simulate, execute, calibrate, predict, compare"
	@echo "make test    build and run every test"
	@echo "make bench   build and run the benchmarks"
	@echo "make test-gpu runs on this machine's GPU: layouts against one rank, speed beside PyTorch, one table"
	@echo "make gpu-kit  the same as one tarball, for a GPU node that has PyTorch 2.11 and nothing else of ours"
	@echo "make package one tarball with the rank program, for any x86-64 Linux node with PyTorch 2.11"
	@echo "make clean   remove $(BUILD)/ (installed packages and .venv/ stay)"
	@echo "SLIPWAY_TORCH=DIR uses the PyTorch 2.11 whose torch/ folder is DIR instead of installing one in .venv/"
