// SPDX-License-Identifier: BSD-3-Clause
// Plain values of the shadow memory, the record that the sanitizer keeps of each allocation (shadow.h): an access of a
// task, an allocation, and the red zone after it.
#pragma once

#include <cstdint>

#include "layout.h"
#include "ordering.h"
#include "vector_clock.h"

namespace openreg::sanitizer {

// A tensor or a range of memory that one task, or one operator on the CPU, reads or writes.
struct Access {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t ticket = 0;  // sequence number of the task in its stream
  uint32_t queue = 0;   // number of that stream (orTaskInfo::queue)
  uint32_t layout = 0;  // number in the LayoutTable
  uint32_t site = 0;    // number in the SiteTable: the task with its stacks; 0: there is no access
  bool reads = false;
  bool writes = false;
  bool uses_content = false;  // the task computes with the bytes that it reads, so something must have written them
  bool is_replay = false;     // the task belongs to a replay of a graph

  TaskId task() const { return {queue, ticket}; }
  TensorBytes bytes() const { return {begin, end, layout}; }
};

// An allocation from its beginning to its release. Stacks are numbers in the StackTable; 0 stands for none.
struct Life {
  uintptr_t begin = 0;
  uintptr_t end = 0;       // with the red zone; 0: there is no allocation
  int device = -1;         // -1: pinned memory of the host
  StreamName owner;        // the stream that the memory was allocated for, in whose order it is reused
  uint32_t allocated = 0;  // stack of the allocation
  uint32_t freed = 0;      // stack of the release
};

// The bytes after an allocation that a task has filled with runtime::kRedZoneByte (openreg/runtime/tool_hooks.h). A
// kernel that changes them has written beyond its operand.
struct RedZone {
  uintptr_t begin = 0;
  uintptr_t end = 0;  // 0: there is no red zone
  TaskId fill;        // the task that has filled it
  bool operator==(const RedZone&) const = default;
};

}  // namespace openreg::sanitizer
