// SPDX-License-Identifier: BSD-3-Clause
// A time source of the driver that runs openreg devices in the time of a described chip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "openreg.h"

namespace openreg::predict {

// The time that a described chip needs for the tasks of one call. In nanoseconds.
struct Cost {
  uint64_t engine_time = 0;
  uint64_t graph_time = 0;  // engine time if a graph launches the tasks
  int engine = -1;          // -1: the tasks have the default cost and engine of their kinds
  bool is_collective = false;
};

// The cost of a task that belongs to no operator call, such as a generated kernel or a copy by the driver. In
// nanoseconds.
struct DefaultCosts {
  uint64_t host_launch = 0;
  uint64_t launch = 0;
  uint64_t link_latency = 0;
  double memory_time = 0;  // nanoseconds per byte
  double link_time = 0;
  int copy_engine = 0;
  int engines = 1;  // of each device
};

// One task of the device. Times are nanoseconds of the clock of the device's events, which shows the chip's time.
struct TaskTiming {
  int64_t call = -1;  // operator call that enqueued it, or whose node a graph replays; -1: none
  int kind = 0;       // orTaskKind
  int device = 0;
  uint32_t queue = 0;
  uint64_t ticket = 0;
  uint64_t bytes = 0;  // of a copy or fill; sum over the operands of a kernel
  uint64_t graph_launch = 0;
  uint64_t node = 0;
  bool is_first = false;   // the first task of its call
  std::string name;        // of a kernel
  uint64_t host_time = 0;  // time of the host to enqueue it
  int engine = -1;         // index in its device; -1: none
  uint64_t launched = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// A time source (openreg.h, orSubscribeTime) with the speed of a described chip. Python sets the cost of each operator
// call before the driver requires it, because tasks are deferred until the host waits. The cost of a call is divided
// among its tasks by their bytes. One thread starts and stops it; operator calls may be on any thread.
class ChipTimeSource {
 public:
  explicit ChipTimeSource(const DefaultCosts& defaults) : defaults_(defaults) {}
  // Calls stop() if necessary, but warns instead of throwing. The caller does not hold the GIL, because the destructor
  // blocks on kernels.
  ~ChipTimeSource();
  ChipTimeSource(const ChipTimeSource&) = delete;
  ChipTimeSource& operator=(const ChipTimeSource&) = delete;

  // Subscribes, and blocks until no task is queued. Throws c10::Error if the driver rejects the subscription. The
  // caller does not hold the GIL.
  void start();
  // Unsubscribes, and blocks until the deferred tasks are complete. Throws c10::Error if the driver reports an error.
  // The caller does not hold the GIL.
  void stop();
  // Sets the cost of a call's tasks. Thread-safe.
  void set_cost(int64_t call, const Cost& cost);

  // Returns the tasks in the order in which the host enqueued them. Valid after stop().
  const std::deque<TaskTiming>& entries() const { return entries_; }
  // Returns the times of the host's clock at the ends of its waits, in nanoseconds. Valid after stop().
  const std::vector<uint64_t>& waits() const { return waits_; }
  // Returns the time of the host's clock after start(), in nanoseconds.
  uint64_t begin() const { return begin_; }

 private:
  struct Call {
    Cost cost;
    uint64_t tasks = 0;  // enqueued outside a capture; `nodes` counts those of a capture
    uint64_t bytes = 0;
    uint64_t spent = 0;  // of the engine time, in nanoseconds
    uint64_t nodes = 0;
    uint64_t node_bytes = 0;
  };
  struct Node {
    int64_t call;
    uint64_t bytes;
    bool is_first;
  };

  void submit(const orTaskInfo& task, uint64_t& correlation);
  void capture(const orTaskInfo& task);
  void complete(const orTaskCompletion& task);
  void sync(const orSyncInfo& sync);
  uint64_t duration(const TaskTiming& entry);
  uint64_t default_duration(const TaskTiming& entry) const;
  int engine(const TaskTiming& entry);
  uint64_t host(TaskTiming& entry);

  const DefaultCosts defaults_;
  orSubscription_t subscription_ = nullptr;
  std::mutex mutex_;  // the driver serializes callbacks, but set_cost() is concurrent with them
  std::unordered_map<int64_t, Call> calls_;
  std::unordered_map<uint64_t, Node> nodes_;
  std::deque<TaskTiming> entries_;
  std::vector<uint64_t> waits_;
  uint64_t begin_ = 0;
  uint64_t newest_graph_launch_ = 0;
};

// Sets the operator call to which tasks of the calling thread belong from now on; -1: none.
void enter_call(int64_t call);

}  // namespace openreg::predict
