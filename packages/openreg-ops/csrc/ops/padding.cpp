// SPDX-License-Identifier: BSD-3-Clause
// Described operators: padding by reflection and replication, and the windows of unfold and fold. The rest stands in
// the structured table.
#include "common/as_out.h"
#include "common/described.h"
#include "common/torch_versions.h"

#include <ATen/native/im2col_shape_check.h>
#include <ATen/ops/col2im_cpu_dispatch.h>
#include <ATen/ops/col2im_ops.h>
#include <ATen/ops/im2col_cpu_dispatch.h>
#include <ATen/ops/im2col_ops.h>
#include <ATen/ops/reflection_pad2d_backward_cpu_dispatch.h>
#include <ATen/ops/reflection_pad2d_backward_ops.h>
#include <ATen/ops/reflection_pad2d_cpu_dispatch.h>
#include <ATen/ops/reflection_pad2d_ops.h>
#include <ATen/ops/replication_pad2d_backward_cpu_dispatch.h>
#include <ATen/ops/replication_pad2d_backward_ops.h>
#include <ATen/ops/replication_pad3d_backward_cpu_dispatch.h>
#include <ATen/ops/replication_pad3d_backward_ops.h>

namespace openreg::ops {

namespace {

OutputSpec describe_reflection(const at::Tensor& self, c10::IntArrayRef padding) {
  check_padding<2>(self, padding);
  const int64_t height = self.size(-2);
  const int64_t width = self.size(-1);
  TORCH_CHECK(padding[0] < width && padding[1] < width,
              "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
              padding[0], ", ", padding[1], ") at dimension ", self.dim() - 1, " of input ", self.sizes());
  TORCH_CHECK(padding[2] < height && padding[3] < height,
              "Argument #6: Padding size should be less than the corresponding input dimension, but got: padding (",
              padding[2], ", ", padding[3], ") at dimension ", self.dim() - 2, " of input ", self.sizes());
  const int64_t out_height = height + padding[2] + padding[3];
  const int64_t out_width = width + padding[0] + padding[1];
  TORCH_CHECK(out_width >= 1 || out_height >= 1, "input (H: ", height, ", W: ", width,
              ") is too small. Calculated output H: ", out_height, " W: ", out_width);
  OutputSpec spec = output_of_shape(self);
  spec.sizes[spec.sizes.size() - 2] = out_height;
  spec.sizes[spec.sizes.size() - 1] = out_width;
  spec.format = self.suggest_memory_format();
  return spec;
}

// The derivative has the shape of the input and its memory format, and the gradient that of the output.
template <int kDims>
OutputSpec describe_backward(const at::Tensor& grad, const at::Tensor& self, c10::IntArrayRef padding) {
  TORCH_CHECK(padding.size() == 2 * kDims, "padding size is expected to be ", 2 * kDims, ", but got: ", padding.size());
  for (int64_t i = 0; i < kDims; ++i) {
    const int64_t expected = self.size(-1 - i) + padding[2 * i] + padding[2 * i + 1];
    TORCH_CHECK(grad.size(-1 - i) == expected, "grad_output size along dimension ", self.dim() - 1 - i,
                " unexpected. Expected: ", expected, ", Got: ", grad.size(-1 - i));
  }
  OutputSpec spec = output_of_shape(self);
  spec.format = self.suggest_memory_format();
  return spec;
}

void check_pairs(c10::IntArrayRef kernel, c10::IntArrayRef dilation, c10::IntArrayRef padding,
                 c10::IntArrayRef stride) {
  TORCH_CHECK(kernel.size() == 2, "It is expected kernel_size equals to 2, but got size ", kernel.size());
  TORCH_CHECK(dilation.size() == 2, "It is expected dilation equals to 2, but got size ", dilation.size());
  TORCH_CHECK(padding.size() == 2, "It is expected padding equals to 2, but got size ", padding.size());
  TORCH_CHECK(stride.size() == 2, "It is expected stride equals to 2, but got size ", stride.size());
}

// Places of a window along a dimension.
int64_t window_count(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
  return (size + 2 * padding - (dilation * (kernel - 1) + 1)) / stride + 1;
}

OutputSpec describe_im2col(const at::Tensor& self, c10::IntArrayRef kernel, c10::IntArrayRef dilation,
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

OutputSpec describe_col2im(const at::Tensor& self, c10::IntArrayRef output_size, c10::IntArrayRef kernel,
                           c10::IntArrayRef dilation, c10::IntArrayRef padding, c10::IntArrayRef stride) {
  TORCH_CHECK(output_size.size() == 2, "It is expected output_size equals to 2, but got size ", output_size.size());
  check_pairs(kernel, dilation, padding, stride);
  at::native::col2im_shape_check(self, at::Tensor(), output_size[0], output_size[1], kernel[0], kernel[1], dilation[0],
                                 dilation[1], padding[0], padding[1], stride[0], stride[1]);
  c10::DimVector sizes(self.sizes().slice(0, self.dim() - 1));
  sizes.back() /= kernel[0] * kernel[1];
  sizes.push_back(output_size[0]);
  sizes.push_back(output_size[1]);
  return output_of(sizes, self.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED_OUT(library, reflection_pad2d, reflection_pad2d_out, at::cpu::reflection_pad2d_outf,
                        describe_reflection)
  OPENREG_DESCRIBED_OUT(library, reflection_pad2d_backward, reflection_pad2d_backward_grad_input,
                        at::cpu::reflection_pad2d_backward_outf, describe_backward<2>)
  OPENREG_DESCRIBED_OUT(library, replication_pad2d_backward, replication_pad2d_backward_grad_input,
                        at::cpu::replication_pad2d_backward_outf, describe_backward<2>)
  OPENREG_DESCRIBED_OUT(library, replication_pad3d_backward, replication_pad3d_backward_grad_input,
                        at::cpu::replication_pad3d_backward_outf, describe_backward<3>)
  OPENREG_DESCRIBED_OUT(library, im2col, im2col_out, AsOut<&at::cpu::im2col>::call, describe_im2col)
  OPENREG_DESCRIBED_OUT(library, col2im, col2im_out, AsOut<&at::cpu::col2im>::call, describe_col2im)
}

}  // namespace

}  // namespace openreg::ops
