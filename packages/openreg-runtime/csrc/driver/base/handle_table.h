// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace openreg::driver {

// What an object needs to stand behind a handle. Not a member of the table: deriving from it would instantiate the
// table, and with it a container of a type that is not complete yet, which not every standard library accepts.
struct HandleSlot {
  uint32_t index = 0;
  uint32_t generation = 1;
  bool alive = false;
};

// Hands out objects behind handles which can be checked: a handle is (generation, kind, index), never an address, so
// that a destroyed or invented one, or one of another table, is recognised. Objects keep their address and are reused.
// Not thread-safe.
//
// T derives from HandleSlot and has a kHandleKind from 0 to 7 of its own.
template <class T>
class HandleTable {
 public:
  explicit HandleTable(uint32_t first_generation = 1) : first_generation_(first_generation) {}

  T& create() {
    if (free_.empty()) {
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

  // Makes the handle invalid; the object stays out of reuse until recycle().
  static void invalidate(T& object) {
    object.alive = false;
    ++object.generation;
  }
  void recycle(T& object) { free_.push_back(&object); }

  static uintptr_t handle(const T& object) {
    static_assert(sizeof(uintptr_t) == 8, "a handle holds two 32-bit numbers");
    return (static_cast<uintptr_t>(object.generation) << 32) | (static_cast<uintptr_t>(T::kHandleKind) << kKindShift) |
           (static_cast<uintptr_t>(object.index) + 1);
  }

  // Null for a handle that is not in use.
  T* find(uintptr_t handle) {
    const uint64_t kind = (handle & 0xffffffffU) >> kKindShift;
    const uint64_t index = (handle & kIndexMask) - 1;  // 0 wraps to a number no table reaches
    if (kind != T::kHandleKind || index >= by_index_.size()) {
      return nullptr;
    }
    T& object = *by_index_[index];
    return object.alive && object.generation == handle >> 32 ? &object : nullptr;
  }

  std::deque<T>& objects() { return objects_; }

 private:
  static constexpr int kKindShift = 29;
  static constexpr uintptr_t kIndexMask = (uintptr_t{1} << kKindShift) - 1;

  const uint32_t first_generation_;
  std::deque<T> objects_;
  std::vector<T*> by_index_;  // quicker to index than the deque
  std::vector<T*> free_;
};

}  // namespace openreg::driver
