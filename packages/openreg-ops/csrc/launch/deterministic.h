// SPDX-License-Identifier: BSD-3-Clause
// Kernels of PyTorch whose threads write or add in no fixed order, unless torch.use_deterministic_algorithms() is on.
// They ask when they run; on a device it is the launch that counts, so the launch chooses:
//
//   const auto put = described_form<check_put, op::put_>(repeatable<SchemaOf<op::put_>, put_kernel>());
#pragma once

#include <ATen/Context.h>

#include "kernels/one_thread.h"

namespace openreg::ops {

// kKernel on one thread, which has one order.
template <auto kKernel>
struct OnOneThread;

template <class Result, class... Args, Result (*kKernel)(Args...)>
struct OnOneThread<kKernel> {
  static Result call(Args... args) {
    const kernels::OneThread one_thread;
    return kKernel(args...);
  }
};

// kKernel as it has to be launched now, on the calling line.
template <class Kernel, Kernel* kKernel>
Kernel* repeatable() {
  return at::globalContext().deterministicAlgorithms() ? &OnOneThread<kKernel>::call : kKernel;
}

}  // namespace openreg::ops
