// SPDX-License-Identifier: BSD-3-Clause
// Stream is a FIFO queue of tasks of one device, and Task is one element of it: a kernel, a copy, a fill, a wait, and
// so on. Each task has a ticket, its sequence number in the stream.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/handle_table.h"
#include "base/ring_buffer.h"
#include "objects/event.h"
#include "objects/timeline_semaphore.h"
#include "openreg.h"

namespace openreg::driver {

struct Capture;
struct Device;
struct Stream;

// The range of stream priorities. Engines serve streams with a lower number first.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -3;

// Counters of the tasks that were executed for a device or a stream, by engines and by host threads in their place.
struct Counters {
  uint64_t launches = 0;
  uint64_t copies = 0;  // fills are included
  uint64_t bytes_copied = 0;
  uint64_t busy_nanoseconds = 0;

  void add(const Counters& other) {
    launches += other.launches;
    copies += other.copies;
    bytes_copied += other.bytes_copied;
    busy_nanoseconds += other.busy_nanoseconds;
  }

  // Writes the counters to `stats`, an orDeviceStats or orStreamStats.
  template <class Stats>
  void write_to(Stats& stats) const {
    stats.launches = launches;
    stats.copies = copies;
    stats.bytes_copied = bytes_copied;
    stats.busy_nanoseconds = busy_nanoseconds;
  }
};

// A task. Addresses in it are those that an engine dereferences: host addresses, and for device memory those of the
// kernel view, the mapping that only kernels use.
struct Task {
  enum class Kind : uint8_t {
    kKernel,         // runs on the compute engine; without a function it only releases its state
    kHostFunction,   // runs on the compute engine
    kCopy,           // runs on the compute or the copy engine, by its size
    kFill,           // runs on the compute engine
    kWait,           // completes when another stream has completed a ticket; occupies no engine
    kSemaphoreWait,  // completes when a semaphore has reached a value; occupies no engine
    kTimestamp,      // stores the time in an event; occupies no engine
    kDelay,          // completes after a time; occupies no engine
  };
  struct HostFunction {
    orHostFunction_t function;
    void* user_data;
  };
  struct Copy {
    void* destination;
    const void* source;
    size_t size;
    void* staging;  // malloc'ed memory that the task owns and frees; may be null
  };
  struct Fill {
    void* destination;
    size_t size;
    int value;
  };
  struct Wait {
    Stream* stream;
    uint64_t ticket;
  };
  struct SemaphoreWait {
    TimelineSemaphore* semaphore;
    uint64_t value;
    uint64_t number;  // number of the wait among those of all streams, in the order of enqueuing
  };
  struct Timestamp {
    Event* event;
    uint64_t record;  // Event::record for this task; if they differ, the event was recorded again or destroyed
  };

  // The effect of an injected fault (faults.h) when the task is executed.
  enum class Injected : uint8_t { kNothing, kFailure, kDeviceLoss };

  Kind kind = Kind::kDelay;
  Injected injected = Injected::kNothing;
  uint32_t observation = 0;  // its number in the SubscriberList; 0 if it was not reported to a subscriber
  union {
    orKernel kernel;
    HostFunction host;
    Copy copy;
    Fill fill;
    Wait wait;
    SemaphoreWait semaphore;
    Timestamp timestamp;
    uint64_t delay;  // nanoseconds
  };

  Task() : delay(0) {}
};

// A view of the operands of a launch: the memory that the kernel reads and writes. `data` is null if the launch does
// not declare them. Owns nothing.
struct OperandSpan {
  const orOperand* data = nullptr;
  size_t count = 0;
};

// A reference from a task to the launch of the graph that enqueued it, and to the node that it replays. Both numbers
// are 0 for a task that is not part of a graph launch, and `node` is 0 for a wait.
struct GraphNodeRef {
  uint64_t launch = 0;
  uint64_t node = 0;
};

// The value of Stream::wake_at while no host thread waits for the stream.
constexpr uint64_t kNoWaiter = std::numeric_limits<uint64_t>::max();

// A FIFO queue of tasks of one device. Its head is the oldest task that is not complete. Tickets number the tasks from
// 1 on. They never restart, even if the object is reused for another stream, so that a complete ticket stays complete.
// Guarded by the scheduler's mutex, except that waiting threads may read `completed` without it.
struct Stream : HandleSlot {
  static constexpr uint32_t kHandleKind = 1;

  Device* device = nullptr;
  int priority = 0;
  RingBuffer<Task> queue;              // the tasks that are not complete
  uint64_t first_ticket = 0;           // the ticket before the stream's first one; above 0 if the object is reused
  uint64_t submitted = 0;              // ticket of the newest task
  std::atomic<uint64_t> completed{0};  // ticket of the newest complete task
  bool busy = false;                   // true while its head is executed or waits for something that will complete it
  uint64_t observed = 0;               // ticket of the newest task that a subscriber (orSubscribe()) has seen
  std::vector<Waiter> waiters;         // the streams whose heads wait for tickets of this one
  Counters counters;
  Capture* capture = nullptr;        // the capture that records its tasks; null if it is not capturing
  size_t branch = 0;                 // index of its branch in that capture: the nodes that this stream has recorded
  uint64_t wake_at = kNoWaiter;      // the lowest ticket for which a host thread waits
  std::condition_variable progress;  // notified when `completed` reaches `wake_at`
};

inline orStream_t handle_of(const Stream& stream) {
  return reinterpret_cast<orStream_t>(HandleTable<Stream>::handle(stream));
}

}  // namespace openreg::driver
