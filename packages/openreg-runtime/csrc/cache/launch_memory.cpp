// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/launch_memory.h"

#include <array>
#include <atomic>
#include <new>

namespace openreg::runtime {

namespace {

constexpr size_t kGranule = 64;  // sizes are multiples of a cache line, so that two threads never write to one line
constexpr size_t kClasses = 16;  // size classes, up to 1 KiB; larger sizes are rare and use operator new

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

// The chunks that a thread has taken from the lists of released ones. The destructor returns them when the thread ends.
struct Taken {
  std::array<FreeChunk*, kClasses> lists{};

  Taken() = default;
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    for (size_t i = 0; i < kClasses; ++i) {
      if (FreeChunk* last = lists[i]) {
        while (last->next != nullptr) {
          last = last->next;
        }
        add(released()[i], lists[i], last);
      }
    }
  }
};

// Returns the index of the size class of a size in bytes. It is kClasses or more for sizes without a class.
size_t class_of(size_t size) {
  return (size + kGranule - 1) / kGranule - 1;
}

}  // namespace

void* allocate_launch_memory(size_t size) {
  const size_t index = class_of(size);
  if (index >= kClasses) {
    return ::operator new(size);
  }
  thread_local Taken taken;
  FreeChunk*& list = taken.lists[index];
  if (list == nullptr) {
    list = released()[index].exchange(nullptr, std::memory_order_acquire);
  }
  if (list == nullptr) {
    return ::operator new((index + 1) * kGranule);
  }
  FreeChunk* const chunk = list;
  list = chunk->next;
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
