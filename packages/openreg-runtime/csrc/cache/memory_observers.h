// SPDX-License-Identifier: BSD-3-Clause
// Who is told what one device's allocator does: openreg/runtime/memory_observer.h says what they get and may do.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "openreg/runtime/memory_observer.h"

namespace openreg::runtime {

// Guarded by the lock of the allocator that it belongs to.
class MemoryObserverList {
 public:
  using Callback = std::function<void(const MemoryEvent&)>;

  // Whether there is an observer of any device. Any thread may ask; it may be out of date at once.
  static bool exist() { return count_.load(std::memory_order_relaxed) > 0; }

  // Whether anybody wants events of the kind.
  bool want(MemoryEventKind kind) const { return (wanted_ & memory_event_bit(kind)) != 0; }
  // Calls who wants it, in the order in which they came. A callback that throws is not called again.
  void notify(const MemoryEvent& event) noexcept;

  // `id` is not in use.
  void add(uint64_t id, uint32_t kinds, Callback callback);
  // What the callback threw, empty if it did not; nothing if there is no such observer.
  std::optional<std::string> remove(uint64_t id);

  // Whether the calling thread is inside a callback, of any device.
  static bool is_notifying();

 private:
  struct Observer {
    uint64_t id;
    uint32_t kinds;
    Callback callback;
    std::string failure;
  };
  void update_wanted();

  inline static std::atomic<int> count_{0};
  std::vector<Observer> observers_;
  uint32_t wanted_ = 0;
};

}  // namespace openreg::runtime
