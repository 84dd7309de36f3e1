// SPDX-License-Identifier: BSD-3-Clause
// Running a kernel of PyTorch's for its checks alone.
//
// PyTorch leaves many checks of shapes, dtypes and options to the kernel, which runs here when the call has returned. A
// dry run calls the kernel at the launch, on the calling thread, with stand-ins for its operands: CPU tensors of the
// same sizes, strides, dtypes and sharing, whose bytes are zero. What it throws, the real run would throw as well,
// unless the data decide. It neither reads nor writes the device and waits for nothing, so the order of the device's
// work is the same with it and without.
#pragma once

#include <c10/util/FunctionRef.h>

#include <exception>

#include "openreg/runtime/alias_record.h"

namespace openreg::ops {

// Calls `kernel`, which opens its operands in the storages that it is given, and returns what it throws; null where it
// returns. The kernel runs on one thread, in inference mode, without the calling thread's dispatch modes, profilers and
// warnings: nobody but the caller sees the run. Thread-safe.
std::exception_ptr dry_run(c10::function_ref<void(runtime::AliasStorages&)> kernel);

}  // namespace openreg::ops
