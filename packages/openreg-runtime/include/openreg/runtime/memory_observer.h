// SPDX-License-Identifier: BSD-3-Clause
// Callbacks for events of the caching allocator of device memory, for tools such as sanitizers. Several observers may
// subscribe at once, in addition to PyTorch's own profiler, history and statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The kinds of events. A segment is one allocation of the driver, and a block is a part of a segment that serves one
// allocation of a program.
enum class MemoryEventKind : uint8_t {
  kAllocated,         // a block was allocated
  kStreamRecorded,    // another stream uses an allocated block, too (Tensor.record_stream())
  kFreeRequested,     // a block was released; streams may still use it
  kFreeCompleted,     // no stream uses a released block any more, so it may be allocated again
  kSegmentAllocated,  // a segment was allocated by the driver
  kSegmentReleased,   // a segment is about to be released to the driver
  kOutOfMemory,       // an allocation failed, although all cached memory that may be released was released
};

// Returns the bit that stands for a kind in MemoryObserver::kinds.
constexpr uint32_t memory_event_bit(MemoryEventKind kind) {
  return uint32_t{1} << static_cast<unsigned>(kind);
}
inline constexpr uint32_t kAllMemoryEvents = memory_event_bit(MemoryEventKind::kOutOfMemory) * 2 - 1;

// An event of the caching allocator of one device.
struct MemoryEvent {
  MemoryEventKind kind;
  int device;
  void* address;         // of the block or segment; null for kOutOfMemory
  size_t size;           // bytes of the block or segment; for kOutOfMemory those that the block would have had
  size_t requested;      // bytes that the caller requested; for a segment its size
  int64_t stream;        // the stream that the memory belongs to (c10::StreamId)
  int other_device;      // kStreamRecorded: device of the other stream
  int64_t other_stream;  // kStreamRecorded: the other stream (c10::StreamId)
  // The pool of the memory, a c10::MempoolId_t. {0, 0} is the default pool; always {0, 0} for kOutOfMemory.
  std::pair<unsigned long long, unsigned long long> pool;
  size_t allocated_bytes;  // bytes in allocated blocks of the device, after the event
  size_t reserved_bytes;   // bytes in segments of the device, after the event; without the one of kSegmentReleased
  size_t free_bytes;       // kOutOfMemory: bytes that the driver can still allocate
};

// An observer: a callback and the events for which it is called. The callback runs on the thread that causes the event.
// That may be any thread of the process, also an engine thread, with or without the GIL. It runs while the allocator of
// the event's device is locked, so the events of one device arrive one at a time and in order. An observer of all
// devices may be called on several threads at once. The callback must be short, and must not
//   - acquire the GIL or a lock whose holder may allocate or release device memory, because that thread may be blocked
//     on the allocator's lock;
//   - block on the device;
//   - enqueue a launch, a copy or an event, which blocks if a queue is full, or call the allocator, observe_memory() or
//     stop_observing_memory(). Each of these throws c10::Error inside a callback. Memory that is released there stays
//     allocated, with a warning;
//   - throw. A callback that throws is not called again for that device, and stop_observing_memory() throws the text of
//     its exception. An observer of all devices is still called for the others.
// Observers do not work in a forked child, which must not use the device.
struct MemoryObserver {
  std::function<void(const MemoryEvent&)> callback;
  uint32_t kinds = kAllMemoryEvents;  // bits of memory_event_bit(): the kinds of events to report
  int device = -1;                    // index of a device; -1: all devices
};

// Subscribes an observer and returns the id of the subscription. Existing allocations are not reported, but
// memory_snapshot() contains them. Throws c10::ValueError if the callback is empty, or if the kinds are 0 or unknown.
// Throws c10::Error if the device does not exist, and inside a callback. Thread-safe.
OPENREG_RUNTIME_API uint64_t observe_memory(MemoryObserver observer);

// Ends a subscription. When this returns, its callback is not running and will not run again. Throws c10::Error if
// there is no such subscription, for example because it has ended, and inside a callback. If the callback has thrown,
// ends the subscription, then throws c10::Error with its text. Does nothing in a forked child. Thread-safe.
OPENREG_RUNTIME_API void stop_observing_memory(uint64_t subscription);

}  // namespace openreg::runtime
