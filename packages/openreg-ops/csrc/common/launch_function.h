// SPDX-License-Identifier: BSD-3-Clause
// Launching a plain function that writes into outputs made on the host: the shape of a hand-written operator.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "common/launch_on.h"

namespace openreg::ops {

using MaybeTensor = const std::optional<at::Tensor>&;

// Launches `kernel(args...)` on aliases of the tensors among the arguments, on the current stream of the device. The
// types of the kernel's parameters say how the launch owns each argument (see common/arguments.h).
template <class... Parameters, class... Args>
void launch_function(const char* name, c10::Device device, void (*kernel)(Parameters...), Args&&... args) {
  launch_kernel<void (*)(Parameters...), Parameters...>(name, device, kernel, args...);
}

// A new tensor on the current device if it is wanted, else an undefined one, which kernels leave alone.
inline at::Tensor output_if(bool wanted, c10::IntArrayRef sizes, const c10::TensorOptions& options) {
  return wanted ? make_output(sizes, {}, options) : at::Tensor();
}

inline void copy_if_defined(at::Tensor& destination, const at::Tensor& source) {
  if (destination.defined()) {
    destination.copy_(source);
  }
}

// An optional operand as kernels of PyTorch take it: undefined where it is absent.
inline at::Tensor value_or_undefined(MaybeTensor tensor) {
  return tensor.value_or(at::Tensor());
}

inline bool is_given(MaybeTensor tensor) {
  return tensor.has_value() && tensor->defined();
}

}  // namespace openreg::ops
