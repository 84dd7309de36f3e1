// SPDX-License-Identifier: BSD-3-Clause
// Activation functions and their derivatives, except sigmoid and tanh, which are in operators/unary/unary.cpp.
#include <ATen/native/Activation.h>
#include <ATen/ops/hardtanh_native.h>
#include <ATen/ops/relu_native.h>

#include "launch/derivative.h"
#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

// Throws c10::Error unless the last argument names a variant of GELU. The kernels check the name, too, but run too late
// to throw on the calling line.
constexpr auto check_gelu = [](auto... arguments) {
  at::native::get_gelutype_enum(std::get<sizeof...(arguments) - 1>(std::tie(arguments...)));
};

// Copies the result into an output that is not laid out like the operand, because oneDNN's kernel writes elements in
// the operand's order.
at::Tensor& gelu_kernel(const at::Tensor& self, std::string_view approximate, at::Tensor& out) {
  const bool lies_alike =
      out.strides() == self.strides() || out.strides() == c10::IntArrayRef(dense_strides_like(self));
  return lies_alike ? cpu::gelu_outf(self, approximate, out) : out.copy_(cpu::gelu(self, approximate));
}

// Brings operands to the shape and dtype of the output first, because oneDNN's kernel requires that. PyTorch's
// TensorIterator would broadcast and convert them.
at::Tensor& gelu_backward_kernel(const at::Tensor& grad, const at::Tensor& self, std::string_view approximate,
                                 at::Tensor& out) {
  const auto fitted = [&](const at::Tensor& operand) {
    return operand.sizes() == out.sizes() && operand.scalar_type() == out.scalar_type()
               ? operand
               : operand.to(out.scalar_type()).expand(out.sizes()).contiguous();
  };
  return cpu::gelu_backward_outf(fitted(grad), fitted(self), approximate, out);
}

// Returns the specification of an output with half of the operand's size along `dim`.
OutputSpec meta_glu(const at::Tensor& self, int64_t dim) {
  require_dtype((dtype_bit(self.scalar_type()) & kFloating) != 0, "glu", self.scalar_type());
  TORCH_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  const auto place = static_cast<size_t>(at::maybe_wrap_dim(dim, self.dim()));
  OutputSpec spec = output_of_shape(self);
  TORCH_CHECK(spec.sizes[place] % 2 == 0, "Halving dimension must be even, but dimension ", place, " is size ",
              spec.sizes[place]);
  spec.sizes[place] /= 2;
  return spec;
}

OutputSpec meta_glu_backward(const at::Tensor& grad, const at::Tensor& self, int64_t dim) {
  const OutputSpec half = meta_glu(self, dim);
  expect(op::glu_backward::name, "grad_output", grad, half.sizes, half.dtype);
  return output_of_shape(self).allowing({.elsewhere = true});
}

OutputSpec meta_glu_jvp(const at::Tensor& glu, const at::Tensor& x, const at::Tensor& dx, int64_t dim) {
  const OutputSpec half = meta_glu(x, dim);
  expect(op::glu_jvp::name, "glu", glu, half.sizes, half.dtype);
  expect_like(op::glu_jvp::name, "dx", dx, x);
  return output_of_shape(glu);
}

OutputSpec meta_glu_backward_jvp(const at::Tensor& grad_x, const at::Tensor& grad_glu, const at::Tensor& x,
                                 const at::Tensor& dgrad_glu, const at::Tensor& dx, int64_t dim) {
  constexpr const char* kName = op::glu_backward_jvp::name;
  const OutputSpec half = meta_glu(x, dim);
  expect_like(kName, "grad_x", grad_x, x);
  expect(kName, "grad_glu", grad_glu, half.sizes, half.dtype);
  expect(kName, "dgrad_glu", dgrad_glu, half.sizes, half.dtype);
  expect_like(kName, "dx", dx, x);
  return output_of_shape(x);
}

// The output may be the operand itself, because PyTorch's TensorIterator computes it.
OutputSpec meta_hardswish(const at::Tensor& self) {
  return output_like(self).allowing({.elementwise = true});
}

// Returns the specification of a derivative that PyTorch's TensorIterator computes for real floating-point numbers,
// with the operands' common shape and dtype. Throws NotImplementedError, with the name `kernel`, for other dtypes.
OutputSpec meta_hard_backward(const at::Tensor& grad, const at::Tensor& self, const char* kernel) {
  OutputSpec spec = output_of_operands(grad, self);
  require_dtype((dtype_bit(spec.dtype) & kFloating) != 0, kernel, spec.dtype);
  return std::move(spec).allowing({.elementwise = true});
}
constexpr auto meta_hardtanh_backward = [](const at::Tensor& grad, const at::Tensor& self, const auto&... /*bounds*/) {
  return meta_hard_backward(grad, self, "hardtanh_backward");
};
OutputSpec meta_hardswish_backward(const at::Tensor& grad, const at::Tensor& self) {
  return meta_hard_backward(grad, self, "hardswish_backward");
}
OutputSpec meta_mish_backward(const at::Tensor& grad, const at::Tensor& self) {
  return broadcast_derivative(self, grad);
}
OutputSpec meta_log_sigmoid_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& buffer) {
  return output_of_operands(grad, self, buffer).allowing({.elementwise = true});
}

std::array<OutputSpec, 2> meta_log_sigmoid(const at::Tensor& self) {
  const OutputSpec spec = output_of_shape(self).allowing({.overlaps = true, .quiet = true});
  return {spec, spec};
}

std::array<OutputSpec, 2> meta_prelu_backward(const at::Tensor& grad, const at::Tensor& self,
                                              const at::Tensor& weight) {
  OutputSpec of_self = output_of_operands(self, grad, weight);
  OutputSpec of_weight = of_self;
  of_weight.dtype = weight.scalar_type();
  return {of_self, of_weight};
}

void check_relu(const at::Tensor& self) {
  OPENREG_CHECK_IMPLEMENTED_SINCE_14(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "clamp is not supported for complex types");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured__addmm_activation, op::_addmm_activation>(
      library, cpu::_addmm_activation_outf, {.refused = kBoolean | kComplex, .overlap = kNoPart});
  structured<meta::structured_elu, op::elu, op::elu_>(library, cpu::elu_outf, kFloats);
  structured<meta::structured_elu_backward, op::elu_backward>(library, cpu::elu_backward_outf, kFloats);
  structured<meta::structured_gelu, op::gelu, op::gelu_>(
      library, gelu_kernel, {.refused = kNotFloating, .elementwise = true}, {.check = check_gelu});
  structured<meta::structured_gelu_backward, op::gelu_backward>(library, gelu_backward_kernel,
                                                                {.refused = kNotFloating}, {.check = check_gelu});
  structured<meta::structured_glu, op::glu>(library, cpu::glu_outf, kFloats);
  unstructured<meta_glu_backward, op::glu_backward>(library, cpu::glu_backward_outf, checked(kFloats));
  unstructured<meta_glu_backward_jvp, op::glu_backward_jvp>(library, cpu::glu_backward_jvp, kFloats);
  unstructured<meta_glu_jvp, op::glu_jvp>(library, cpu::glu_jvp, kFloats);
  structured<meta::structured_hardshrink, op::hardshrink>(library, cpu::hardshrink_outf, kFloats);
  structured<meta::structured_hardshrink_backward, op::hardshrink_backward>(library, cpu::hardshrink_backward_outf,
                                                                            kFloats);
  structured<meta::structured_hardsigmoid, op::hardsigmoid, op::hardsigmoid_>(library, cpu::hardsigmoid_outf, kFloats);
  structured<meta::structured_hardsigmoid_backward, op::hardsigmoid_backward>(library, cpu::hardsigmoid_backward_outf,
                                                                              kFloats);
  unstructured<meta_hardswish, op::hardswish>(library, cpu::hardswish_outf, checked(kFloats));
  unstructured<unchecked, op::hardswish_>(library, cpu::hardswish_, checked(kFloats));
  unstructured<meta_hardswish_backward, op::hardswish_backward>(library, cpu::hardswish_backward, checked(kFloats));
  // PyTorch's functions compose hardtanh of clamp, which this device has.
  function<op::hardtanh>(library, at::native::hardtanh);
  function<op::hardtanh_>(library, at::native::hardtanh_);
  function<op::hardtanh_out>(library, at::native::hardtanh_out);
  unstructured<meta_hardtanh_backward, op::hardtanh_backward>(library, cpu::hardtanh_backward_outf, kChecked);
  structured<meta::structured_leaky_relu, op::leaky_relu, op::leaky_relu_>(library, cpu::leaky_relu_outf, kFloats);
  structured<meta::structured_leaky_relu_backward, op::leaky_relu_backward>(library, cpu::leaky_relu_backward_outf,
                                                                            kFloats);
  unstructured<meta_log_sigmoid, op::log_sigmoid_forward>(library, cpu::log_sigmoid_forward_outf, kFloats);
  unstructured<meta_log_sigmoid_backward, op::log_sigmoid_backward>(
      library, cpu::log_sigmoid_backward_outf, {.refused = kNotFloating, .dtype_match = DtypeMatch::kAll});
  structured<meta::structured_mish, op::mish, op::mish_>(library, cpu::mish_outf, kFloats);
  unstructured<meta_mish_backward, op::mish_backward>(library, cpu::mish_backward);
  unstructured<like_operands, op::_prelu_kernel>(
      library, cpu::_prelu_kernel, {.refused = kNotFloating, .dtype_match = DtypeMatch::kAll, .checked = true});
  unstructured<meta_prelu_backward, op::_prelu_kernel_backward>(
      library, cpu::_prelu_kernel_backward, {.refused = kNotFloating, .dtype_match = DtypeMatch::kAll});
  // PyTorch's function calls clamp_min, which is structured.
  function<op::relu>(library, at::native::relu);
  unstructured<check_relu, op::relu_>(library, cpu::relu_, kChecked);
  structured<meta::structured_silu, op::silu, op::silu_>(library, cpu::silu_outf,
                                                         {.refused = kBoolean | kIntegers, .elementwise = true});
  structured<meta::structured_silu_backward, op::silu_backward>(library, cpu::silu_backward_outf,
                                                                {.refused = kBoolean | kIntegers, .elementwise = true});
  structured<meta::structured_softplus, op::softplus>(library, cpu::softplus_outf, kFloats);
  structured<meta::structured_softplus_backward, op::softplus_backward>(library, cpu::softplus_backward_outf, kFloats);
  structured<meta::structured_softshrink, op::softshrink>(library, cpu::softshrink_outf, kFloats);
  structured<meta::structured_softshrink_backward, op::softshrink_backward>(library, cpu::softshrink_backward_outf,
                                                                            kFloats);
  structured<meta::structured_threshold, op::threshold, op::threshold_>(library, cpu::threshold_outf, kRealNumbers);
  structured<meta::structured_threshold_backward, op::threshold_backward>(library, cpu::threshold_backward_outf,
                                                                          kRealNumbers);
}

}  // namespace

}  // namespace openreg::ops
