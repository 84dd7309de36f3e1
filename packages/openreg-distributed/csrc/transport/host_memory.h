// SPDX-License-Identifier: BSD-3-Clause
// Device memory as the transport addresses it.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::distributed {

// Returns a CPU tensor over the bytes of a contiguous device tensor, through the kernel view and without ownership.
// The transport may use it while the tensor's stream waits for the transport.
at::Tensor host_view(const at::Tensor& tensor);
// Same as host_view(), except that the dtype is uint8 and the tensor has one dimension: data movement needs no dtype.
at::Tensor host_bytes(const at::Tensor& tensor);

}  // namespace openreg::distributed
