// SPDX-License-Identifier: BSD-3-Clause
// The observers of one device's caching allocator: tools such as profilers, whose callbacks are called for the
// allocator's events. openreg/runtime/memory_observer.h describes events and callbacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "openreg/runtime/memory_observer.h"

namespace openreg::runtime {

// A list of observers: callbacks and the kinds of events for which they are called. Guarded by the allocator's mutex.
class MemoryObserverList {
 public:
  using Callback = std::function<void(const MemoryEvent&)>;

  // Returns true if any device has an observer. Thread-safe, but the result may be outdated at once.
  static bool exist() { return count_.load(std::memory_order_relaxed) > 0; }

  // Returns true if an observer has subscribed to events of this kind.
  bool want(MemoryEventKind kind) const { return (wanted_ & memory_event_bit(kind)) != 0; }
  // Calls the observers of the event's kind, in the order in which they were added. A callback that throws is not
  // called again.
  void notify(const MemoryEvent& event) noexcept;

  // Adds an observer of the events in `kinds`, bits of memory_event_bit(). `id` must not be in use.
  void add(uint64_t id, uint32_t kinds, Callback callback);
  // Removes the observer with this id. Returns the text of the exception that its callback threw, or an empty text if
  // it threw none. Returns std::nullopt if there is no such observer.
  std::optional<std::string> remove(uint64_t id);

  // Returns true if the calling thread is inside a callback of any device. Thread-safe.
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
