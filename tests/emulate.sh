#!/bin/sh
# Tests of the GPU without one: kernels compiled for the processor, under AddressSanitizer.
# VENV: a virtual environment with the package and the test tools. CXX: the compiler, GCC.
# What is given is handed on to pytest, in place of the tests that are chosen here.
set -eu
cd "$(dirname "$0")/.."

VENV=$(cd "${VENV:-.venv}" && pwd)
export CXX="${CXX:-g++}"

# As in sanitize.sh. Python and pytest are to hide nothing from the sanitizer, and it nothing from
# them: when it finds a fault, they say in which test.
run() {
    env PYTHONPATH="$(pwd)/tests/gpu/emulator${PYTHONPATH:+:$PYTHONPATH}" PYTHONMALLOC=malloc \
        LD_PRELOAD="$("$CXX" -print-file-name=libasan.so) $("$CXX" -print-file-name=libstdc++.so)" \
        ASAN_OPTIONS=abort_on_error=1:detect_leaks=0:detect_stack_use_after_return=0 \
        UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1 \
        "$VENV/bin/python" -m pytest -p no:cacheprovider --capture=sys -n auto "$@"
}

if [ $# -gt 0 ]; then
    run "$@"
    exit
fi

# Every kernel, in a few minutes: each instance of one takes seconds to compile, and a block of
# threads is slow. The last file fails if a kernel was not reached.
rm -rf build/emulator/launched
run tests/gpu/test_gpu_*.py -k "uneven_rows or malformed or overflow or test_many_runs \
    or need_more_than_shared_memory or test_columns or test_inner_products_have \
    or test_products and small or test_hashed_columns and small and few \
    or test_products and rows and not 3 and not 4 and not 1 and not include and not only \
    or test_more_terms or test_sums_that_words or odd_addresses \
    or less_shared and not float32 or test_gpu_groups and not zoo and not products_with \
    and not wide_indices and not 50_000 and not models or test_models and all-groups \
    or test_gpu_search and not float32"
run tests/gpu/emulator/check_emulator.py
