// SPDX-License-Identifier: BSD-3-Clause
// The selection of a deterministic kernel at the launch. Some kernels of PyTorch write or add from several threads in
// no fixed order unless torch.use_deterministic_algorithms() is on, and read that flag when they run. The value at the
// call must count, as on a GPU. So the caller of the launch selects the kernel:
//
//   unstructured_overload<check_put, op::put_>(deterministic_kernel<SchemaOf<op::put_>, put_kernel>());
#pragma once

#include <ATen/Context.h>

#include "kernels/one_thread.h"

namespace openreg::ops {

// A kernel with the signature of kKernel that calls it on one thread, because the order is fixed then.
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
