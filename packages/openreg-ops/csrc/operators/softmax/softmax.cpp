// SPDX-License-Identifier: BSD-3-Clause
// softmax() and log_softmax() with their gradients. softmax() also has our own kernels, which OPENREG_KERNELS=raw
// selects.
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>

#include "kernels/softmax.h"
#include "launch/derivative.h"
#include "launch/raw_operands.h"
#include "registration/declare.h"
#include "support/kernel_choice.h"

namespace openreg::ops {

namespace {

// Returns true if our own kernels support the operands and the output: all have one floating-point dtype, and no
// operand overlaps the output.
template <class... Operands>
bool served(const at::Tensor& out, const Operands&... operands) {
  return raw::contains(raw::Floats(), out.scalar_type()) &&
         ((operands.scalar_type() == out.scalar_type() &&
           at::get_overlap_status(operands, out) == at::MemOverlapStatus::No) &&
          ...);
}

// Sets the axis along which operands are normalized, and the other axes.
template <class Arguments, class... Operands>
void set_axes(Arguments& arguments, int64_t dim, const at::Tensor& first, const Operands&... others) {
  c10::DimVector sizes(first.sizes());
  arguments.along.size = 1;  // for a 0-dim tensor
  if (first.dim() > 0) {
    dim = at::maybe_wrap_dim(dim, first.dim());
    arguments.along = {std::exchange(sizes[static_cast<size_t>(dim)], 1), {first.stride(dim), others.stride(dim)...}};
  }
  arguments.lines =
      merged_axes<1 + sizeof...(others)>(sizes, {first.strides(), others.strides()...}, AxisOrder::kByStride);
}

bool softmax(c10::Device device, const at::Tensor& self, int64_t dim, bool /*half_to_float*/, at::Tensor& out) {
  if (!served(out, self)) {
    return false;
  }
  raw::SoftmaxArguments arguments{out.scalar_type(), kernel_address(self), mutable_kernel_address(out), {}, {}};
  set_axes(arguments, dim, self, out);
  launch_raw("aten::_softmax", device, &raw::softmax, std::move(arguments), reads(self), writes(out));
  return true;
}

bool softmax_backward(c10::Device device, const at::Tensor& gradient, const at::Tensor& output, int64_t dim,
                      c10::ScalarType /*input_dtype*/, at::Tensor& input_gradient) {
  if (!served(input_gradient, gradient, output)) {
    return false;
  }
  raw::SoftmaxBackwardArguments arguments{output.scalar_type(),
                                          kernel_address(gradient),
                                          kernel_address(output),
                                          mutable_kernel_address(input_gradient),
                                          {},
                                          {}};
  set_axes(arguments, dim, gradient, output, input_gradient);
  launch_raw("aten::_softmax_backward_data", device, &raw::softmax_backward, std::move(arguments),
             reads(gradient, output), writes(input_gradient));
  return true;
}

// The conversion of half to float, which CUDA's kernels make and the CPU's do not: a kernel for float computes.
void check_conversion(const at::Tensor& self, int64_t /*dim*/, bool half_to_float) {
  TORCH_CHECK(!half_to_float || self.scalar_type() == at::kHalf, "conversion is supported for Half type only");
}
template <auto* kKernel>
at::Tensor& from_half(const at::Tensor& self, int64_t dim, bool half_to_float, at::Tensor& out) {
  return kKernel(half_to_float ? self.to(at::kFloat) : self, dim, /*half_to_float=*/false, out);
}
template <auto* kKernel>
at::Tensor& to_half(const at::Tensor& grad, const at::Tensor& output, int64_t dim, c10::ScalarType input_dtype,
                    at::Tensor& grad_input) {
  if (grad_input.scalar_type() == grad.scalar_type()) {
    return kKernel(grad, output, dim, input_dtype, grad_input);
  }
  at::Tensor computed = at::empty(grad.sizes(), grad.options());
  kKernel(grad, output, dim, grad.scalar_type(), computed);
  return grad_input.copy_(computed);
}

template <class Backward>
void check_gradient(const at::Tensor& grad, const at::Tensor& output, int64_t /*dim*/,
                    c10::ScalarType /*input_dtype*/) {
  expect_like(Backward::name, "grad_output", grad, output);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kBackward{.refused = kNotFloating, .dtype_match = DtypeMatch::kAll};
  const bool raw = raw_kernels_chosen();
  structured<meta::structured__softmax, op::_softmax>(
      library, from_half<cpu::_softmax_outf>, checked(kFloats),
      {.check = check_conversion, .launch_own = raw ? softmax : nullptr});
  structured<meta::structured__softmax_backward_data, op::_softmax_backward_data>(
      library, to_half<cpu::_softmax_backward_data_outf>, checked(kBackward),
      {.check = check_gradient<op::_softmax_backward_data>, .launch_own = raw ? softmax_backward : nullptr});
  structured<meta::structured__log_softmax, op::_log_softmax>(library, from_half<cpu::_log_softmax_outf>,
                                                              checked(kFloats), {.check = check_conversion});
  structured<meta::structured__log_softmax_backward_data, op::_log_softmax_backward_data>(
      library, to_half<cpu::_log_softmax_backward_data_outf>, checked(kBackward),
      {.check = check_gradient<op::_log_softmax_backward_data>});
}

}  // namespace

}  // namespace openreg::ops
