// SPDX-License-Identifier: BSD-3-Clause
// unfold and fold, which turn the windows of a convolution into columns of a matrix, and back.
#include <ATen/native/im2col_shape_check.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

void check_pairs(c10::IntArrayRef kernel, c10::IntArrayRef dilation, c10::IntArrayRef padding,
                 c10::IntArrayRef stride) {
  TORCH_CHECK(kernel.size() == 2, "It is expected kernel_size equals to 2, but got size ", kernel.size());
  TORCH_CHECK(dilation.size() == 2, "It is expected dilation equals to 2, but got size ", dilation.size());
  TORCH_CHECK(padding.size() == 2, "It is expected padding equals to 2, but got size ", padding.size());
  TORCH_CHECK(stride.size() == 2, "It is expected stride equals to 2, but got size ", stride.size());
}

// Returns the number of positions of a window along a dimension.
int64_t window_count(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
  return (size + 2 * padding - (dilation * (kernel - 1) + 1)) / stride + 1;
}

OutputSpec meta_im2col(const at::Tensor& self, c10::IntArrayRef kernel, c10::IntArrayRef dilation,
                       c10::IntArrayRef padding, c10::IntArrayRef stride) {
  check_pairs(kernel, dilation, padding, stride);
  at::native::im2col_shape_check(self, at::Tensor(), kernel[0], kernel[1], dilation[0], dilation[1], padding[0],
                                 padding[1], stride[0], stride[1]);
  const int64_t rows = window_count(self.size(-2), kernel[0], dilation[0], padding[0], stride[0]);
  const int64_t columns = window_count(self.size(-1), kernel[1], dilation[1], padding[1], stride[1]);
  c10::DimVector sizes(self.sizes().slice(0, self.dim() - 2));
  sizes.back() *= kernel[0] * kernel[1];
  sizes.push_back(rows * columns);
  return output_of(sizes, self.scalar_type());
}

OutputSpec meta_col2im(const at::Tensor& self, c10::IntArrayRef output_size, c10::IntArrayRef kernel,
                       c10::IntArrayRef dilation, c10::IntArrayRef padding, c10::IntArrayRef stride) {
  TORCH_CHECK(output_size.size() == 2, "It is expected output_size equals to 2, but got size ", output_size.size());
  check_pairs(kernel, dilation, padding, stride);
  at::native::col2im_shape_check(self, at::Tensor(), output_size[0], output_size[1], kernel[0], kernel[1], dilation[0],
                                 dilation[1], padding[0], padding[1], stride[0], stride[1]);
  c10::DimVector sizes(self.sizes().slice(0, self.dim() - 1));
  sizes.back() /= kernel[0] * kernel[1];
  sizes.append(output_size.begin(), output_size.end());
  return output_of(sizes, self.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_im2col, op::im2col>(library, as_out<cpu::im2col>, {.refused = kIntegers});
  unstructured<meta_col2im, op::col2im>(library, as_out<cpu::col2im>, {.refused = kIntegers});
}

}  // namespace

}  // namespace openreg::ops
