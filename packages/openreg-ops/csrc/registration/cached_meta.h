// SPDX-License-Identifier: BSD-3-Clause
// The registration of operators by name alone, for those that have a CPU kernel which only PyTorch's dispatcher can
// call, and no meta function. These are operators on quantized tensors and those of torch.ops.quantized.
//
//   cached_meta(library, {"relu", "relu_", "max_pool2d"});
//
// Each call has a key, which contains all that a kernel can read on the host: sizes, strides, dtypes and quantizers of
// the operands, which of them share memory, packed weights, and all other arguments. The first call with a key is
// synchronous: it rethrows the kernel's exception and caches the metadata of each result. Later calls with that key
// allocate their outputs by the cached metadata and launch asynchronously. Some calls are never cached, so that each
// one is synchronous. Their outputs depend on data (an index that is a mask, a generator), they change the shape or the
// quantizer of an operand, or a result cannot be allocated by metadata alone, such as a view of an operand or a tensor
// with a per-channel quantizer. A capturing stream accepts only calls whose key is in the cache.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/ArrayRef.h>
#include <torch/library.h>

namespace openreg::ops {

// Registers operators by the names of PyTorch's schemas, "name.overload". The kernel is that of QuantizedCPU if an
// operand is quantized, else that of CPU.
void cached_meta(torch::Library& library, c10::ArrayRef<const char*> names);

// Executes one call as the kernels of cached_meta() do, for boxed kernels that first check something else. Throws
// c10::Error if the call must be synchronous and the stream is capturing or the sync debug mode forbids it.
void run_cached_meta(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace openreg::ops
