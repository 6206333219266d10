# Everything runs in .venv, which is made on first use from PYTHON.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# The virtual environment's own tools come first, so that nothing outside of it is used.
export PATH := $(CURDIR)/$(BIN):$(PATH)
unexport PYTHONPATH PYTHONHOME

SOURCES := $(shell find src/kernels src/polysparse -type f -not -name '*.pyc') CMakeLists.txt pyproject.toml
CPP     := $(wildcard src/kernels/*.hpp src/kernels/*.cpp tests/*.cpp)

.PHONY: help demo test lint format bench sanitize peer-test test-matrix stubs clean

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.tools: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet cmake ninja
	$(BIN)/python -m pip install --quiet $$($(BIN)/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb')); e = p['project']['optional-dependencies']; print(*[repr(r) for r in p['project']['dependencies'] + e['test'] + e['dev']])" | tr -d "'")
	@touch $@

$(VENV)/.installed: $(SOURCES) README.md LICENSE $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --force-reinstall . \
	  --config-settings=cmake.define.POLYSPARSE_WERROR=ON
	@touch $@

demo: $(VENV)/.installed  ## Install, then expand real data beside scikit-learn
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed  ## Install, then run all tests
	$(BIN)/python -m pytest

peer-test: $(VENV)/.installed  ## Run scikit-learn's own tests of PolynomialFeatures on ours
	$(BIN)/python -m pytest -p no:cacheprovider -c tests/peer/pytest.ini tests/peer

lint: $(VENV)/.tools  ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CPP)

format: $(VENV)/.tools  ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

bench: $(VENV)/.installed  ## Measure what the README claims
	$(BIN)/python benchmarks/bench_core.py

sanitize: $(VENV)/.tools  ## Run the core under ASan, UBSan and TSan
	sh tests/sanitize.sh

stubs: $(VENV)/.installed  ## Write the type stub of the compiled module
	$(BIN)/python -m nanobind.stubgen -m polysparse._kernels -o src/polysparse/_kernels.pyi

clean:  ## Remove everything that is built
	rm -rf build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
