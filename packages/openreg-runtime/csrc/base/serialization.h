// SPDX-License-Identifier: BSD-3-Clause
// What the backend knows of a tensor beyond its bytes, and how torch.save keeps it.
//
// PyTorch lets a backend attach an object to a tensor (source: c10::BackendMeta) and write named booleans of it into
// files (source: torch::jit::TensorBackendMetaRegistry). All that a program sets are kept; one has a meaning here, a
// hint: the tensor should stay in the fastest memory of the device between uses, as weights that every step reads.
//
// REAL HW: the allocator would place the tensor by it, or the driver would pin it in the cache (source: CUDA's access
// policy windows). The simulated device has one kind of memory, so the hint is kept and changes nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include "openreg/runtime/export.h"

namespace openreg::runtime {

// Sets or clears the hint. It belongs to the tensor, not to its memory: detach() and .data have it, views have not.
// Throws c10::Error unless the tensor is on this device.
OPENREG_RUNTIME_API void set_resident(const at::Tensor& tensor, bool resident);
// Whether the hint is set; false for tensors of other devices.
OPENREG_RUNTIME_API bool is_resident(const at::Tensor& tensor);

}  // namespace openreg::runtime
