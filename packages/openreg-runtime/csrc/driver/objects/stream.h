// SPDX-License-Identifier: BSD-3-Clause
// The command queue of the device, and what can stand in it.
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

// What was done for a device or a stream.
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

  // Into the structures of openreg.h, which begin alike.
  template <class Stats>
  void write_to(Stats& stats) const {
    stats.launches = launches;
    stats.copies = copies;
    stats.bytes_copied = bytes_copied;
    stats.busy_nanoseconds = busy_nanoseconds;
  }
};

// One entry of a queue. Addresses are those that an engine dereferences (kernel view or host).
struct Task {
  enum class Kind : uint8_t {
    kKernel,         // runs on the compute engine; without a function it only releases its state
    kHostFunction,   // runs on the compute engine
    kCopy,           // runs on the engine that suits its size
    kFill,           // runs on the compute engine
    kWait,           // passes when another stream has completed a ticket; keeps no engine busy
    kSemaphoreWait,  // passes when a semaphore has reached a value; keeps no engine busy
    kTimestamp,      // notes the time in an event; keeps no engine busy
    kDelay,          // passes after a time; keeps no engine busy
  };
  struct HostFunction {
    orHostFunction_t function;
    void* user_data;
  };
  struct Copy {
    void* destination;
    const void* source;
    size_t size;
    void* staging;  // malloc'ed memory to free afterwards, or null
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
    uint64_t number;  // counts these waits in the order in which they were submitted
  };
  struct Timestamp {
    Event* event;
    uint64_t record;
  };

  // What injected faults do to it when it runs.
  enum class Injected : uint8_t { kNothing, kFailure, kDeviceLoss };

  Kind kind = Kind::kDelay;
  Injected injected = Injected::kNothing;
  uint32_t observation = 0;  // its number among the tasks that observers have seen; 0 if none has
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

// What a launch says that it reads and writes; no data: nothing was said.
struct OperandSpan {
  const orOperand* data = nullptr;
  size_t count = 0;
};

// Which launch of a graph an entry belongs to, and which of its nodes it repeats; 0: none.
struct GraphNodeRef {
  uint64_t launch = 0;
  uint64_t node = 0;
};

constexpr uint64_t kNobodyWaits = std::numeric_limits<uint64_t>::max();

// A stream waiting at its head for another one to complete `ticket`.
struct Dependent {
  Stream* stream;
  uint64_t ticket;
};

// Guarded by the scheduler's mutex; who waits may read `completed` without it. Tickets number the entries of the stream
// from 1 on and never restart, not even when the object is reused: "ticket t is done" stays true for ever.
struct Stream : HandleSlot {
  static constexpr uint32_t kHandleKind = 1;

  Device* device = nullptr;
  int priority = 0;
  RingBuffer<Task> queue;
  uint64_t first_ticket = 0;           // ticket before its own first one, since the object may have been another stream
  uint64_t submitted = 0;              // ticket of the newest entry
  std::atomic<uint64_t> completed{0};  // ticket of the newest entry that is done
  bool busy = false;                   // its head is with an engine, a timer, or another stream
  uint64_t observed = 0;               // ticket of the newest entry that an observer has seen
  std::vector<Dependent> dependents;
  Counters counters;
  Capture* capture = nullptr;        // that records what is submitted
  size_t branch = 0;                 // of the capture
  uint64_t wake_at = kNobodyWaits;   // the lowest ticket that a host thread waits for
  std::condition_variable progress;  // notified when `completed` reaches `wake_at`
};

inline orStream_t handle_of(const Stream& stream) {
  return reinterpret_cast<orStream_t>(HandleTable<Stream>::handle(stream));
}

}  // namespace openreg::driver
