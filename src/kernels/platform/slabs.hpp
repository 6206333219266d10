// Memory for many arrays of middling size that live long.
//
// An array of some hundred kB is too small for huge pages of its own. In small pages, most of the
// time to write it would go to the system, which hands them out one at a time, to one thread at a
// time. So such arrays are cut from slabs, which are put in huge pages.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace polysparse {

/// Cuts arrays from slabs, for one thread. A slab lives as long as the arena uses it, or any array
/// that was cut from it is held; arrays may outlive the arena, and be released by any thread.
class SlabArena {
  public:
    SlabArena() = default;
    SlabArena(SlabArena&& other) noexcept
        : slab_(std::exchange(other.slab_, nullptr)), used_(other.used_), next_(other.next_) {}
    SlabArena& operator=(SlabArena&&) = delete;
    ~SlabArena() { let_go(slab_); }

    /// Throws bad_alloc.
    void* allocate(size_t bytes) {
        const size_t size = padded(bytes);
        if (size < least_cut || size > most_cut) return allocate_alone(bytes);
        if (slab_ == nullptr || used_ + size > slab_->size) {
            Slab* const fresh = new_slab(next_);
            let_go(std::exchange(slab_, fresh));
            used_ = line;
            next_ = std::min(2 * next_, most_slab);
        }
        std::byte* const array = reinterpret_cast<std::byte*>(slab_) + used_;
        used_ += size;
        slab_->n_holders.fetch_add(1, std::memory_order_relaxed);
        return with_header(array, slab_);
    }

    /// The same for an array of its own.
    static void* allocate_alone(size_t bytes) {
        return with_header(::operator new(padded(bytes), std::align_val_t{line}), nullptr);
    }

    static void release(void* array) noexcept {
        auto* const header = reinterpret_cast<Header*>(static_cast<std::byte*>(array) - line);
        if (header->slab != nullptr)
            let_go(header->slab);
        else
            ::operator delete(static_cast<void*>(header), std::align_val_t{line});
    }

  private:
    struct Slab {
        size_t size;
        std::atomic<int64_t> n_holders;  // arrays, and the arena
    };
    struct Header {
        Slab* slab;
    };

    static constexpr size_t line = 64, huge_page = size_t{1} << 21;
    static constexpr size_t least_cut = size_t{1} << 15, most_cut = size_t{1} << 21;
    static constexpr size_t most_slab = size_t{1} << 25;

    static size_t padded(size_t bytes) { return (bytes + line - 1) / line * line + line; }

    static void* with_header(void* memory, Slab* slab) {
        new (memory) Header{slab};
        return static_cast<std::byte*>(memory) + line;
    }

    static Slab* new_slab(size_t size) {
        void* const memory = ::operator new(size, std::align_val_t{huge_page});
#if defined(__linux__)
        madvise(memory, size, MADV_HUGEPAGE);  // may fail
#endif
        return new (memory) Slab{size, {1}};
    }

    static void let_go(Slab* slab) noexcept {
        if (slab != nullptr && slab->n_holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
            ::operator delete(static_cast<void*>(slab), std::align_val_t{huge_page});
    }

    Slab* slab_ = nullptr;
    size_t used_ = 0;
    size_t next_ = 2 * huge_page;  // size of the next slab
};

/// For vectors that are made once and then read. Without an arena, and for copies, every array is
/// alone.
template <class T>
struct SlabAllocator {
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    SlabArena* arena = nullptr;

    SlabAllocator() = default;
    explicit SlabAllocator(SlabArena& from) : arena(&from) {}
    template <class U>
    SlabAllocator(const SlabAllocator<U>& other) : arena(other.arena) {}

    T* allocate(size_t n) {
        const size_t bytes = n * sizeof(T);
        return static_cast<T*>(arena == nullptr ? SlabArena::allocate_alone(bytes)
                                                : arena->allocate(bytes));
    }
    void deallocate(T* array, size_t) noexcept { SlabArena::release(array); }
    SlabAllocator select_on_container_copy_construction() const { return {}; }
    friend bool operator==(const SlabAllocator&, const SlabAllocator&) { return true; }
};

}  // namespace polysparse
