// SPDX-License-Identifier: BSD-3-Clause
// Compares each access to memory with earlier ones, and records wrong ones as findings. The Sanitizer (sanitizer.h)
// passes the reports of the driver, of the allocators and of PyTorch to it.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "access.h"
#include "finding.h"
#include "host_tensor.h"
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

// The red zone of an operand (the filled bytes after its allocation, access.h), which is compared with
// runtime::kRedZoneByte when the task is complete.
struct WatchedZone {
  RedZone zone;
  Access access;  // of the task to the operand
  Life life;      // of the operand's allocation
};

// The state of an observation, which lasts from start() to stop(), and the findings of the process. The caller holds
// the sanitizer's mutex. No function calls the driver, an allocator of tensors, or Python. Functions for reports of the
// driver and of the caching allocator run on the reporting thread, because they read its LaunchContext and its
// runtime::CallReason.
class AccessChecker {
 public:
  // Begins an observation, without the memory and the order of tasks of an earlier one. A wrong access like that of an
  // earlier finding starts a new finding. `default_streams` are those of the devices, by index.
  void start(std::vector<orStream_t> default_streams);
  // Ends the observation and forgets memory and graphs. Findings stay.
  void stop();

  // Take a report of the driver (orSubscriber in openreg.h) that a task was enqueued, that it is complete, or that it
  // was captured. submit() returns the red zones that complete() compares.
  std::vector<WatchedZone> submit(const orTaskInfo& task);
  void complete(const std::vector<WatchedZone>& zones);
  void capture(const orTaskInfo& task);
  // Takes a report of the driver that tasks and the host were ordered. Parameters are those of Ordering::synchronize().
  void synchronize(const orSyncInfo& sync, bool is_helper, bool is_implicit);
  // Takes a report of the driver that a region (memory of the driver, such as a segment of the caching allocator) was
  // allocated or is about to be released.
  void region_event(const orMemoryInfo& memory);
  // Takes a report of the caching allocator of device memory.
  void allocator_event(const runtime::MemoryEvent& event);

  // Adds an allocation from before start(). Its content counts as written. `is_private` is true in a private pool, that
  // of a graph or of a MemPool, whose memory may be used after it was freed.
  void add_existing(const Life& life, bool is_private);
  // Adds pinned memory with the stack of its allocation.
  void allocate_pinned(uintptr_t begin, size_t size, uint32_t stack);
  // Forgets the accesses to pinned memory that is about to be released.
  void release_pinned(uintptr_t begin);
  // Returns true if a red zone may be filled in the new allocation at the address: no other stream uses the memory.
  bool may_fill_red_zone(uintptr_t address) const { return shadow_.is_unused(address); }

  // Checks accesses that are no task, such as a transfer between processes, after the newest task of `stream`; see
  // runtime::report_access().
  void check_transfer(const char* name, c10::Stream stream, const runtime::Operands& operands);
  // Returns true if the host has waited for all tasks that conflict with an access to pinned memory.
  bool is_host_ordered(const HostTensor& tensor, bool writes);
  // Records the findings of an access of an operator on the CPU to pinned memory.
  void check_host_access(const char* operation, const HostTensor& tensor, bool writes, uint32_t stack);
  // Records a finding: an operator on the CPU reads a value that was computed from poisoned memory.
  void report_poison(const char* operation, const HostTensor& tensor, uint32_t stack);

  FindingList& findings() { return findings_; }
  const Site& site(uint32_t number) const { return sites_.site(number); }
  const TensorLayout& layout(uint32_t number) const { return layouts_.layout(number); }
  // Returns the number of accesses in the shadow memory (shadow.h).
  size_t shadow_size() const { return shadow_.size(); }

 private:
  // An operand of a captured task.
  struct CapturedOperand {
    uint32_t layout = 0;
    uint64_t generation = 0;  // of its allocation at the capture; 0: unknown
    RedZone red_zone;
  };
  // A task of a graph. Each replay of the graph submits it.
  struct CapturedTask {
    uint32_t stack = 0;  // of the capture
    runtime::CallReason reason = runtime::CallReason::kProgram;
    std::vector<CapturedOperand> operands;
  };

  const CapturedTask* find_captured(const orTaskInfo& task) const;
  Site site_of(const orTaskInfo& task);
  std::vector<WatchedZone> check_launch(const orTaskInfo& task, const VectorClock& clock);
  std::vector<WatchedZone> check_replay(const orTaskInfo& task, const CapturedTask& captured, const VectorClock& clock);
  uint32_t intern_layout(const orOperand& operand, size_t index);
  bool is_copy_to_host(const orTaskInfo& task) const;
  bool uses_content(const orTaskInfo& task, size_t index, const Access& access) const;
  void watch(const RedZone& zone, const Access& access, std::vector<WatchedZone>& zones) const;
  void free_memory(uintptr_t address);
  void report(const Violation& violation);
  void report_all(const std::vector<Violation>& violations);

  LayoutTable layouts_;
  Ordering ordering_;
  Shadow shadow_{layouts_, ordering_};
  SiteTable sites_;
  OperatorUses uses_;
  std::map<uint64_t, CapturedTask> captured_tasks_;  // by node number of the driver
  FindingList findings_;
};

}  // namespace openreg::sanitizer
