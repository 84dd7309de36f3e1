// SPDX-License-Identifier: BSD-3-Clause
// REAL HW: the engines of the device execute tasks, and an interrupt reports their completion to the driver.
#include "engine/execute.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "engine/copy_memory.h"

namespace openreg::driver {

namespace {

// Sets `failure` if the kernel fails.
void run_kernel(const orKernel& kernel, bool skip, Counters& counters, std::string& failure) {
  if (!skip && kernel.function != nullptr) {
    char reason[768];
    reason[0] = 0;  // the rest is left as it is, because clearing it takes longer than a launch
    const orError_t code = kernel.function(kernel.state, reason, sizeof(reason));
    reason[sizeof(reason) - 1] = 0;  // the kernel may not have terminated it
    ++counters.launches;
    if (code != orSuccess) {
      failure = join("kernel '", kernel.name, "' failed: ", reason[0] != 0 ? reason : orGetErrorString(code));
    }
  }
  if (kernel.release != nullptr) {
    kernel.release(kernel.state);
  }
}

void run_copy(const Task::Copy& copy, bool skip, Counters& counters) {
  if (!skip) {
    copy_memory(copy.destination, copy.source, copy.size);
    ++counters.copies;
    counters.bytes_copied += copy.size;
  }
  std::free(copy.staging);
}

void run_fill(const Task::Fill& fill, bool skip, Counters& counters) {
  if (!skip) {
    std::memset(fill.destination, fill.value, fill.size);
    ++counters.copies;
    counters.bytes_copied += fill.size;
  }
}

// Returns the text of the task's injected fault.
std::string describe_fault(const Task& task) {
  if (task.injected == Task::Injected::kDeviceLoss) {
    return "the device was lost by an injected fault";
  }
  const char* const advice = " failed: an injected fault (OPENREG_FAULTS or orSetFaults())";
  return task.kind == Task::Kind::kKernel ? join("kernel '", task.kernel.name, "'", advice)
         : task.kind == Task::Kind::kCopy ? join("a copy of ", task.copy.size, " bytes", advice)
                                          : join("a fill of ", task.fill.size, " bytes", advice);
}

}  // namespace

bool& is_engine_thread() {
  thread_local bool value = false;
  return value;
}

void check_not_engine_thread() {
  OPENREG_DRIVER_CHECK(!is_engine_thread(), orErrorNotSupported,
                       "called by a kernel, which must not wait for other work; wait on the host instead");
}

std::string execute(const Task& task, bool skip, Counters& counters) noexcept {
  std::string failure;
  if (!skip && task.injected != Task::Injected::kNothing) {
    skip = true;
    failure = describe_fault(task);
  }
  switch (task.kind) {
    case Task::Kind::kKernel:
      run_kernel(task.kernel, skip, counters, failure);
      break;
    case Task::Kind::kHostFunction:
      if (!skip) {
        task.host.function(task.host.user_data);
      }
      break;
    case Task::Kind::kCopy:
      run_copy(task.copy, skip, counters);
      break;
    case Task::Kind::kFill:
      run_fill(task.fill, skip, counters);
      break;
    case Task::Kind::kWait:
    case Task::Kind::kSemaphoreWait:
    case Task::Kind::kTimestamp:
    case Task::Kind::kDelay:
      break;  // these need no engine; see CommandProcessor
  }
  return failure;
}

}  // namespace openreg::driver
