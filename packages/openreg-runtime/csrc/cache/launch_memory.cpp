// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/launch_memory.h"

#include <array>
#include <atomic>
#include <new>
#include <utility>

namespace openreg::runtime {

namespace {

constexpr size_t kGranule = 64;  // sizes are multiples of a cache line, so that two threads never write to one line
constexpr size_t kClasses = 16;  // size classes, up to 1 KiB; larger sizes are rare and use operator new
constexpr size_t kGroup = 32;    // chunks that are allocated at once

// A released piece of memory, which is linked into a list of its size class.
struct FreeChunk {
  FreeChunk* next;
};

using Lists = std::array<std::atomic<FreeChunk*>, kClasses>;

// Returns the lists of released chunks, one per size class. Chunks are added one by one but taken all at once, so a
// thread never follows a pointer of a list that another thread changes.
Lists& released() {
  static auto* const lists = new Lists();  // never destroyed, because engines may release while the process exits
  return *lists;
}

void add(std::atomic<FreeChunk*>& list, FreeChunk* first, FreeChunk* last) noexcept {
  last->next = list.load(std::memory_order_relaxed);
  while (!list.compare_exchange_weak(last->next, first, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

using TakenChunks = std::array<FreeChunk*, kClasses>;

// Returns the chunks that the calling thread has taken, a list per size class. The lists have no destructor, because a
// later destructor of the thread may launch.
TakenChunks& taken() {
  thread_local TakenChunks lists{};
  return lists;
}

// A guard that returns the chunks of its thread when the thread ends.
struct TakenChunksGuard {
  TakenChunksGuard() = default;
  TakenChunksGuard(const TakenChunksGuard&) = delete;
  TakenChunksGuard& operator=(const TakenChunksGuard&) = delete;
  ~TakenChunksGuard() {
    for (size_t i = 0; i < kClasses; ++i) {
      FreeChunk* const first = std::exchange(taken()[i], nullptr);
      if (FreeChunk* last = first) {
        while (last->next != nullptr) {
          last = last->next;
        }
        add(released()[i], first, last);
      }
    }
  }
};

// Returns the index of the size class of a size in bytes. It is kClasses or more for sizes without a class.
size_t class_of(size_t size) {
  return (size + kGranule - 1) / kGranule - 1;
}

// Allocates kGroup chunks of a size class, or as many as the host has memory for, and returns their list. Throws
// std::bad_alloc if there is none. With so many chunks, a thread that launches mostly knows the next one in advance
// (prefetch()), as long as the engine keeps up. Each chunk is an allocation of its own, so that AddressSanitizer
// reports a write beyond it.
FreeChunk* allocate_group(size_t index) {
  FreeChunk* list = nullptr;
  for (size_t i = 0; i < kGroup; ++i) {
    void* const memory = ::operator new((index + 1) * kGranule, std::align_val_t{kGranule}, std::nothrow);
    if (memory == nullptr) {
      break;
    }
    list = new (memory) FreeChunk{list};
  }
  if (list == nullptr) {
    throw std::bad_alloc();
  }
  return list;
}

// Starts to fetch a chunk into the cache of this core, while the thread does other work. Mostly another core has
// written it last, and may be so far away that the launch would wait for a good part of its time.
void prefetch([[maybe_unused]] const FreeChunk* chunk, [[maybe_unused]] size_t index) {
#if defined(__GNUC__)
  for (size_t line = 0; line <= index; ++line) {
    __builtin_prefetch(reinterpret_cast<const char*>(chunk) + line * kGranule, 1);
  }
#endif
}

// Returns released chunks of a size class, or new ones if there are none. Throws std::bad_alloc.
FreeChunk* take(size_t index) {
  thread_local const TakenChunksGuard returns_them;
  FreeChunk* const list = released()[index].exchange(nullptr, std::memory_order_acquire);
  return list != nullptr ? list : allocate_group(index);
}

}  // namespace

void* allocate_launch_memory(size_t size) {
  const size_t index = class_of(size);
  if (index >= kClasses) {
    return ::operator new(size);
  }
  FreeChunk*& list = taken()[index];
  if (list == nullptr) {
    list = take(index);
  }
  FreeChunk* const chunk = list;
  list = chunk->next;
  if (list != nullptr) {
    prefetch(list, index);
  }
  return chunk;
}

void release_launch_memory(void* address, size_t size) noexcept {
  const size_t index = class_of(size);
  if (index >= kClasses) {
    ::operator delete(address);
    return;
  }
  auto* const chunk = static_cast<FreeChunk*>(address);
  add(released()[index], chunk, chunk);
}

}  // namespace openreg::runtime
