// SPDX-License-Identifier: BSD-3-Clause
// Who wants to know what the caching allocator of device memory does: profilers, sanitizers, predictors. Several may
// look on at once, beside PyTorch's own profiler, history and statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

enum class MemoryEventKind : uint8_t {
  kAllocated,         // a block was handed out
  kStreamRecorded,    // record_stream(): `other` uses an allocated block too
  kFreeRequested,     // a block was given back
  kFreeCompleted,     // and no stream uses it any more: from now on it may be handed out again
  kSegmentAllocated,  // the driver gave memory
  kSegmentReleased,   // and got it back; reported before it does
  kOutOfMemory,       // an allocation failed, after everything was tried
};

// The bit of a kind in MemoryObserver::kinds.
constexpr uint32_t memory_event_bit(MemoryEventKind kind) {
  return uint32_t{1} << static_cast<unsigned>(kind);
}
inline constexpr uint32_t kAllMemoryEvents = memory_event_bit(MemoryEventKind::kOutOfMemory) * 2 - 1;

struct MemoryEvent {
  MemoryEventKind kind;
  int device;
  void* address;     // of the block or segment; null for kOutOfMemory
  size_t size;       // bytes of the block or segment; for kOutOfMemory what a block would have had
  size_t requested;  // bytes that the user asked for; of a segment its size
  int64_t stream;    // the stream that the memory belongs to (c10::StreamId)
  int other_device;  // kStreamRecorded: the stream that uses it
  int64_t other_stream;
  std::pair<unsigned long long, unsigned long long> pool;  // c10::MempoolId_t; {0, 0}: the ordinary cache
  size_t allocated_bytes;                                  // of the device, after the event
  size_t reserved_bytes;                                   // in segments, after the event
  size_t free_bytes;                                       // kOutOfMemory: that the driver has left
};

// A callback runs on the thread that caused the event, with the allocator of that device locked: for one device it gets
// events one by one, in the order in which they happened. It may be called by any thread of the process, by engines
// too, with and without the GIL, and it should be short. It must not
//   - take the GIL or wait for a lock whose holder may allocate or release device memory: such a thread waits for it;
//   - wait for the device;
//   - launch, copy or record an event, which waits where a queue is full, or call the allocator, observe_memory() and
//     stop_observing_memory() included: all of these throw c10::Error inside a callback. Memory that is released there
//     stays allocated, with a warning;
//   - throw. One that does is not called again, and stop_observing_memory() says what it threw.
// A forked child has no observers that it could rely on: it must not use the device.
struct MemoryObserver {
  std::function<void(const MemoryEvent&)> callback;
  uint32_t kinds = kAllMemoryEvents;  // an event comes if the bit of its kind is set
  int device = -1;                    // or -1 for all devices
};

// Subscribes. What is allocated already is not told: memory_snapshot() shows it. Returns a number that names the
// subscription. Throws c10::ValueError without a callback, without kinds or with unknown ones, c10::Error for a device
// that does not exist.
OPENREG_RUNTIME_API uint64_t observe_memory(MemoryObserver observer);

// Ends a subscription. When this returns, its callback neither runs nor will run again. Throws c10::Error if the number
// names no subscription, as when it was ended before, and, after it was ended, if the callback had thrown.
OPENREG_RUNTIME_API void stop_observing_memory(uint64_t subscription);

}  // namespace openreg::runtime
