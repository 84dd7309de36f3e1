// SPDX-License-Identifier: BSD-3-Clause
// Launches of PyTorch's kernels whose threads write or add in no fixed order unless
// torch.use_deterministic_algorithms() is on. Such a kernel reads that flag when it runs. On a device its value at the
// launch counts, so the launch selects the kernel:
//
//   unstructured_overload<check_put, op::put_>(deterministic_kernel<SchemaOf<op::put_>, put_kernel>());
#pragma once

#include <ATen/Context.h>

#include "kernels/one_thread.h"

namespace openreg::ops {

// Calls kKernel on one thread, which has a fixed order.
template <auto kKernel>
struct SingleThreaded;

template <class Result, class... Args, Result (*kKernel)(Args...)>
struct SingleThreaded<kKernel> {
  static Result call(Args... args) {
    const kernels::SingleThreadGuard one_thread;
    return kKernel(args...);
  }
};

// Returns kKernel, or its single-threaded variant if torch.use_deterministic_algorithms() is on now. The caller
// launches what this function returns.
template <class Kernel, Kernel* kKernel>
Kernel* deterministic_kernel() {
  return at::globalContext().deterministicAlgorithms() ? &SingleThreaded<kKernel>::call : kKernel;
}

}  // namespace openreg::ops
