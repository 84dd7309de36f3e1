// SPDX-License-Identifier: BSD-3-Clause
// The sanitizer of the process. It subscribes to the driver, to the allocators and to PyTorch's operators, and passes
// each report under a mutex to the AccessChecker, which finds wrong uses of memory.
#pragma once

#include <c10/core/Stream.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "access_checker.h"
#include "openreg.h"
#include "openreg/runtime/memory_observer.h"
#include "openreg/runtime/operands.h"

namespace openreg::sanitizer {

// The settings of the process on which the meaning of an observation depends.
struct ProcessSettings {
  bool launches_block = false;  // OPENREG_LAUNCH_BLOCKING
  bool is_poisoned = false;     // OPENREG_POISON
};

// The one sanitizer of the process. A mutex guards the AccessChecker. A thread that holds it calls neither the driver,
// nor an allocator of tensors, nor Python, because callbacks lock it under the locks of the driver and of the
// allocators. Only start() calls PyTorch meanwhile: it asks the dispatcher for the names of the operators. All
// functions are thread-safe.
class Sanitizer {
 public:
  static Sanitizer& instance();

  // Begins to observe in a process with these settings. Throws c10::Error if the device is unusable, as in a forked
  // child. The caller does not hold the GIL, because the thread that holds the driver's lock may be waiting for it.
  // Must not be called again before stop().
  void start(const ProcessSettings& settings);
  // Ends the observation and forgets the shadow memory. Findings stay. Blocks until all tasks that were observed are
  // complete, so the caller does not hold the GIL.
  void stop();
  // Observes nothing from now on and leaves the subscriptions open. Called when the process is about to exit.
  void abandon() noexcept;
  bool is_active() const noexcept { return is_active_.load(std::memory_order_relaxed); }

  // Blocks until all tasks that were enqueued are complete, because red zones (bytes after an allocation that no kernel
  // may change, access.h) are compared then. Skips a device on which the calling thread's current stream is capturing,
  // and ignores a device that has failed. The wait is no part of the program, so that it orders nothing. The caller
  // does not hold the GIL.
  void settle();

  // Adds an allocation from before start(). Its content counts as written. `is_private` is true in a private pool, that
  // of a graph or of a MemPool, whose memory may be used after it was freed.
  void add_existing(uintptr_t address, size_t size, int device, int64_t stream, bool is_private);

  // Checks an access of an operator on the CPU to pinned memory. Captures the Python stack only if something is wrong,
  // because that acquires the GIL. Returns true if the host has waited for all tasks that conflict with the access.
  bool host_access(const char* operation, const HostTensor& tensor, bool writes);
  // Adds a finding: an operator copies a value to the host that was computed from poisoned memory.
  void poison_on_host(const char* operation, const HostTensor& tensor);
  // Returns true if the address may be that of pinned memory. Takes no lock.
  bool may_be_pinned(const void* address) const noexcept {
    const auto value = reinterpret_cast<uintptr_t>(address);
    return value >= pinned_begin_.load(std::memory_order_relaxed) &&
           value < pinned_end_.load(std::memory_order_relaxed);
  }

  // Calls FindingList::renew(), after which repetitions of old findings are new findings.
  void renew();
  // Return the findings from the number `begin` on, the number of findings, and for each the number of its violations.
  std::vector<Finding> findings(size_t begin);
  size_t finding_count();
  std::vector<uint64_t> counts();
  // Return a copy of a site (the place in the program that makes an access, sites.h) and of a layout (dtype, sizes and
  // strides, layout.h). An access of a finding stores both by number.
  Site site(uint32_t number);
  TensorLayout layout(uint32_t number);
  // Returns the number of accesses in the shadow memory.
  size_t shadow_size();

 private:
  // Locks the checker. The destructor unlocks it, and then requests a report if there is a new finding.
  class LockedChecker {
   public:
    explicit LockedChecker(Sanitizer& sanitizer) : checker_(sanitizer.checker_), lock_(sanitizer.mutex_) {}
    LockedChecker(const LockedChecker&) = delete;
    LockedChecker& operator=(const LockedChecker&) = delete;
    ~LockedChecker();
    AccessChecker* operator->() { return &checker_; }

   private:
    AccessChecker& checker_;
    std::unique_lock<std::mutex> lock_;
  };

  Sanitizer() = default;
  LockedChecker lock() { return LockedChecker(*this); }

  void subscribe();
  static void set_hooks();

  // Callbacks of the driver, the caching allocator, and the runtime's ToolHooks. A region is memory of the driver, such
  // as a segment of the caching allocator. may_fill_red_zone() returns true if no other stream uses the memory of a new
  // allocation, so that the allocator may fill the red zone after it.
  static void on_submit(void* user, const orTaskInfo* task, uint64_t* correlation);
  static void on_complete(void* user, const orTaskCompletion* completion);
  static void on_capture(void* user, const orTaskInfo* task);
  static void on_sync(void* user, const orSyncInfo* sync);
  static void on_region(void* user, const orMemoryInfo* memory);
  void on_allocator_event(const runtime::MemoryEvent& event);
  void on_pinned(void* address, size_t size);
  void on_transfer(const char* name, c10::Stream stream, const runtime::Operands& operands);
  bool may_fill_red_zone(const void* address);

  std::mutex control_;  // serializes start() and stop()
  std::mutex mutex_;
  AccessChecker checker_;  // guarded by mutex_
  std::atomic<bool> is_active_{false};
  std::atomic<uintptr_t> pinned_begin_{UINTPTR_MAX};  // a range that contains all pinned memory; empty at first
  std::atomic<uintptr_t> pinned_end_{0};
  orSubscription_t subscription_ = nullptr;
  uint64_t memory_subscription_ = 0;
  bool launches_block_ = false;
};

// Makes the main thread call openreg_sanitizer's function for new findings before it goes on in Python. Thread-safe;
// needs no GIL.
void request_report() noexcept;

}  // namespace openreg::sanitizer
