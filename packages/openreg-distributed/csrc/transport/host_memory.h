// SPDX-License-Identifier: BSD-3-Clause
// Memory of the device as the transport sees it.
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg::distributed {

// A tensor of the CPU over the bytes of a contiguous tensor of the device, through the kernel view; without ownership.
// The transport may use it while the stream waits for the transport.
at::Tensor host_view(const at::Tensor& tensor);
// The same as bytes: what is only moved may be of any dtype.
at::Tensor host_bytes(const at::Tensor& tensor);

}  // namespace openreg::distributed
