// SPDX-License-Identifier: BSD-3-Clause
// The happens-before order of the tasks of all streams and of the host, computed from the driver's reports alone. It
// depends on what the program ordered, never on what happened to be complete.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "openreg.h"
#include "vector_clock.h"

namespace openreg::sanitizer {

// A stream of the program, as PyTorch names it.
struct StreamName {
  int device = -1;
  int64_t id = 0;  // c10::StreamId; 0 is the default stream
};

// The clocks of all queues, events and semaphores, and one of the host. The threads of the host share a clock, because
// the order between them (locks, queues of Python) is unknown: what one of them has waited for counts for all. Helper
// threads, which move communication along, have none. The caller holds the sanitizer's mutex.
class Ordering {
 public:
  // Sets the handles of the default streams, by device.
  void set_default_streams(std::vector<orStream_t> handles) { defaults_ = std::move(handles); }

  // Returns the clock of the task (queue, ticket) that a thread enqueues now: all that happens before it. Valid until
  // the next call.
  const VectorClock& submitted(const orTaskInfo& task);
  // Takes a report of the driver. `is_helper`: the thread is no thread of the program. `is_implicit`: the program did
  // not request this wait (an allocator's query, OPENREG_LAUNCH_BLOCKING), so nothing may rely on it.
  void synchronized(const orSyncInfo& sync, bool is_helper, bool is_implicit);

  // All that the host has waited for.
  const VectorClock& host() const { return host_; }
  // Returns the clock of the next task of a queue.
  const VectorClock& next(uint32_t queue) { return queue_of(queue).clock; }
  // Returns the newest ticket of a queue.
  uint64_t newest(uint32_t queue) { return queue_of(queue).submitted; }
  // Returns the queue of a stream, or -1 if it has not been used.
  int64_t find(const StreamName& stream) const;
  // Returns the stream of a queue, or the device -1 if it is unknown.
  StreamName name(uint32_t queue) const { return queue < queues_.size() ? queues_[queue].stream : StreamName(); }

 private:
  struct Queue {
    StreamName stream;
    uint64_t submitted = 0;   // newest ticket
    uint64_t host_epoch = 0;  // of the host's clock when it was joined last
    VectorClock clock;        // of the next task
    // Earlier clocks with the ticket from which each was valid, oldest first.
    std::deque<std::pair<uint64_t, VectorClock>> history;
  };
  struct Semaphore {
    std::vector<std::pair<uint64_t, VectorClock>> signals;  // value and the clock of the thread that signaled it
    std::vector<std::pair<uint64_t, uint32_t>> waits;       // value and queue, of waits before the signal
  };

  Queue& queue_of(uint32_t index);
  void know(uint32_t index, int device, orStream_t stream);
  VectorClock place(uint32_t queue, uint64_t ticket);
  void join(Queue& queue, const VectorClock& clock);
  void join_host(const VectorClock& clock);
  void limit_events();

  std::vector<Queue> queues_;
  std::vector<orStream_t> defaults_;
  std::unordered_map<orEvent_t, VectorClock> events_;
  size_t event_limit_ = 4096;  // number of events at which some are forgotten
  std::unordered_map<orSemaphore_t, Semaphore> semaphores_;
  VectorClock host_;
  uint64_t host_epoch_ = 1;
};

}  // namespace openreg::sanitizer
