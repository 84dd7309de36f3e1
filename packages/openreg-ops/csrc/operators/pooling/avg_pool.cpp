// SPDX-License-Identifier: BSD-3-Clause
// Average pooling with backward: avg_pool and adaptive_avg_pool. The CPU's avg_pool has no kernel for volumes of half
// precision, so these are pooled in float.
#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

template <int kDims>
OutputSpec meta_adaptive(const at::Tensor& self, c10::IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == kDims, "adaptive_avg_pool", kDims, "d: output_size must be ", kDims);
  TORCH_CHECK(self.dim() == kDims + 1 || self.dim() == kDims + 2, "adaptive_avg_pool", kDims, "d(): Expected ",
              kDims + 1, "D or ", kDims + 2, "D tensor, but got ", self.sizes());
  for (int64_t i = 1; i <= kDims; ++i) {
    TORCH_CHECK(self.size(-i) > 0, "adaptive_avg_pool", kDims,
                "d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
                self.sizes(), " with dimension ", self.dim() - i, " being empty");
  }
  OutputSpec spec = with_last_sizes(self, output_size);
  spec.format = kDims == 2 ? spec.format : c10::MemoryFormat::Contiguous;
  return spec;
}

OutputSpec meta_adaptive_out(const at::Tensor& self, c10::IntArrayRef output_size, const at::Tensor& /*out*/) {
  return self.dim() > 2 && output_size.size() == 3 ? meta_adaptive<3>(self, output_size)
                                                   : meta_adaptive<2>(self, output_size);
}

// Throws c10::Error if the gradient does not match the input. Its spatial sizes may be any, because they are the
// output's.
template <int kDims>
void check_adaptive_gradient(const char* name, const at::Tensor& grad, const at::Tensor& self) {
  expect_dim(name, "grad_output", grad, self.dim());
  for (int64_t i = 1; i < grad.dim(); ++i) {
    TORCH_CHECK(grad.size(i) > 0, name, ": expected grad_output to have no empty dimension but the batch, but got ",
                grad.sizes());
  }
  expect(name, "grad_output", grad, meta_adaptive<kDims>(self, grad.sizes().slice(grad.dim() - kDims)).sizes,
         self.scalar_type());
}

constexpr auto meta_adaptive2d_backward = [](const at::Tensor& grad, const at::Tensor& self) {
  check_adaptive_gradient<2>(op::_adaptive_avg_pool2d_backward::name, grad, self);
  return with_last_sizes(self, {});
};
constexpr auto meta_adaptive3d_backward = [](const at::Tensor& grad, const at::Tensor& self,
                                             const auto&... /*grad_input*/) {
  check_adaptive_gradient<3>(op::_adaptive_avg_pool3d_backward::name, grad, self);
  return output_of_shape(self);
};

// Throws c10::Error unless the gradient has the shape that the forward operator's meta function requests.
template <class Backward, class Meta>
void check_gradient(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef kernel_size,
                    c10::IntArrayRef stride, c10::IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                    std::optional<int64_t> divisor_override) {
  expect(Backward::name, "grad_output", grad,
         output_sizes<Meta>(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override),
         self.scalar_type());
}

// Copies the result, because PyTorch's out= kernel writes elements consecutively and ignores the strides.
at::Tensor& adaptive3d_backward_kernel(const at::Tensor& grad, const at::Tensor& self, at::Tensor& grad_input) {
  return grad_input.copy_(cpu::_adaptive_avg_pool3d_backward(grad, self));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kBackward{.refused = kBoolean | kShortIntegers | kComplex, .dtype_match = DtypeMatch::kAll};
  structured<meta::structured_avg_pool2d, op::avg_pool2d>(
      library, cpu::avg_pool2d_outf,
      checked(KernelTraits{.refused = kBoolean | kShortIntegers | kComplex, .overlap = kNotItself}));
  structured<meta::structured_avg_pool2d_backward, op::avg_pool2d_backward>(
      library, cpu::avg_pool2d_backward_outf, checked(kBackward),
      {.check = check_gradient<op::avg_pool2d_backward, meta::structured_avg_pool2d>});
  structured<meta::structured_avg_pool3d, op::avg_pool3d>(library, computed_in<reduced_as_float, cpu::avg_pool3d_outf>,
                                                          {.refused = kBoolean | kShortIntegers | kComplex});
  structured<meta::structured_avg_pool3d_backward, op::avg_pool3d_backward>(
      library, computed_in<reduced_as_float, cpu::avg_pool3d_backward_outf>, kBackward,
      {.check = check_gradient<op::avg_pool3d_backward, meta::structured_avg_pool3d>});
  unstructured<meta_adaptive<2>, op::_adaptive_avg_pool2d>(library, cpu::_adaptive_avg_pool2d, kFloats);
  unstructured<meta_adaptive_out, op::adaptive_avg_pool2d_out>(library, cpu::adaptive_avg_pool2d_outf);
  unstructured<meta_adaptive2d_backward, op::_adaptive_avg_pool2d_backward>(library, cpu::_adaptive_avg_pool2d_backward,
                                                                            kFloats);
  unstructured<meta_adaptive<3>, op::_adaptive_avg_pool3d>(library, cpu::_adaptive_avg_pool3d, kFloats);
  unstructured<meta_adaptive_out, op::adaptive_avg_pool3d_out>(library, cpu::adaptive_avg_pool3d_outf);
  unstructured<meta_adaptive3d_backward, op::_adaptive_avg_pool3d_backward>(library, cpu::_adaptive_avg_pool3d_backward,
                                                                            kFloats);
  unstructured<meta_adaptive3d_backward, op::adaptive_avg_pool3d_backward_grad_input>(
      library, adaptive3d_backward_kernel, kFloats);
}

}  // namespace

}  // namespace openreg::ops
