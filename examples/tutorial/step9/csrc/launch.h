// SPDX-License-Identifier: BSD-3-Clause
// How a kernel reaches the device and its operands.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "device.h"

namespace pocket {

// Puts a kernel into the current stream of a device and returns. The kernel must own whatever it uses, but no tensor of
// the caller.
void launch(c10::Device device, std::function<void()> kernel);

// A CPU tensor over the memory of a tensor, for kernels: it does not own the memory.
at::Tensor host_view(const at::Tensor& tensor);

}  // namespace pocket
