# SPDX-License-Identifier: Apache-2.0
# The two commands of a new user are `make demo` and `make check`; plain `make` leaves build/stillframe.
# Meson does the work; this file only knows in which order.

JOBS ?= 2

all: build/build.ninja
	@ninja -C build -j $(JOBS)

# Installs the packages that are missing (root or sudo); quick when none is.
setup:
	@tools/setup

build/build.ninja:
	@command -v meson >/dev/null && command -v ninja >/dev/null || tools/setup
	meson setup build

check: setup
	@JOBS=$(JOBS) tests/run

check-long: setup
	@JOBS=$(JOBS) tests/run --long

# Of the build only what the demo runs.
demo: setup
	@$(MAKE) --no-print-directory build/build.ninja
	@ninja -C build -j $(JOBS) stillframe libstillframe-agent.so
	@tools/demo

bench: setup
	@$(MAKE) --no-print-directory all
	@bench/run build

clean:
	rm -rf build build-check-gcc build-check-clang build-asan build-tsan build-fuzz build-faults

# `make check` takes some minutes, `make check-long` an hour or two: everything there is.
.PHONY: all setup check check-long demo bench clean
