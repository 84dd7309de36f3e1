// SPDX-License-Identifier: BSD-3-Clause
#include "launch_context.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>

#include <array>
#include <exception>
#include <mutex>

#include "openreg/runtime/tool_hooks.h"
#include "stacks.h"

namespace openreg::sanitizer {

namespace {

// The stacks of the newest forward operators, by thread and sequence number of autograd. An autograd node has both
// numbers of the forward operator that created it. A hash table of fixed size: a new stack overwrites one with the same
// hash. Thread-safe.
class ForwardStacks {
 public:
  void add(uint64_t thread, uint64_t sequence, uint32_t stack) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ForwardStack& slot = slots_[slot_of(thread, sequence)];
    // The first operator with the number is the one that created the node; later ones need no gradient.
    if (slot.thread != thread || slot.sequence != sequence) {
      slot = {thread, sequence, stack};
    }
  }

  // Returns the number of the stack, or 0 if it is unknown.
  uint32_t find(uint64_t thread, uint64_t sequence) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const ForwardStack& slot = slots_[slot_of(thread, sequence)];
    return slot.thread == thread && slot.sequence == sequence ? slot.stack : 0;
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 16;
  struct ForwardStack {
    uint64_t thread = 0;
    uint64_t sequence = UINT64_MAX;
    uint32_t stack = 0;
  };
  static size_t slot_of(uint64_t thread, uint64_t sequence) { return (sequence ^ (thread << 12U)) % kSlots; }

  std::mutex mutex_;
  std::array<ForwardStack, kSlots> slots_{};
};

ForwardStacks& forward_stacks() {
  static auto* const stacks = new ForwardStacks;  // never destroyed: threads may launch while the process exits
  return *stacks;
}

}  // namespace

LaunchContext& launch_context() noexcept {
  thread_local LaunchContext context;
  return context;
}

void take_launch_context() noexcept {
  if (runtime::launch_context_is_fixed()) {
    return;
  }
  try {
    LaunchContext& context = launch_context();
    context.stack = StackTable::instance().gather();
    context.forward = 0;
    context.node.clear();
    if (const auto node = torch::autograd::get_current_node()) {
      context.node = node->name();
      context.forward = forward_stacks().find(node->thread_id(), node->sequence_nr());
    } else if (c10::GradMode::is_enabled() && context.stack != 0) {
      const uint64_t next = at::sequence_number::peek();
      if (next > 0) {
        forward_stacks().add(at::RecordFunction::currentThreadId(), next - 1, context.stack);
      }
    }
  } catch (const std::exception&) {
    launch_context().stack = 0;  // memory of the host is exhausted
  }
}

void take_allocation_context() noexcept {
  if (runtime::launch_context_is_fixed()) {
    return;
  }
  launch_context().allocation = StackTable::instance().gather();
}

bool is_helper_thread() noexcept {
  return Py_IsInitialized() == 0 || PyGILState_GetThisThreadState() == nullptr;
}

}  // namespace openreg::sanitizer
