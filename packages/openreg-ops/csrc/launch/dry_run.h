// SPDX-License-Identifier: BSD-3-Clause
// Dry runs: calls of PyTorch's kernels for their checks alone.
//
// PyTorch leaves many checks of shapes, dtypes and options to the kernel, which runs on this device after the call has
// returned. A dry run calls the kernel at the launch, on the calling thread, with stand-ins for its operands. These are
// CPU tensors with the operands' sizes, strides, dtypes and shared storages, whose bytes are zero. An exception of the
// dry run is the one that the real run would throw, unless the check depends on the operands' values. A dry run does
// not access the device's memory and does not block, so it does not change the order of the device's tasks.
#pragma once

#include <c10/util/FunctionRef.h>

#include <exception>

#include "openreg/runtime/alias_descriptor.h"

namespace openreg::ops {

// Calls `kernel`, and returns the exception that it throws, or null. The kernel makes its operands' aliases over the
// storages passed to it, which are stand-ins here (runtime::AliasStorages). It runs on the calling thread,
// and leaves no OpenMP threads, in inference mode. Dispatch modes, profilers and warnings of the calling thread are
// off, so that only the caller observes the run. Thread-safe.
std::exception_ptr dry_run(c10::function_ref<void(runtime::AliasStorages&)> kernel);

}  // namespace openreg::ops
