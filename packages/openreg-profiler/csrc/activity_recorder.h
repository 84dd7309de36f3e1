// SPDX-License-Identifier: BSD-3-Clause
// A subscriber of the driver (orSubscribe() in openreg.h: callbacks for each task) that records the tasks of all
// devices while a profile runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "correlation.h"
#include "openreg.h"

namespace openreg::profiler {

// One task of a stream, from its launch to its end. Times are in nanoseconds: `launched` and `accepted` of the steady
// clock, `begin` and `end` of the device's. The device's clock is the steady clock except in simulated time
// (orSubscribeTime).
struct TaskRecord {
  uint64_t launched = 0;  // when the driver received the launch
  uint64_t accepted = 0;  // when on_submit() had written this record, before the launch returned
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes = 0;                 // of a copy or fill
  uint64_t ticket = 0;                // its sequence number in its stream
  uint64_t graph_launch = 0;          // number of the graph launch that it belongs to; 0: none
  const std::string* name = nullptr;  // of a kernel
  const void* destination = nullptr;  // of a copy or fill
  const void* source = nullptr;       // of a copy; null for pageable memory that was read at the launch
  uint64_t waited_ticket = 0;         // of an event wait: the ticket that ends it; of a semaphore wait: the value
  uint32_t waited_queue = 0;          // of an event wait: the number of the stream with that ticket
  uint32_t queue = 0;                 // number of its stream (orTaskInfo::queue), valid also after its destruction
  orStream_t stream = nullptr;
  CorrelationIds ids;  // operator and range that were open at the launch
  int32_t thread = 0;  // launching thread, by the operating system's id
  int16_t device = 0;
  int8_t engine = -1;  // -1: none
  uint8_t kind = 0;    // an orTaskKind
  bool is_done = false;
  bool was_skipped = false;  // not executed, because its device had failed before
  bool has_failed = false;
};

// Memory that was freed, or closed as an IPC import, during the recording. The driver does not know its type any more,
// so transfer_name() looks up addresses here.
struct FreedRange {
  orMemoryType type;
  int device;
  const char* begin;
  const char* end;
};

// One recording of the tasks of all devices. One thread starts and stops it, once. The driver's callbacks hold the
// mutex of its scheduler, and run on threads that launch and on engine threads. The deleter of the shared pointer leaks
// a recorder whose subscription is open, because the driver may still call it. That happens if the process exits during
// the recording, and in a forked child.
class ActivityRecorder {
 public:
  // Returns a recorder that has subscribed to the driver. Throws c10::Error if the device is unusable, as in a forked
  // child of a process that used it.
  static std::shared_ptr<ActivityRecorder> start();
  ActivityRecorder(const ActivityRecorder&) = delete;
  ActivityRecorder& operator=(const ActivityRecorder&) = delete;
  ~ActivityRecorder() = default;

  // Blocks until all tasks that were launched during the recording are complete. Releases the GIL while it blocks.
  // Returns an error message, or an empty string if the recording is complete. Does nothing after it has ended.
  std::string stop();
  // Discards all recordings without blocking. Called when the process is about to exit. Thread-safe.
  static void abandon_all() noexcept;
  // Returns true if any recording has begun and not ended. Thread-safe.
  static bool is_any_running() noexcept;

  // Returns the number of the recording, which is unique in the process. Thread-safe.
  uint64_t number() const { return number_; }
  // Returns the tasks, without event records, in the order of their launches. Valid after stop().
  const std::deque<TaskRecord>& tasks() const { return tasks_; }
  // Returns the memory that was freed during the recording. Valid after stop().
  const std::vector<FreedRange>& freed() const { return freed_; }

 private:
  ActivityRecorder();
  static void on_submit(void* user, const orTaskInfo* info, uint64_t* correlation);
  static void on_complete(void* user, const orTaskCompletion* completion);
  static void on_memory(void* user, const orMemoryInfo* info);
  // Returns a copy of a kernel's name that is valid as long as the recorder.
  const std::string* keep(const char* name);

  // A hash with which a set of strings finds a string_view without a copy.
  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };

  const uint64_t number_;
  int32_t process_ = 0;
  orSubscription_t subscription_ = nullptr;
  std::deque<TaskRecord> tasks_;  // a deque, because on_complete() receives the address of an element
  std::vector<FreedRange> freed_;
  // Copies of the kernels' names, because a generated kernel may be unloaded together with its name.
  std::unordered_set<std::string, StringHash, std::equal_to<>> names_;
};

}  // namespace openreg::profiler
