// SPDX-License-Identifier: BSD-3-Clause
// Functions for nested tensors of strided layout. Such a tensor has a buffer of one dimension on the device, which
// contains its components. On the host it has three int64 tensors with the place of each component: sizes and strides,
// with one row per component, and offsets. So the host has all shapes, and no operator blocks to read them.
//
// Most of PyTorch's CPU functions for such tensors are loops over ordinary operators, and work on every device
// (strided.cpp). A function that reads the buffer itself, or would need many launches, is replaced by one launch over
// aliases of the components (CPU tensors over their bytes).
#pragma once

#include <ATen/NestedTensorImpl.h>

#include <vector>

#include "launch/launch.h"

namespace openreg::ops {

inline const at::native::NestedTensorImpl& nested(const at::Tensor& tensor) {
  return *at::native::get_nested_tensor_impl(tensor);
}

// Returns true for a nested tensor with at least one component, whose components have dimensions and lie in memory one
// after the other, without gaps.
inline bool is_packed(const at::Tensor& tensor) {
  return tensor.is_nested() && nested(tensor).get_nested_sizes().dim() == 2 && nested(tensor).size(0) > 0 &&
         tensor.dim() > 1 && at::native::nested_tensor_impl_is_contiguous(&nested(tensor));
}

// Returns a new packed nested tensor on the current device with undefined content. Row i of `sizes` contains the sizes
// of component i. Shares `sizes`, which is on the host and must not change afterwards.
inline at::Tensor make_nested(const at::Tensor& sizes, const c10::TensorOptions& options) {
  const int64_t count = sizes.prod(1).sum().item<int64_t>();
  return at::detail::make_tensor<at::native::NestedTensorImpl>(make_output({count}, {}, options.layout(c10::kStrided)),
                                                               sizes);
}

// Returns the largest size of the components in each dimension. The tensor must be packed (`is_packed()`).
inline std::vector<int64_t> largest_sizes(const at::Tensor& tensor) {
  const at::Tensor largest = nested(tensor).get_nested_sizes().amax(0);
  const auto* sizes = largest.const_data_ptr<int64_t>();
  return std::vector<int64_t>(sizes, sizes + largest.numel());
}

// Launches `kernel(outputs, args...)`. `outputs` is a TensorList of the components of the nested tensor `output`.
// Parameters are the types of the kernel's other parameters. launch_owned() keeps a value or a descriptor of each
// argument according to its type (launch/arguments.h), because the kernel runs after the call has returned.
template <class... Parameters, class Kernel>
void launch_on_components(const Operator& op, const at::Tensor& output, Kernel kernel,
                          const std::remove_reference_t<Parameters>&... args) {
  const std::vector<at::Tensor> components = output.unbind();
  launch_owned<OutputList, Parameters...>(op, output.device(), sync_policy_of(op, args...),
                                          kAccessesByType<OutputList, Parameters...>.data(), kernel,
                                          OutputList{components}, args...);
}

}  // namespace openreg::ops
