// How the compiler is told to build a kernel: once per processor generation, chosen when loaded.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define POLYSPARSE_INLINE inline __attribute__((always_inline))
#define POLYSPARSE_INLINE_LAMBDA __attribute__((always_inline))
#else
#define POLYSPARSE_INLINE_LAMBDA
#define POLYSPARSE_INLINE __forceinline
#endif

namespace polysparse {

/// Has a cache line fetched that will be read soon.
POLYSPARSE_INLINE void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#endif
}

}  // namespace polysparse

// Function multiversioning needs the loader's help (ifunc), which sanitizers do not survive.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(POLYSPARSE_SANITIZED)
#define POLYSPARSE_TARGETS \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define POLYSPARSE_TARGETS
#endif
