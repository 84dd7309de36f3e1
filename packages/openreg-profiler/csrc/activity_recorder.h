// SPDX-License-Identifier: BSD-3-Clause
// What happens on the device, written down while a profile runs: an observer of the driver (openreg.h) that takes
// notes.
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

// A task of a stream, from its launch to its end. Times are nanoseconds: `launched` and `accepted` of the host's steady
// clock, `begin` and `end` of the device's, which is the same one unless OPENREG_SCHEDULE_SEED makes it virtual.
struct Task {
  uint64_t launched = 0;  // when the launch reached the device ...
  uint64_t accepted = 0;  // ... and when it was written down
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes = 0;                 // of a copy or fill
  uint64_t ticket = 0;                // its place in the queue
  uint64_t graph_launch = 0;          // number of the launch of a graph that it belongs to; 0: of none
  const std::string* name = nullptr;  // of a kernel
  const void* destination = nullptr;  // of a copy or fill
  const void* source = nullptr;       // of a copy; null: pageable memory that was read at the launch
  uint64_t waited_ticket = 0;         // of an event wait, in the queue ...; of a semaphore wait, the value
  uint32_t waited_queue = 0;          // ... that it waits for
  uint32_t queue = 0;
  orStream_t stream = nullptr;
  Origin origin;
  int32_t thread = 0;  // of the launch, as the system numbers it
  int16_t device = 0;
  int8_t engine = -1;  // -1: needed none
  uint8_t kind = 0;    // an orTaskKind
  bool is_done = false;
  bool was_skipped = false;  // not run, because its device had failed before
  bool has_failed = false;
};

// Memory that was given back while the profile ran, so that addresses in it are known all the same.
struct Released {
  orMemoryType type;
  int device;
  const char* begin;
  const char* end;
};

// One recording. Made on one thread, started and stopped once; what it has is read after stop(). Notes are taken under
// the device's lock, on the threads that launch and on the engines'. It is owned by a shared pointer, and stays for
// ever where the device may still call it: when the process ends in the middle of it, and in a forked child.
class Recorder {
 public:
  // Throws c10::Error where the device cannot be used, as in a forked child of a process that did.
  static std::shared_ptr<Recorder> start();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() = default;

  // Ends it. Waits until what was launched meanwhile is done, without the GIL. Returns what went wrong, or nothing;
  // then the recording is complete. The second call does nothing.
  std::string stop();
  // The same without waiting, for processes that end: what is recorded is lost.
  static void abandon_all() noexcept;
  // Whether any recording has begun and not ended.
  static bool is_any_running() noexcept;

  // A number of its own, which no other recording of the process has.
  uint64_t number() const { return number_; }
  const std::deque<Task>& tasks() const { return tasks_; }
  const std::vector<Released>& released() const { return released_; }

 private:
  Recorder();
  static void on_submit(void* user, const orTaskInfo* info, uint64_t* correlation);
  static void on_complete(void* user, const orTaskCompletion* completion);
  static void on_memory(void* user, const orMemoryInfo* info);
  const std::string* keep(const char* name);

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };

  const uint64_t number_;
  int32_t process_ = 0;
  orSubscription_t subscription_ = nullptr;
  std::deque<Task> tasks_;  // addresses in it stay: the device gives them back with `complete`
  std::vector<Released> released_;
  // A kernel's name lives as long as the kernel, which may have been generated and thrown away.
  std::unordered_set<std::string, Hash, std::equal_to<>> names_;
};

}  // namespace openreg::profiler
