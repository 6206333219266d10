// Memory for large tables that are read at random.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace polysparse {

/// An uninitialised array. A large one is put in huge pages where the system can: with small pages
/// most random reads would also wait for the address to be translated.
template <class T>
class HugeArray {
    static_assert(std::is_trivially_destructible_v<T>);

  public:
    explicit HugeArray(uint64_t size) {
        const uint64_t bytes = std::max<uint64_t>(size, 1) * sizeof(T);
        const std::align_val_t alignment{bytes < 4 * huge_page ? cache_line : huge_page};
        memory_ = std::unique_ptr<void, Free>(::operator new(bytes, alignment), Free{alignment});
#if defined(__linux__)
        if (bytes >= 4 * huge_page) madvise(memory_.get(), bytes, MADV_HUGEPAGE);  // may fail
#endif
    }

    T* data() { return static_cast<T*>(memory_.get()); }
    const T* data() const { return static_cast<const T*>(memory_.get()); }
    T& operator[](uint64_t i) { return static_cast<T*>(memory_.get())[i]; }
    const T& operator[](uint64_t i) const { return static_cast<const T*>(memory_.get())[i]; }

  private:
    static constexpr uint64_t cache_line = 64, huge_page = uint64_t{1} << 21;
    struct Free {
        std::align_val_t alignment;
        void operator()(void* memory) const { ::operator delete(memory, alignment); }
    };
    std::unique_ptr<void, Free> memory_;
};

}  // namespace polysparse
