// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "openreg.h"

namespace openreg::predict {

// What a program told the device, in the order of the host.
struct Entry {
  enum class Kind { task, wait, host_waits_for_place, host_waits_for_device };
  Kind kind;
  int64_t call;  // which call of an operator the thread was in; -1: none
  int task;      // of a task: orTaskKind
  int device;
  uint32_t queue;  // of a task, or of the place that is waited for
  uint64_t ticket;
  uint64_t bytes;          // of a copy or fill; of a kernel those of its operands
  uint64_t graph_launch;   // 0: of none
  uint32_t waiting_queue;  // of a wait: the queue that waits
  std::string name;        // of a kernel
};

// An observer of the device: keeps an entry for each task, wait and synchronise, from its making until stop(). stop()
// and the destructor wait for what was seen, of which some may need Python: not to be called while the GIL is held.
class TaskLog {
 public:
  // Throws c10::Error where the device refuses the subscription.
  TaskLog();
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  void stop();
  // What was seen since the last time, by any thread.
  std::vector<Entry> take();

 private:
  void note(Entry entry);

  std::atomic<orSubscription_t> subscription_{nullptr};
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

// From now on this thread is in a call; -1: in none.
void enter_call(int64_t call);

}  // namespace openreg::predict
