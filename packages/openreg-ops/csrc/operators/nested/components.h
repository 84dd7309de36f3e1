// SPDX-License-Identifier: BSD-3-Clause
// Nested tensors of strided layout: a buffer on the device with one dimension, and on the host three tensors of int64
// that say where in it each component lies (sizes and strides, one row per component, and offsets). So the host knows
// all shapes without asking the device, and no operator on them has to wait.
//
// PyTorch's functions for such tensors on the CPU are loops over ordinary operators, most of them, and serve every
// device (strided.cpp). What reads the buffer itself, or would cost many launches, is a launch of our own over aliases
// of the components.
#pragma once

#include <ATen/NestedTensorImpl.h>

#include <vector>

#include "launch/launch.h"

namespace openreg::ops {

inline const at::native::NestedTensorImpl& nested(const at::Tensor& tensor) {
  return *at::native::get_nested_tensor_impl(tensor);
}

// Whether it is a nested tensor with components, which have dimensions and lie one behind the other without gaps.
inline bool is_packed(const at::Tensor& tensor) {
  return tensor.is_nested() && nested(tensor).get_nested_sizes().dim() == 2 && nested(tensor).size(0) > 0 &&
         tensor.dim() > 1 && at::native::nested_tensor_impl_is_contiguous(&nested(tensor));
}

// A new nested tensor on the current device, packed, whose components have the rows of `sizes`; its content is
// undefined. `sizes` is on the host and belongs to it from then on.
inline at::Tensor make_nested(const at::Tensor& sizes, const c10::TensorOptions& options) {
  const int64_t count = sizes.prod(1).sum().item<int64_t>();
  return at::detail::make_tensor<at::native::NestedTensorImpl>(make_output({count}, {}, options.layout(c10::kStrided)),
                                                               sizes);
}

// The largest size in each dimension of the components, of a tensor that is_packed().
inline std::vector<int64_t> largest_sizes(const at::Tensor& tensor) {
  const at::Tensor largest = nested(tensor).get_nested_sizes().amax(0);
  const auto* sizes = largest.const_data_ptr<int64_t>();
  return std::vector<int64_t>(sizes, sizes + largest.numel());
}

// Launches `kernel(outputs, arguments...)`, where `outputs` are the components of a nested tensor that it writes, as a
// TensorList. Types are those of the other parameters, and say how the launch owns each argument.
template <class... Parameters, class Kernel>
void launch_on_components(const Operator& op, const at::Tensor& output, Kernel kernel,
                          const std::remove_reference_t<Parameters>&... args) {
  constexpr std::array<orAccess, sizeof...(Parameters) + 1> kAccesses = accesses_by_type<OutputList, Parameters...>();
  const std::vector<at::Tensor> components = output.unbind();
  launch_owned<OutputList, Parameters...>(op, output.device(), sync_policy_of(op, args...), kAccesses.data(), kernel,
                                          OutputList{components}, args...);
}

}  // namespace openreg::ops
