// SPDX-License-Identifier: BSD-3-Clause
// Metadata that the backend attaches to a tensor, and its serialization by torch.save.
//
// PyTorch lets a backend attach an object to a tensor (source: c10::BackendMeta) and write named booleans of it into
// files (source: torch::jit::TensorBackendMetaRegistry). This backend keeps all names that a program sets. It defines
// one of them itself, the resident hint. The hint means that the tensor should stay in the device's fastest memory
// between uses, which suits weights that every step reads.
//
// REAL HW: the allocator would place the tensor by this hint, or the driver would pin it in the cache (source: CUDA's
// access policy windows). The simulated device has one kind of memory, so the hint is stored and changes nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Sets or clears the resident hint. The hint belongs to the tensor, not to its memory, so that detach() and .data copy
// it, but views do not. Throws c10::Error if the tensor is not on an openreg device.
OPENREG_RUNTIME_API void set_resident(const at::Tensor& tensor, bool resident);
// Returns true if the resident hint is set. Returns false for tensors of other device types.
OPENREG_RUNTIME_API bool is_resident(const at::Tensor& tensor);

}  // namespace openreg::runtime
