// SPDX-License-Identifier: BSD-3-Clause
// The sanitizer: a subscriber of the driver and an observer of the caching allocator, which compares each access of a
// task with the earlier ones to the same memory.
#pragma once

#include <c10/core/Stream.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "layout.h"
#include "openreg.h"
#include "openreg/runtime/memory_observer.h"
#include "openreg/runtime/operands.h"
#include "openreg/runtime/tool_hooks.h"
#include "operator_uses.h"
#include "ordering.h"
#include "shadow.h"
#include "sites.h"

namespace openreg::sanitizer {

// One finding, with the number of times that it happened.
struct Finding {
  Conflict conflict;
  StreamName first_stream;
  StreamName second_stream;
  uint64_t count = 1;
};

// The settings of the process on which the meaning of an observation depends.
struct ProcessSettings {
  bool launches_block = false;  // OPENREG_LAUNCH_BLOCKING
  bool is_poisoned = false;     // OPENREG_POISON
};

// The one sanitizer of the process. All state is guarded by one mutex, a leaf: while a thread holds it, it calls
// neither the driver, nor an allocator of tensors, nor Python. Callbacks of the driver and of the allocator take it
// under the locks of these.
class Sanitizer {
 public:
  static Sanitizer& instance();

  // Begins to observe, in a process with these settings. Throws c10::Error if the device is unusable, as in a forked
  // child. The caller holds no GIL, because the driver's lock may be held by a thread that waits for it. Not to be
  // called twice without stop().
  void start(const ProcessSettings& settings);
  // Ends it and forgets the shadow; findings stay. Waits until all tasks that were seen are complete, so the caller
  // holds no GIL.
  void stop();
  // Observes nothing from now on and leaves the subscriptions open, because the process exits. Thread-safe.
  void abandon() noexcept;
  bool is_active() const noexcept { return is_active_.load(std::memory_order_relaxed); }

  // Blocks until all tasks that were seen are complete, because red zones are compared then. This orders nothing in the
  // program's name. The caller holds no GIL.
  void settle();

  // Adds an allocation from before start(); its content counts as written.
  void add_existing(uintptr_t address, size_t size, int device, int64_t stream, bool is_private);
  // Counts findings that repeat earlier ones as new from now on, for a new session of Python. Thread-safe.
  void renew();

  // Returns the findings from the number `begin` on, at most kFindings altogether. Thread-safe.
  std::vector<Finding> findings(size_t begin);
  size_t finding_count();
  std::vector<uint64_t> counts();
  // Returns a copy of a site and of a layout. Thread-safe.
  Site site(uint32_t number);
  Layout layout(uint32_t number);
  // Returns the number of accesses in the shadow.
  size_t shadow_size();

  // Compares an access of an operator of the host to pinned memory. Takes the stack only if something is wrong. Returns
  // true if the host has waited for all tasks that it conflicts with.
  bool host_access(const char* operation, const void* begin, size_t size, const Layout& layout, bool writes);
  // Adds a finding: an operator has given the host a value that was computed from poisoned memory.
  void poison_on_host(const char* operation, const void* begin, size_t size, const Layout& layout);
  // Returns true if the red zone of a new allocation may be filled. Thread-safe.
  bool fills_red_zone(const void* address);
  // Returns true if the address may be pinned memory. Thread-safe and cheap.
  bool may_be_pinned(const void* address) const noexcept {
    const auto value = reinterpret_cast<uintptr_t>(address);
    return value >= pinned_begin_.load(std::memory_order_relaxed) &&
           value < pinned_end_.load(std::memory_order_relaxed);
  }

  static constexpr size_t kFindings = 100000;

 private:
  Sanitizer() = default;
  // The red zones to compare when a task is complete.
  struct ZoneCheck {
    struct Zone {
      RedZone bytes;
      Access access;
      Life life;
    };
    bool is_replay = false;
    std::vector<Zone> zones;
  };

  static void on_submit(void* user, const orTaskInfo* task, uint64_t* correlation);
  static void on_complete(void* user, const orTaskCompletion* completion);
  static void on_capture(void* user, const orTaskInfo* task);
  static void on_sync(void* user, const orSyncInfo* sync);
  static void on_driver_memory(void* user, const orMemoryInfo* memory);
  void on_memory(const runtime::MemoryEvent& event);
  void on_pinned(void* address, size_t size);
  void on_access(const char* name, c10::Stream stream, const runtime::Operands& operands);

  // Returns the check that `complete` makes, or null if there is none.
  std::unique_ptr<ZoneCheck> submit(const orTaskInfo& task);
  void complete(const ZoneCheck& check);
  runtime::CallReason reason_of(const orTaskInfo& task) const;
  void add_operands(const orTaskInfo& task, const Site& site, const VectorClock& clock,
                    std::vector<Conflict>& conflicts, ZoneCheck& check);
  uint32_t layout_of(const orOperand& operand, size_t index);
  // Adds what is wrong. Returns true if one is new, and then the caller reports it without the mutex.
  bool add(std::vector<Conflict>& conflicts);

  struct Node {  // of a capture
    uint32_t stack;
    runtime::CallReason reason;
    std::vector<std::pair<uintptr_t, uint64_t>> generations;
    std::vector<RedZone> red_zones;  // of the operands
  };

  std::mutex control_;  // serializes start() and stop()
  std::mutex mutex_;
  std::atomic<bool> is_active_{false};
  std::atomic<uintptr_t> pinned_begin_{UINTPTR_MAX};
  std::atomic<uintptr_t> pinned_end_{0};
  orSubscription_t subscription_ = nullptr;
  uint64_t memory_subscription_ = 0;
  bool launches_block_ = false;

  LayoutTable layouts_;
  Ordering ordering_;
  Shadow shadow_{layouts_, ordering_};
  SiteTable sites_;
  OperatorUses uses_;
  std::map<uint64_t, Node> nodes_;
  std::vector<Finding> findings_;
  std::map<std::tuple<FindingKind, uint32_t, uint32_t>, size_t> known_;
};

// Calls openreg_sanitizer's function for new findings on the main thread, at its next step of Python. Thread-safe;
// needs no GIL.
void request_report() noexcept;

}  // namespace openreg::sanitizer
