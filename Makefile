# Everything runs in .venv, which is made on first use from PYTHON.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PYTHONS ?= python3.11 python3.12 python3.13
CONSTRAINTS ?=
# Of pytest: a worker for each core, and tests that are marked `alone` after each other in one.
PARALLEL ?= -n auto --dist loadgroup
# The virtual environment's own tools come first, so that nothing outside of it is used.
export PATH := $(CURDIR)/$(BIN):$(PATH)
unexport PYTHONPATH PYTHONHOME

KERNELS := $(shell find src/kernels -type f) CMakeLists.txt pyproject.toml
DRIVER  := $(shell find tests/kernels src/kernels -name "*.cpp" -not -path "*/bindings/*")
CPP     := $(shell find src tests -name "*.hpp" -o -name "*.cpp" -o -name "*.cu")

.PHONY: help demo test test-gpu emulate-gpu kernel-test lint format bench paper sanitize portable soak peer-test test-readme test-cluster test-matrix bench-cluster docs docs-light wheel stubs clean

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# What the package, its tests and its build need, as pyproject.toml says.
REQUIREMENTS = $$($(BIN)/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb')); \
  x = p['project']['optional-dependencies']; \
  print(*p['project']['dependencies'], *x['cli'], *x['test'], *x['dev'], *p['build-system']['requires'])")

$(VENV)/.tools: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet cmake ninja $(REQUIREMENTS) $(if $(CONSTRAINTS),-c $(CONSTRAINTS))
	@touch $@

# The install points to src/polysparse, so a change to Python needs no rebuild, and a change to a
# kernel rebuilds what includes it.
$(VENV)/.installed: $(KERNELS) $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable . \
	  --config-settings=cmake.define.POLYSPARSE_WERROR=ON
	@touch $@

demo: $(VENV)/.installed  ## Install, then expand and fit real data beside scikit-learn
	$(BIN)/python examples/demo.py

# The cores are busy with tests, so that more threads of BLAS would only wait for each other.
test: export OPENBLAS_NUM_THREADS = 1
test: $(VENV)/.installed  ## Install, then run all tests
	$(BIN)/python -m pytest $(PARALLEL)

test-readme: $(VENV)/.installed  ## Run the examples of README and guides with only what they install
	VENV=$(VENV) sh tests/readme.sh

peer-test: $(VENV)/.installed  ## Run scikit-learn's own tests of PolynomialFeatures on ours
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -p no:cacheprovider -c tests/peer/pytest.ini tests/peer

# Dask and Spark are large, so that only targets of clusters install them.
$(VENV)/.cluster: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet $$($(BIN)/python -c "import tomllib; \
	  x = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
	  print(*x['dask'], *x['spark'])")
	@touch $@

test-cluster: $(VENV)/.cluster  ## Run the tests of Dask and Spark, which needs Java
	$(BIN)/python -m pytest -c tests/clusters/pytest.ini -n 2 $(WHICH) tests/clusters

# Dependencies are noted as the compiler finds them.
build/driver/%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) -std=c++20 -O1 -Wall -Wextra -Werror -pthread -Isrc/kernels $(DRIVER_FLAGS) -MMD -MP -c $< -o $@
-include $(DRIVER:%.cpp=build/driver/%.d)

build/driver/driver: $(DRIVER:%.cpp=build/driver/%.o)
	$(CXX) -pthread $(DRIVER_FLAGS) $^ -o $@

kernel-test: build/driver/driver  ## Compile the kernels without Python, and check them quickly
	$<

test-gpu: $(VENV)/.installed  ## Run the tests that need a GPU; CuPy must be in .venv
	$(BIN)/python -m pytest tests/gpu

emulate-gpu: $(VENV)/.installed  ## Run some of them without a GPU, on the processor, under ASan
	VENV=$(VENV) sh tests/emulate.sh $(WHICH)

test-matrix:  ## Run the tests on every Python in PYTHONS, and with the oldest dependencies
	for python in $(PYTHONS); do \
	  $(MAKE) test peer-test PYTHON=$$python VENV=.venv-$$python || exit 1; \
	done
	$(MAKE) test peer-test PYTHON=$(firstword $(PYTHONS)) VENV=.venv-oldest CONSTRAINTS=tests/oldest.txt

lint: $(VENV)/.tools  ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CPP)

format: $(VENV)/.tools  ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

bench: $(VENV)/.installed  ## Measure what the README claims, and write docs/speed.md
	$(BIN)/python benchmarks/page.py

bench-cluster: $(VENV)/.cluster  ## Measure Dask and Spark
	$(BIN)/python benchmarks/bench_dask.py
	$(BIN)/python benchmarks/bench_spark.py
	$(BIN)/python benchmarks/bench_cluster_fit.py

paper: $(VENV)/.installed  ## Repeat the experiments of the paper, into docs/
	$(BIN)/polysparse paper --out docs

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet $$($(BIN)/python -c "import tomllib; \
	  x = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
	  print(*x['docs'], *x['dask'])")
	@touch $@

SPHINX = $(BIN)/python -m sphinx -W --keep-going -q -d build/docs/doctrees

docs: $(VENV)/.docs  ## Build the site into build/docs/html, run its examples, look for dead links
	$(SPHINX) docs build/docs/html
	BROWSER_REQUIRED=1 $(BIN)/python -m pytest tests/docs

docs-light: $(VENV)/.docs  ## The same, but without running the examples
	$(SPHINX) -D plot_gallery=0 docs build/docs/html
	$(BIN)/python -m pytest tests/docs

sanitize: $(VENV)/.tools  ## Run the core under ASan, UBSan and TSan
	VENV=$(VENV) sh tests/sanitize.sh

portable:  ## Run the core as other compilers build it, and for other processors under qemu
	sh tests/portable.sh

soak: $(VENV)/.cluster  ## Corrupt, kill, fork and share for 20 minutes: nothing wrong, no crash
	$(BIN)/python -W ignore tests/soak.py --seconds 600
	$(BIN)/python -W ignore tests/dask_kills.py --kills 50

wheel:  ## Build the sdist and wheels into dist/, and test them where nothing is compiled
	sh tools/wheels.sh

stubs: $(VENV)/.installed  ## Write the type stub of the compiled module
	$(BIN)/python -m nanobind.stubgen -m polysparse._kernels -o src/polysparse/_kernels.pyi

clean:  ## Remove everything that is built
	rm -rf build dist docs/api docs/gallery $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
