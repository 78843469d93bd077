# What a person types. Everything here is safe to run again: what is there already is left alone.
# Variables: SLIPWAY_TORCH=<torch/ folder of an installed PyTorch 2.11>, BUILD=<build folder>, JOBS=<number>,
# SECONDS=<of each fuzz target>.
# `make help` prints what stands behind two number signs.
BUILD ?= build
JOBS ?= $(shell nproc)
SECONDS ?= 60
STEP := setup/step.sh
GENERATOR = $(if $(wildcard $(BUILD)/CMakeCache.txt),,-G Ninja)
TORCH = $(if $(SLIPWAY_TORCH),-DSLIPWAY_TORCH="$(SLIPWAY_TORCH)")
# The packages of tests, where a goal needs them.
PACKAGES = $(if $(filter test differential sanitize sanitize-threads bench format check-format,$(MAKECMDGOALS)),test,$(if $(filter package check-package,$(MAKECMDGOALS)),package,$(if $(filter fuzz,$(MAKECMDGOALS)),fuzz,$(if $(filter check-aarch64,$(MAKECMDGOALS)),aarch64))))

.PHONY: all setup packages torchtitan configure demo test differential sanitize sanitize-threads pictures format check-format bench fuzz gpu-program test-gpu gpu-kit package rank-package check-package check-aarch64 clean help

all: packages  ## what make alone does: install what is missing, build build/slipway, then build/slipway-rank
	@setup/build.sh $(BUILD) $(JOBS) $(GENERATOR) $(TORCH)

packages:  ## install the Debian packages that are missing
	@$(STEP) "Debian packages" setup/debian.sh $(PACKAGES)

setup: packages  ## the same, and LibTorch in .venv/
	@$(STEP) "LibTorch" setup/libtorch.sh

configure: setup  ## the same, and configure build/
	@$(STEP) "Configuring" cmake -S . -B $(BUILD) $(GENERATOR) $(TORCH)

demo: all  ## the main job: simulate, execute, calibrate, predict, compare
	@echo "==> Demo"
	@BUILD="$(BUILD)" scenarios/demo/run.sh  # tells its times itself: its last line is the result

torchtitan:  ## install torchtitan in .venv-torchtitan/, for one test
	@$(STEP) "torchtitan" setup/torchtitan.sh

# tests/not_run.py prints after ctest; the exit status is ctest's.
test: torchtitan configure  ## build and run every test, and name those that could not run
	@$(STEP) "Building programs and tests" cmake --build $(BUILD) --parallel $(JOBS)
	@echo "==> Running the tests"
	@rm -rf $(BUILD)/tests/ctest.xml $(BUILD)/tests/cases
	@ctest --test-dir $(BUILD) --parallel $(JOBS) --output-on-failure --no-tests=error --output-junit tests/ctest.xml; \
	  status=$$?; python3 tests/not_run.py $(BUILD); exit $$status

# Eight processes, JOBS at a time, each with every eighth scenario.
SCENARIOS ?= 5000
FIRST ?= 1
differential: configure  ## 5,000 random scenarios through every engine; SCENARIOS=N others, FIRST=N from another number on
	@$(STEP) "Building drawn_scenarios_test" cmake --build $(BUILD) --parallel $(JOBS) --target drawn_scenarios_test
	@seq 0 7 | SLIPWAY_DRAWN_SCENARIOS=$(SCENARIOS) SLIPWAY_DRAWN_FIRST=$(FIRST) xargs -P $(JOBS) -I{} \
	  $(BUILD)/tests/drawn_scenarios_test --gtest_brief=1 --gtest_filter='*AgreeInEveryEngine/{}'

# A part of the suite, below two hours on two cores. What is not ours and not instrumented: tests/sanitizers.
PART ?= 1
PARTS ?= 4
sanitize: setup  ## every fourth test with AddressSanitizer and UndefinedBehaviorSanitizer; PART=2, 3, 4 the others
	@setup/sanitize.sh asan $(PART) $(PARTS) $(JOBS) $(TORCH)

sanitize-threads: setup  ## the same with ThreadSanitizer
	@setup/sanitize.sh tsan $(PART) $(PARTS) $(JOBS) $(TORCH)

pictures: all  ## draw the pictures of the README again: docs/pictures/ (one needs chromium and chromium-driver)
	@$(STEP) "Pictures" python3 tests/docs/pictures.py $(BUILD) docs/pictures

format: packages  ## write every .h and .cpp as clang-format 14 does
	@$(STEP) "Formatting" setup/format.sh

check-format: packages  ## print what clang-format 14 would change (a test of make test, too)
	@$(STEP) "Checking the format" setup/format.sh --check

bench: configure  ## build and run the benchmarks
	@$(STEP) "Benchmarks" cmake --build $(BUILD) --parallel $(JOBS) --target bench

# Clang, in a folder of its own: no LibTorch is needed, and nothing of $(BUILD) is built again.
fuzz: packages  ## give made-up files to every reader for SECONDS=60 each, with sanitizers
	@$(STEP) "Configuring $(BUILD)-fuzz" cmake --preset fuzz -B $(BUILD)-fuzz
	@$(STEP) "Building fuzz targets" cmake --build $(BUILD)-fuzz --parallel $(JOBS) --target fuzz
	@python3 tests/fuzz/fuzz.py $(BUILD)-fuzz --seconds $(SECONDS) --jobs $(JOBS)

# Where nvcc 13 was found when the build was configured.
gpu-program: all  ## build build/slipway-rank-cuda, where nvcc 13 is installed
	@if cmake --build $(BUILD) --target help | grep -q slipway-rank-cuda; then \
	  $(STEP) "Building $(BUILD)/slipway-rank-cuda" cmake --build $(BUILD) --parallel $(JOBS) --target slipway-rank-cuda; fi

# 77: skipped, with the reason.
test-gpu: gpu-program  ## runs on this machine's GPU: layouts against one rank, speed beside PyTorch, one table
	@$(STEP) "Bundles and predictions" python3 tests/gpu/kit.py $(BUILD) $(BUILD)/gpu-kit
	@python3 tests/gpu/run.py $(BUILD)/gpu-kit || [ $$? -eq 77 ]

gpu-kit: rank-package  ## the same as one tarball, for a GPU node that has PyTorch 2.11 and nothing else of ours
	@$(STEP) "Bundles and predictions" python3 tests/gpu/kit.py $(BUILD) $(BUILD)/gpu-kit \
	  --package $(BUILD)/slipway-rank-$$($(BUILD)/slipway-rank --version | cut -d' ' -f2)-x86_64.tar.gz
	@tar -C $(BUILD) -czf $(BUILD)/gpu-kit.tar.gz gpu-kit && echo "$(BUILD)/gpu-kit.tar.gz: unpack it on a GPU node with PyTorch 2.11, python3 gpu-kit/run.py"

rank-package: gpu-program  ## one tarball with the rank program, for any x86-64 Linux node with PyTorch 2.11
	@$(STEP) "Packing the rank program" env BUILD="$(BUILD)" setup/package.sh rank

package: gpu-program  ## the same, and slipway with all its libraries as a tarball and as a wheel, for any x86-64 Linux
	@$(STEP) "SimGrid without ns-3" env JOBS="$(JOBS)" setup/simgrid.sh "$(BUILD)/simgrid"
	@$(STEP) "Packing" env BUILD="$(BUILD)" setup/package.sh

# Needs root, debootstrap and 3 GB in $(BUILD)/bare.
check-package: package  ## try tarball and wheel in bare Debian 11, 12 and 13, as a user without root
	@BUILD="$(BUILD)" setup/check-package.sh "$(BUILD)/bare"

# The sysroot is 0.6 GB. What the two programs answer must be the same.
ARM = $(BUILD)/aarch64
check-aarch64: configure  ## build slipway for Linux on Arm, and compare its answers under qemu with the x86-64 program's
	@$(STEP) "Building $(BUILD)/slipway" cmake --build $(BUILD) --parallel $(JOBS) --target slipway
	@$(STEP) "Debian's libraries for aarch64" setup/aarch64.sh "$(ARM)/sysroot"
	@$(STEP) "SimGrid for aarch64" env JOBS="$(JOBS)" setup/simgrid.sh "$(ARM)/simgrid" "$(ARM)/sysroot"
	@$(STEP) "Configuring $(ARM)" cmake -S . -B $(ARM) $(if $(wildcard $(ARM)/CMakeCache.txt),,-G Ninja --toolchain setup/aarch64.cmake) \
	  -DCMAKE_SYSROOT="$(abspath $(ARM)/sysroot)" -DSLIPWAY_TESTS=OFF
	@$(STEP) "Building $(ARM)/slipway" cmake --build $(ARM) --parallel $(JOBS) --target slipway
	@$(STEP) "Comparing answers" python3 tests/aarch64/same_answers.py $(BUILD) $(ARM)

clean:  ## remove build/ (installed packages and .venv/ stay)
	rm -rf $(BUILD)

help:  ## print this list
	@sed -n 's/^\([a-z0-9-]*\):.*  ## /\1\t/p' Makefile | while IFS="	" read -r target text; do \
	  printf 'make %-16s %s\n' "$$target" "$$text"; done
	@echo "BUILD=DIR builds in DIR instead of build/; JOBS=N runs N compilers, tests and fuzz targets at a time"
	@echo "SLIPWAY_TORCH=DIR uses the PyTorch 2.11 whose torch/ folder is DIR instead of installing one in .venv/"
