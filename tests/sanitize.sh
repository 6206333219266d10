#!/bin/sh
# The core under the sanitizers: first the kernels alone, for memory errors, undefined behaviour
# and data races; then the Python package, for memory errors and undefined behaviour.
# VENV: a virtual environment with the build and test tools. CXX: the compiler.
set -eu
cd "$(dirname "$0")/.."

VENV=$(cd "${VENV:-.venv}" && pwd)
CXX=${CXX:-g++}
export CXX PATH="$VENV/bin:$PATH"
out=$(pwd)/build/sanitize
mkdir -p "$out"

# Older ThreadSanitizers do not know where newer kernels, randomising more, put memory.
fixed_addresses=
if setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed_addresses="setarch $(uname -m) -R"
fi

run_driver() { # sanitizers, command to run it under
    echo "kernels under $1"
    objects=$out/driver-$1
    rm -rf "$objects"
    mkdir -p "$objects"
    find tests/kernels src/kernels -name '*.cpp' -not -path '*/bindings/*' |
        objects=$objects xargs -P "$(nproc)" -I {} sh -c \
            'source=$1; shift; "$@" -c "$source" -o "$objects/$(echo "$source" | tr / -).o"' - {} \
            "$CXX" -std=c++20 -O1 -g -Wall -Wextra -pthread -Isrc/kernels -DPOLYSPARSE_SANITIZED \
            -D_GLIBCXX_ASSERTIONS -D_GLIBCXX_SANITIZE_VECTOR \
            -fsanitize="$1" -fno-sanitize-recover=all -fno-omit-frame-pointer
    "$CXX" -pthread -fsanitize="$1" "$objects"/*.o -o "$objects/driver"
    $2 "$objects/driver"
}
run_driver address,undefined ""
run_driver thread "$fixed_addresses"

echo "package under address,undefined"
rm -rf "$out/site"
python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps . \
    --target "$out/site" \
    --config-settings=build-dir="$out/cmake" \
    --config-settings=cmake.build-type=RelWithDebInfo \
    --config-settings=install.strip=false \
    --config-settings=cmake.define.POLYSPARSE_SANITIZE=address,undefined

# The interpreter is not built for it, so ASan has to be loaded first; and libstdc++ with it, or
# ASan finds no exceptions to watch.
runtimes=$(ldd "$out"/site/polysparse/_kernels*.so | awk '/lib(asan|stdc[+][+])/ {print $3}')
case $runtimes in *libasan*) ;; *) echo "the extension is not linked to ASan" >&2; exit 1 ;; esac

# An installation of the package in $VENV would be found first, even before PYTHONPATH, if it is
# editable. The interpreter that $VENV was made from reads no file that says so.
interpreter=$(python -c 'import sys; print(sys._base_executable)')
libraries=$(python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
export PYTHONPATH="$out/site:$libraries"
found=$("$interpreter" -c 'import importlib.util as u; print(u.find_spec("polysparse").origin)')
case $found in "$out"/site/*) ;; *) echo "$found would be tested" >&2; exit 1 ;; esac

# Leaks are not looked for: CPython and NumPy keep memory until the process ends, on purpose.
# An impossible allocation is to fail, as it does without ASan, for NumPy to raise MemoryError.
# Browsers do not start with ASan. What a worker of pytest reports is lost, if not in a file.
rm -rf "$out/reports"
mkdir "$out/reports"
options=log_path=$out/reports/of
status=0
env LD_PRELOAD="$(echo $runtimes)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:$options \
    UBSAN_OPTIONS=print_stacktrace=1:$options \
    "$interpreter" -m pytest tests -q -n auto --dist loadgroup -p no:cacheprovider \
    -m "not no_sanitizer" --ignore tests/docs || status=$?
cat "$out"/reports/* 2>/dev/null || echo "no reports of sanitizers"
exit $status
