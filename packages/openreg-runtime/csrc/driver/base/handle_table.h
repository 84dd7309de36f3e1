// SPDX-License-Identifier: BSD-3-Clause
// HandleTable stores the objects behind the handles of the C API and checks each handle that a caller passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace openreg::driver {

// The base class of an object in a HandleTable. It is not nested in HandleTable<T>, because T would then derive from a
// member of HandleTable<T> and instantiate its std::deque<T> while T is incomplete. Not every standard library accepts
// that.
struct HandleSlot {
  uint32_t index = 0;       // position in the table
  uint32_t generation = 1;  // incremented when the handle becomes invalid
  bool alive = false;       // true while the handle is valid
};

// A table of objects of type T and their handles. A handle is a number, (generation, kind, index), and never an
// address. find() therefore rejects handles that were destroyed or invented, and those of another table. Objects keep
// their addresses and are reused. Not thread-safe.
//
// T derives from HandleSlot and has a kHandleKind from 0 to 7 that no other type has.
template <class T>
class HandleTable {
 public:
  // `first_generation` is the generation of new objects. A value that differs between processes lets find() also reject
  // handles of other processes.
  explicit HandleTable(uint32_t first_generation = 1) : first_generation_(first_generation) {}

  // Makes an unused object valid and returns it. The caller resets its members, because the object may be a reused one.
  T& create() {
    if (free_.empty()) {
      reserve_one();
      objects_.emplace_back();
      objects_.back().index = static_cast<uint32_t>(objects_.size() - 1);
      objects_.back().generation = first_generation_;
      by_index_.push_back(&objects_.back());
      free_.push_back(&objects_.back());
    }
    T& object = *free_.back();
    free_.pop_back();
    object.alive = true;
    return object;
  }

  // Makes the object's handle invalid. The object is not reused before recycle().
  static void invalidate(T& object) {
    object.alive = false;
    ++object.generation;
  }
  // Makes an object whose handle is invalid available to create(). Does not allocate, because destructors call it.
  void recycle(T& object) { free_.push_back(&object); }

  static uintptr_t handle(const T& object) {
    static_assert(sizeof(uintptr_t) == 8, "a handle holds two 32-bit numbers");
    return (static_cast<uintptr_t>(object.generation) << 32) | (static_cast<uintptr_t>(T::kHandleKind) << kKindShift) |
           (static_cast<uintptr_t>(object.index) + 1);
  }

  // Returns the object of `handle`, or null if the handle is not valid.
  T* find(uintptr_t handle) {
    const uint64_t kind = (handle & 0xffffffffU) >> kKindShift;
    const uint64_t index = (handle & kIndexMask) - 1;  // 0 wraps to an index that no table reaches
    if (kind != T::kHandleKind || index >= by_index_.size()) {
      return nullptr;
    }
    T& object = *by_index_[index];
    return object.alive && object.generation == handle >> 32 ? &object : nullptr;
  }

  // Returns all objects, destroyed ones included.
  std::deque<T>& objects() { return objects_; }

 private:
  // Makes room for one more object in both lists.
  void reserve_one() {
    if (free_.capacity() == objects_.size()) {
      free_.reserve(std::max<size_t>(16, 2 * objects_.size()));
    }
    by_index_.reserve(free_.capacity());
  }

  static constexpr int kKindShift = 29;
  static constexpr uintptr_t kIndexMask = (uintptr_t{1} << kKindShift) - 1;

  const uint32_t first_generation_;
  std::deque<T> objects_;
  std::vector<T*> by_index_;  // faster to index than the deque
  std::vector<T*> free_;      // the objects for create(), with capacity for all objects
};

}  // namespace openreg::driver
