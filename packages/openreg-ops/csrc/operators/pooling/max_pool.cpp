// SPDX-License-Identifier: BSD-3-Clause
// Maximum pooling with backward: max_pool, adaptive_max_pool and fractional_max_pool. If PyTorch has no meta function,
// as for max_pool in three dimensions, this file checks the shapes.
#include <ATen/native/Pool.h>

#include "launch/derivative.h"
#include "registration/declare.h"
#include "support/index_range.h"

namespace openreg::ops {

namespace {

// Returns three numbers, from one for all dimensions or from three. Throws c10::Error for any other count.
std::array<int, 3> triple(c10::IntArrayRef given, const char* what) {
  TORCH_CHECK(given.size() == 1 || given.size() == 3, "max_pool3d: ", what,
              " must be either a single int, or a tuple of three ints");
  std::array<int, 3> result;
  for (size_t i = 0; i < 3; ++i) {
    result[i] = static_cast<int>(given.size() == 1 ? given[0] : given[i]);
  }
  return result;
}

std::array<OutputSpec, 2> meta_max_pool3d(const at::Tensor& self, c10::IntArrayRef kernel_size,
                                          c10::IntArrayRef given_stride, c10::IntArrayRef given_padding,
                                          c10::IntArrayRef given_dilation, bool ceil_mode) {
  const auto kernel = triple(kernel_size, "kernel_size");
  const auto stride = given_stride.empty() ? kernel : triple(given_stride, "stride");
  const auto padding = triple(given_padding, "padding");
  const auto dilation = triple(given_dilation, "dilation");
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5, "max_pool3d_with_indices_out_cpu_template(): ",
              "Expected 4D or 5D tensor for input, but got: ", self.sizes());
  const c10::MemoryFormat format = self.suggest_memory_format();
  TORCH_CHECK(format == c10::MemoryFormat::Contiguous || format == c10::MemoryFormat::ChannelsLast3d,
              "Unsupported memory format. Supports only ChannelsLast3d, Contiguous");
  std::array<int64_t, 3> in;
  std::array<int64_t, 3> out;
  for (size_t i = 0; i < 3; ++i) {
    in[i] = self.size(static_cast<int64_t>(i) - 3);
    out[i] = at::native::pooling_output_shape<int64_t>(in[i], kernel[i], padding[i], stride[i], dilation[i], ceil_mode);
  }
  at::native::pool3d_shape_check(self, self.size(-4), kernel[0], kernel[1], kernel[2], stride[0], stride[1], stride[2],
                                 padding[0], padding[1], padding[2], dilation[0], dilation[1], dilation[2], in[0],
                                 in[1], in[2], out[0], out[1], out[2], "max_pool3d_with_indices_out_cpu_template()");
  OutputSpec values = with_last_sizes(self, out);
  if (self.dim() == 4 && self.unsqueeze(0).suggest_memory_format() == c10::MemoryFormat::ChannelsLast3d) {
    // A volume without a batch has no memory format, so its channels-last strides are computed here.
    const auto strides = c10::get_channels_last_strides_3d({1, values.sizes[0], out[0], out[1], out[2]});
    values.strides = c10::DimVector(strides.begin() + 1, strides.end());
    values.format = c10::MemoryFormat::Contiguous;
  }
  OutputSpec indices = values;
  indices.dtype = at::kLong;
  return {values, indices};
}

// Throws c10::Error unless the gradient and the indices of the maxima have the shape of the output, `sizes`.
void check_gradient(const char* name, const at::Tensor& grad, const at::Tensor& self, const at::Tensor& indices,
                    c10::IntArrayRef sizes) {
  expect(name, "grad_output", grad, sizes, self.scalar_type());
  expect(name, "indices", indices, sizes, at::kLong);
}

// Returns the sizes of the input, with `last` as the last ones. Throws c10::Error if the input has another number of
// dimensions.
c10::DimVector pooled_sizes(const at::Tensor& self, c10::IntArrayRef last) {
  TORCH_CHECK(
      self.dim() == static_cast<int64_t>(last.size()) + 1 || self.dim() == static_cast<int64_t>(last.size()) + 2,
      "fractional_max_pool: expected an input of ", last.size() + 1, " or ", last.size() + 2, " dimensions, but got ",
      self.sizes());
  return with_last_sizes(self, last).sizes;
}

OutputSpec meta_max_pool3d_backward(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef kernel_size,
                                    c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation,
                                    bool ceil_mode, const at::Tensor& indices) {
  check_gradient(op::max_pool3d_with_indices_backward::name, grad, self, indices,
                 meta_max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode)[0].sizes);
  return with_last_sizes(self, {}).allowing({.elsewhere = true});
}

// Checks of backward operators, because PyTorch's meta functions do not compare all of it.
void check_max_pool2d_backward(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef kernel_size,
                               c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation,
                               bool ceil_mode, const at::Tensor& indices) {
  check_gradient(
      op::max_pool2d_with_indices_backward::name, grad, self, indices,
      output_sizes<meta::structured_max_pool2d_with_indices>(self, kernel_size, stride, padding, dilation, ceil_mode));
}
template <class Backward, class Meta, int kDims>
void check_adaptive_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& indices) {
  expect_dim(Backward::name, "grad_output", grad, self.dim());
  TORCH_CHECK(self.dim() > kDims, Backward::name, ": expected an input of ", kDims + 1, " or ", kDims + 2,
              " dimensions, but got ", self.sizes());
  check_gradient(Backward::name, grad, self, indices,
                 output_sizes<Meta>(self, grad.sizes().slice(static_cast<size_t>(grad.dim() - kDims))));
}
template <class Backward>
void check_fractional_backward(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef /*kernel_size*/,
                               c10::IntArrayRef output_size, const at::Tensor& indices) {
  check_gradient(Backward::name, grad, self, indices, pooled_sizes(self, output_size));
}
constexpr auto meta_fractional_backward = [](const at::Tensor& grad, const at::Tensor& self, auto... rest) {
  check_fractional_backward<op::fractional_max_pool3d_backward>(grad, self, rest...);
  return output_of_shape(self).allowing({.elsewhere = true});
};

// Throws c10::Error if an index is out of bounds, because the kernels do not check the positions to which they write.
// `kLeast` is 0, or -1 if the kernel accepts that as the index of no maximum. Runs on the engine thread.
template <class Op, int kDims, int kLeast>
void check_indices_on_engine(const at::Tensor& self, const at::Tensor& indices) {
  const int64_t places = c10::multiply_integers(self.sizes().slice(static_cast<size_t>(self.dim() - kDims)));
  TORCH_CHECK(are_within(indices, kLeast, places), Op::name, ": expected indices of at least ", kLeast, " and below ",
              places, ", the elements of a plane of the input; pass the indices that the forward operator returned");
}
at::Tensor& max_pool2d_backward(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef kernel_size,
                                c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation,
                                bool ceil_mode, const at::Tensor& indices, at::Tensor& grad_input) {
  check_indices_on_engine<op::max_pool2d_with_indices_backward, 2, -1>(self, indices);
  return cpu::max_pool2d_with_indices_backward_outf(grad, self, kernel_size, stride, padding, dilation, ceil_mode,
                                                    indices, grad_input);
}
at::Tensor& max_pool3d_backward(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef kernel_size,
                                c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation,
                                bool ceil_mode, const at::Tensor& indices, at::Tensor& grad_input) {
  check_indices_on_engine<op::max_pool3d_with_indices_backward, 3, -1>(self, indices);
  return cpu::max_pool3d_with_indices_backward_outf(grad, self, kernel_size, stride, padding, dilation, ceil_mode,
                                                    indices, grad_input);
}
template <class Op, int kDims, auto* kKernel>
at::Tensor& adaptive_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& indices,
                              at::Tensor& grad_input) {
  check_indices_on_engine<Op, kDims, 0>(self, indices);
  return kKernel(grad, self, indices, grad_input);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kBackward{.refused = kNotFloating, .dtype_match = DtypeMatch::kAllButIndices};
  structured<meta::structured_max_pool2d_with_indices, op::max_pool2d_with_indices>(
      library, cpu::max_pool2d_with_indices_outf, checked(kRealNumbers));
  structured<meta::structured_max_pool2d_with_indices_backward, op::max_pool2d_with_indices_backward>(
      library, max_pool2d_backward, checked(kBackward), {.check = check_max_pool2d_backward});
  unstructured<meta_max_pool3d, op::max_pool3d_with_indices>(library, cpu::max_pool3d_with_indices_outf, kRealNumbers);
  unstructured<meta_max_pool3d_backward, op::max_pool3d_with_indices_backward>(library, max_pool3d_backward, kBackward);
  structured<meta::structured_adaptive_max_pool2d, op::adaptive_max_pool2d>(library, cpu::adaptive_max_pool2d_outf,
                                                                            kFloats);
  structured<meta::structured_adaptive_max_pool2d_backward, op::adaptive_max_pool2d_backward>(
      library, adaptive_backward<op::adaptive_max_pool2d_backward, 2, cpu::adaptive_max_pool2d_backward_outf>,
      kBackward,
      {.check = check_adaptive_backward<op::adaptive_max_pool2d_backward, meta::structured_adaptive_max_pool2d, 2>});
  structured<meta::structured_adaptive_max_pool3d, op::adaptive_max_pool3d>(library, cpu::adaptive_max_pool3d_outf,
                                                                            kFloats);
  structured<meta::structured_adaptive_max_pool3d_backward, op::adaptive_max_pool3d_backward>(
      library, adaptive_backward<op::adaptive_max_pool3d_backward, 3, cpu::adaptive_max_pool3d_backward_outf>,
      kBackward,
      {.check = check_adaptive_backward<op::adaptive_max_pool3d_backward, meta::structured_adaptive_max_pool3d, 3>});
  structured<meta::structured_fractional_max_pool2d, op::fractional_max_pool2d>(
      library, cpu::fractional_max_pool2d_outf, {.refused = kNotFloating, .dtype_match = DtypeMatch::kAll});
  structured<meta::structured_fractional_max_pool2d_backward, op::fractional_max_pool2d_backward>(
      library, cpu::fractional_max_pool2d_backward_outf, kBackward,
      {.check = check_fractional_backward<op::fractional_max_pool2d_backward>});
  structured<meta::structured_fractional_max_pool3d, op::fractional_max_pool3d>(
      library, cpu::fractional_max_pool3d_outf, {.refused = kNotFloating, .dtype_match = DtypeMatch::kAll});
  unstructured<meta_fractional_backward, op::fractional_max_pool3d_backward>(
      library, as_out<cpu::fractional_max_pool3d_backward>, kBackward);
}

}  // namespace

}  // namespace openreg::ops
