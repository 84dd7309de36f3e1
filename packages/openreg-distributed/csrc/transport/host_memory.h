// SPDX-License-Identifier: BSD-3-Clause
// CPU tensors over device memory, for the transport (the c10d backend that moves bytes between ranks, Gloo), which
// works on host memory.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::distributed {

// Returns a CPU tensor over the bytes of a contiguous device tensor, without ownership. Its address is in the kernel
// view, the mapping of device memory that kernels dereference. The transport may use it while the tensor's stream waits
// for the transport. Throws c10::Error if the tensor reaches beyond its storage (runtime::check_storage()).
at::Tensor host_view(const at::Tensor& tensor);
// Same as host_view(), except that the dtype is uint8 and the tensor has one dimension. It serves transfers without
// arithmetic, which need no dtype.
at::Tensor host_bytes(const at::Tensor& tensor);

}  // namespace openreg::distributed
