// SPDX-License-Identifier: BSD-3-Clause
// The streams of a device and the tasks in their queues.
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

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -3;

// Counts of the executed tasks of a device or a stream.
struct Counters {
  uint64_t launches = 0;
  uint64_t copies = 0;
  uint64_t bytes_copied = 0;
  uint64_t busy_nanoseconds = 0;

  void add(const Counters& other) {
    launches += other.launches;
    copies += other.copies;
    bytes_copied += other.bytes_copied;
    busy_nanoseconds += other.busy_nanoseconds;
  }

  // Writes the counters to a structure of openreg.h, each of which has these members.
  template <class Stats>
  void write_to(Stats& stats) const {
    stats.launches = launches;
    stats.copies = copies;
    stats.bytes_copied = bytes_copied;
    stats.busy_nanoseconds = busy_nanoseconds;
  }
};

// A task of a stream's queue. Addresses are those that an engine dereferences (kernel view or host).
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
    uint64_t number;  // counts the semaphore waits of all streams in the order of submission
  };
  struct Timestamp {
    Event* event;
    uint64_t record;
  };

  // The effect of an injected fault when the task runs.
  enum class Injected : uint8_t { kNothing, kFailure, kDeviceLoss };

  Kind kind = Kind::kDelay;
  Injected injected = Injected::kNothing;
  uint32_t observation = 0;  // its number among the tasks that subscribers have seen; 0 if none has seen it
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

// The operands that a launch declares to read and write; null `data` if it declares nothing. Owns nothing.
struct OperandSpan {
  const orOperand* data = nullptr;
  size_t count = 0;
};

// The graph launch that a task belongs to, and the node that it replays; 0 if there is none.
struct GraphNodeRef {
  uint64_t launch = 0;
  uint64_t node = 0;
};

// The value of Stream::wake_at while no host thread waits.
constexpr uint64_t kNoWaiter = std::numeric_limits<uint64_t>::max();

// A stream whose head waits until another stream has completed `ticket`.
struct Dependent {
  Stream* stream;
  uint64_t ticket;
};

// A FIFO queue of tasks. Guarded by the scheduler's mutex, except that waiting threads may read `completed` without it.
// Tickets number the tasks from 1 on. They never restart, even if the object is reused, so that a complete ticket stays
// complete.
struct Stream : HandleSlot {
  static constexpr uint32_t kHandleKind = 1;

  Device* device = nullptr;
  int priority = 0;
  RingBuffer<Task> queue;
  uint64_t first_ticket = 0;           // ticket before the stream's first one; not 0 if the object is reused
  uint64_t submitted = 0;              // ticket of the newest task
  std::atomic<uint64_t> completed{0};  // ticket of the newest complete task
  bool busy = false;                   // true while its head runs, or waits (engine, timer, semaphore, other stream)
  uint64_t observed = 0;               // ticket of the newest task that a subscriber has seen
  std::vector<Dependent> dependents;
  Counters counters;
  Capture* capture = nullptr;        // the capture that records its tasks; null if it is not capturing
  size_t branch = 0;                 // its branch in the capture
  uint64_t wake_at = kNoWaiter;      // the lowest ticket that a host thread waits for
  std::condition_variable progress;  // notified when `completed` reaches `wake_at`
};

inline orStream_t handle_of(const Stream& stream) {
  return reinterpret_cast<orStream_t>(HandleTable<Stream>::handle(stream));
}

}  // namespace openreg::driver
