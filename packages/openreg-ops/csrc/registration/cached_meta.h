// SPDX-License-Identifier: BSD-3-Clause
// The short form for operators that are a name here: PyTorch has a kernel for the CPU that only its dispatcher reaches,
// and what comes out nobody describes. So all operators on quantised tensors and of torch.ops.quantized are declared.
//
//   rehearsed(library, {"relu", "relu_", "max_pool2d"});
//
// The first call of its kind is a rehearsal: the host waits for the kernel, throws on the calling line what it throws,
// and writes down what came out. Later calls of this kind make their outputs after that and are launched as any other.
// A kind is all that a kernel can look at on the host: sizes, strides, dtypes and quantisers of the operands, which of
// them share memory, packed weights, and all other arguments. Calls whose outputs depend on data (an index that is a
// mask), or that change the shape or the quantiser of an operand, are a rehearsal each time. A stream that captures
// records later calls only.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/ArrayRef.h>
#include <torch/library.h>

namespace openreg::ops {

// Declares operators by the names that PyTorch's schemas have, "name.overload". The kernel is that of QuantizedCPU
// where an operand is quantised, else that of CPU.
void rehearsed(torch::Library& library, c10::ArrayRef<const char*> names);

// The same as a boxed kernel, for who has something to check first.
void run_rehearsed(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace openreg::ops
