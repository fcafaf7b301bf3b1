# The targets of this project. Each sets up .venv by itself; a second run only does what has changed.
# PYTHON=python3.12 names the interpreter for .venv; without it the best one that is found is taken.
PYTHON ?= python3

export BENCH

.DEFAULT_GOAL := help
.PHONY: help demo test check format lint variants instructions bench asan fuzz nightly interop interop-all wheel sdist clean

DEV = @$(PYTHON) tools/dev.py $@ $(if $(filter file default,$(origin PYTHON)),,--python '$(PYTHON)')

help: ## print these lines
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

demo: ## set up .venv with the wheel, NumPy and PyTorch, and run the demo
	$(DEV)

test: ## build the wheel, run the Go tests and the Python tests
	$(DEV)

check: ## everything that CI runs: lint, test, variants, interop
	$(DEV)

lint: ## formatting, vet, staticcheck, types, generated files, symbols of the wheel
	$(DEV)

variants: ## the tests under Go's checkers and the sanitizers, on every Python found, and those that build
	$(DEV)

instructions: ## instructions of the core exchanges (valgrind), against benchmarks/instructions.json
	$(DEV)

bench: ## dlferry beside its peers and its floor; BENCH='--quick --only torch' passes options on
	$(DEV)

format: ## format the Go and Python sources in place
	$(DEV)

asan: ## the tests under AddressSanitizer and UBSan
	$(DEV)

fuzz: ## the fuzzers, each for FUZZTIME (60s)
	$(DEV)

nightly: ## what is too long for CI, fuzzers for FUZZTIME (10m) each; writes docs/dev/nightly.txt
	$(DEV)

interop: ## the matrix of array libraries under 600 MB with dlferry, one process each
	$(DEV)

interop-all: ## the same with TensorFlow, PaddlePaddle, dpnp and cuda.core (6 GB); writes docs/reference/interop.md
	$(DEV)

wheel: ## build dist/dlferry-*.whl
	$(DEV)

sdist: ## build dist/dlferry-*.tar.gz, with the Go modules it needs
	$(DEV)

clean: ## remove everything that these targets made
	$(DEV)
