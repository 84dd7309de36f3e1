// SPDX-License-Identifier: BSD-3-Clause
// Operators on nested tensors of strided layout, with one launch for all components. Operands that the kernels here do
// not support go to PyTorch's CPU function, which rejects them before it accesses the buffer.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_nested_from_padded_native.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <functional>

#include "operators/nested/components.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

constexpr Operator kMatmul{op::matmul::name};
constexpr Operator kSum{op::sum_dim_IntList::name};
constexpr Operator kSumBackward{op::_nested_sum_backward::name};
constexpr Operator kToPadded{op::to_padded_tensor::name};
constexpr Operator kFromPadded{op::_nested_from_padded::name};
constexpr Operator kMaskedSoftmax{op::_nested_tensor_softmax_with_shape::name};

// Products ------------------------------------------------------------------------------------------------------------

// Returns true if both operands are nested tensors of one dtype with equally many components, and the matrices of each
// pair can be multiplied.
bool are_factors(const at::Tensor& self, const at::Tensor& other) {
  if (!self.is_nested() || !other.is_nested() || self.dim() != other.dim() || self.dim() < 3 ||
      self.scalar_type() != other.scalar_type() || self.device() != other.device() || self.size(0) != other.size(0) ||
      self.size(0) == 0 || self.scalar_type() == at::kBool) {
    return false;
  }
  const at::Tensor& sizes = nested(self).get_nested_sizes();
  const at::Tensor& other_sizes = nested(other).get_nested_sizes();
  const int64_t batch_dims = self.dim() - 3;
  return at::equal(sizes.narrow(1, 0, batch_dims), other_sizes.narrow(1, 0, batch_dims)) &&
         at::equal(sizes.select(1, -1), other_sizes.select(1, -2));
}

void matmul_kernel(at::TensorList outputs, at::TensorList left, at::TensorList right) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    at::Tensor output = outputs[i];
    at::matmul_out(output, left[i], right[i]);
  }
}

// Multiplies each pair of components. PyTorch's function would pad, multiply, and then block to read from the device
// which elements to keep.
at::Tensor matmul(const at::Tensor& self, const at::Tensor& other) {
  if (!are_factors(self, other)) {
    return call_host_composite<op::matmul>(kNested, self, other);
  }
  const CurrentDeviceGuard current(self.device());
  at::Tensor sizes = nested(self).get_nested_sizes().clone();
  sizes.select(1, -1).copy_(nested(other).get_nested_sizes().select(1, -1));
  at::Tensor output = make_nested(sizes, self.options());
  const std::vector<at::Tensor> left = self.unbind();
  const std::vector<at::Tensor> right = other.unbind();
  launch_on_components<at::TensorList, at::TensorList>(kMatmul, output, &matmul_kernel, left, right);
  return output;
}

// Sums ----------------------------------------------------------------------------------------------------------------

// Returns true for a sum over the last dimension that keeps it with size 1, because PyTorch has no other sum of nested
// tensors.
bool is_sum_of_rows(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim) {
  return is_packed(self) && keepdim && dims.has_value() && dims->size() == 1 &&
         at::maybe_wrap_dim(dims->front(), self.dim()) == self.dim() - 1;
}

void sum_kernel(at::TensorList outputs, at::TensorList operands) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    at::Tensor output = outputs[i];
    at::sum_out(output, operands[i], {-1}, /*keepdim=*/true, output.scalar_type());
  }
}

at::Tensor sum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
               std::optional<c10::ScalarType> dtype) {
  const bool is_supported = is_sum_of_rows(self, dims, keepdim) && !dtype.has_value() &&
                            (dtype_bit(self.scalar_type()) & (kIntegers | kFloating)) != 0;
  if (!is_supported) {
    return call_host_composite<op::sum_dim_IntList>(kNested, self, dims, keepdim, dtype);
  }
  const CurrentDeviceGuard current(self.device());
  at::Tensor sizes = nested(self).get_nested_sizes().clone();
  sizes.select(1, -1).fill_(1);
  at::Tensor output = make_nested(sizes, self.options());
  const std::vector<at::Tensor> operands = self.unbind();
  launch_on_components<at::TensorList>(kSum, output, &sum_kernel, operands);
  return output;
}

void broadcast_kernel(at::TensorList outputs, at::TensorList operands) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].copy_(operands[i]);
  }
}

at::Tensor sum_backward(const at::Tensor& grad, const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim) {
  if (!is_sum_of_rows(self, dims, keepdim) || !is_packed(grad) || grad.size(0) != self.size(0)) {
    return call_host_composite<op::_nested_sum_backward>(kNested, grad, self, dims, keepdim);
  }
  const CurrentDeviceGuard current(self.device());
  at::Tensor output = make_nested(nested(self).get_nested_sizes().clone(), grad.options());
  const std::vector<at::Tensor> gradients = grad.unbind();
  launch_on_components<at::TensorList>(kSumBackward, output, &broadcast_kernel, gradients);
  return output;
}

// Padding -------------------------------------------------------------------------------------------------------------

// Returns the part of a batch of padded tensors that component i fills.
at::Tensor filled_part(const at::Tensor& padded, size_t i, c10::IntArrayRef sizes) {
  at::Tensor part = padded.select(0, static_cast<int64_t>(i));
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    part = part.narrow(static_cast<int64_t>(dim), 0, sizes[dim]);
  }
  return part;
}

void to_padded_kernel(at::TensorList components, double padding, at::Tensor& padded) {
  padded.fill_(padding);
  for (size_t i = 0; i < components.size(); ++i) {
    filled_part(padded, i, components[i].sizes()).copy_(components[i]);
  }
}

at::Tensor to_padded(const at::Tensor& self, double padding, at::OptionalIntArrayRef output_size) {
  std::vector<int64_t> smallest;
  if (is_packed(self)) {
    smallest = largest_sizes(self);
    smallest.insert(smallest.begin(), self.size(0));
  }
  const c10::IntArrayRef sizes = output_size.value_or(smallest);
  const bool is_supported =
      is_packed(self) && std::equal(smallest.begin(), smallest.end(), sizes.begin(), sizes.end(), std::less_equal<>());
  if (!is_supported) {
    const at::OptionalSymIntArrayRef size =
        output_size.has_value() ? at::OptionalSymIntArrayRef(c10::fromIntArrayRefSlow(*output_size)) : std::nullopt;
    return call_host_composite<op::to_padded_tensor>(kNested, self, padding, size);
  }
  const CurrentDeviceGuard current(self.device());
  at::Tensor padded = make_output(sizes, {}, self.options().layout(c10::kStrided));
  const std::vector<at::Tensor> components = self.unbind();
  launch(kToPadded, self.device(), &to_padded_kernel, at::TensorList(components), padding, padded);
  return padded;
}

void from_padded_kernel(at::TensorList outputs, const at::Tensor& padded) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].copy_(filled_part(padded, i, outputs[i].sizes()));
  }
}

// Returns true if `sizes` has a row for each tensor of the batch, and no size exceeds that of the tensor.
bool fits_in(const at::Tensor& sizes, const at::Tensor& padded) {
  return sizes.device().is_cpu() && sizes.scalar_type() == at::kLong && sizes.dim() == 2 && sizes.numel() > 0 &&
         sizes.size(0) == padded.size(0) && sizes.size(1) == padded.dim() - 1 && sizes.ge(0).all().item<bool>() &&
         sizes.le(at::tensor(padded.sizes().slice(1))).all().item<bool>();
}

// Returns the nested tensor whose components are the parts of the padded batch with these sizes. With `swaps_heads`,
// the batch is (batch, heads, length, width), and components are (length, heads * width).
at::Tensor from_padded(const at::Tensor& padded, const at::Tensor& sizes, bool swaps_heads) {
  const at::Tensor batch = swaps_heads && padded.dim() == 4 ? padded.transpose(1, 2).flatten(2) : padded;
  if ((swaps_heads && padded.dim() != 4) || batch.dim() < 2 || !fits_in(sizes, batch)) {
    return at::native::nested_from_padded_generic(padded, sizes, swaps_heads);
  }
  const CurrentDeviceGuard current(padded.device());
  at::Tensor output = make_nested(sizes, padded.options());
  launch_on_components<const at::Tensor&>(kFromPadded, output, &from_padded_kernel, batch);
  return output;
}

// Softmax of scores ---------------------------------------------------------------------------------------------------

// Scores are (batch, heads, length, length). The output is zero beyond the length of each component.
void masked_softmax_kernel(const at::Tensor& scores, c10::IntArrayRef lengths, at::Tensor& output) {
  output.zero_();
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto part = [&](const at::Tensor& tensor) {
      return tensor.select(0, static_cast<int64_t>(i)).narrow(1, 0, lengths[i]).narrow(2, 0, lengths[i]);
    };
    part(output).copy_(at::_softmax(part(scores), -1, /*half_to_float=*/false));
  }
}

at::Tensor masked_softmax(const at::Tensor& scores, const at::Tensor& query) {
  if (!is_packed(query) || scores.is_nested() || scores.dim() != 4 || scores.size(0) != query.size(0) ||
      scores.size(2) != scores.size(3) || !at::isFloatingType(scores.scalar_type()) ||
      largest_sizes(query).front() > scores.size(3)) {
    return call_host_composite<op::_nested_tensor_softmax_with_shape>(kNested, scores, query);
  }
  const at::Tensor lengths = nested(query).get_nested_sizes().select(1, 0).contiguous();
  const CurrentDeviceGuard current(scores.device());
  at::Tensor output = make_output(scores.sizes(), {}, scores.options());
  launch(kMaskedSoftmax, scores.device(), &masked_softmax_kernel, scores,
         c10::IntArrayRef(lengths.const_data_ptr<int64_t>(), lengths.numel()), output);
  return output;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_nested_from_padded>(library, from_padded);
}

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, library) {
  const RegistrationKeyGuard strided(c10::DispatchKey::NestedTensorPrivateUse1);
  function<op::_nested_sum_backward>(library, sum_backward);
  function<op::_nested_tensor_softmax_with_shape>(library, masked_softmax);
  function<op::matmul>(library, matmul);
  function<op::sum_dim_IntList>(library, sum);
  function<op::to_padded_tensor>(library, to_padded);
}

}  // namespace

}  // namespace openreg::ops
