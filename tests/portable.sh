#!/bin/sh
# The kernels, without Python, by every compiler that is here, run here or under qemu. Debian has the
# others: clang g++-aarch64-linux-gnu g++-s390x-linux-gnu qemu-user-static; g++-mingw-w64-x86-64-posix
# and wine64 for Windows. zig has musl and libc++.
set -eu
cd "$(dirname "$0")/.."
out=$(pwd)/build/portable
rm -rf "$out"
mkdir -p "$out"

try() { # what it is, command to run it under, compiler and flags
    what=$1
    under=$2
    emulator=${under%% *}
    shift 2
    if ! command -v "$1" >/dev/null || ! command -v "${emulator:-true}" >/dev/null; then
        echo "$what: left out, $1${emulator:+ or $emulator} is not here"
        return
    fi
    built=$out/$(echo "$@" | cksum | cut -d ' ' -f 1)
    test -e "$built/done" || build "$@"
    for driver in golden kernels; do
        result=$($under "$built/$driver.exe")
        echo "$what, $driver: $result"
    done
}

build() { # compiler and flags; each source is compiled once, for both drivers, into $built
    mkdir -p "$built"
    find src/kernels tests/kernels tests/golden_driver.cpp -name '*.cpp' -not -path '*/bindings/*' |
        built=$built xargs -P "$(nproc)" -I {} sh -c \
            'source=$1; shift; "$@" -c "$source" -o "$built/$(echo "$source" | tr / -).o"' - {} \
            "$@" -std=c++20 -O2 -ffp-contract=off -Wall -Wextra -Werror -pthread -Isrc/kernels
    "$@" -pthread "$built"/src-*.o "$built"/tests-golden_driver.cpp.o -o "$built/golden.exe"
    "$@" -pthread "$built"/src-*.o "$built"/tests-kernels-*.o -o "$built/kernels.exe"
    touch "$built/done"
}

# What CMakeLists.txt finds out.
case $(uname -m) in
    x86_64) clones=-DPOLYSPARSE_HAS_CLONES targets=-DPOLYSPARSE_HAS_TARGETS ;;
    *) clones= targets= ;;
esac
try "GCC" "" g++ $clones
if [ -n "$clones" ]; then # what is taken where AVX-512 is missing, or all that is newer than SSE4
    try "GCC, AVX2" "qemu-x86_64-static -cpu max,-avx512f" g++ $clones
    try "GCC, SSE4" "qemu-x86_64-static -cpu Nehalem" g++ $clones
fi
try "Clang" "" clang++ $targets
try "musl and libc++" "" zig c++ -target "$(uname -m)-linux-musl" -DPOLYSPARSE_ONE_TARGET
try "aarch64" qemu-aarch64-static aarch64-linux-gnu-g++ -static
try "s390x, big endian" qemu-s390x-static s390x-linux-gnu-g++ -static
export WINEPREFIX="$out/wine" WINEDEBUG=-all  # files of its own; messages of the driver alone
PATH=$PATH:/usr/lib/wine
try "Windows, MinGW" wine64 x86_64-w64-mingw32-g++-posix -static -DPOLYSPARSE_HAS_TARGETS
