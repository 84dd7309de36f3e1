// SPDX-License-Identifier: BSD-3-Clause
// RingBuffer is the FIFO container that holds the tasks of a stream.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace openreg::driver {

// A FIFO queue that allocates only when it grows, and never shrinks. T must be default-constructible, copyable and
// movable. Not thread-safe.
template <class T>
class RingBuffer {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Returns the oldest element. The queue must not be empty.
  T& front() { return slots_[head_]; }
  // Appends a copy of `value` and returns a reference to it, which is valid until the next push(), or until the element
  // is removed.
  T& push(const T& value) {
    if (size_ == slots_.size()) {
      grow();
    }
    T& slot = slots_[(head_ + size_) & (slots_.size() - 1)];
    slot = value;
    ++size_;
    return slot;
  }
  // Removes the oldest element and returns it. The queue must not be empty.
  T pop() {
    T value = std::move(slots_[head_]);
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
    return value;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 16 : slots_.size() * 2);  // a power of two
    for (size_t i = 0; i < size_; ++i) {
      larger[i] = std::move(slots_[(head_ + i) & (slots_.size() - 1)]);
    }
    slots_.swap(larger);
    head_ = 0;
  }

  std::vector<T> slots_;
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace openreg::driver
