// SPDX-License-Identifier: BSD-3-Clause
// Described operators: pooling in three dimensions, unpooling, and out= forms of adaptive average pooling.
#include "common/as_out.h"
#include "common/described.h"

#include <ATen/Context.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/_adaptive_avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool3d_backward_ops.h>
#include <ATen/ops/_adaptive_avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool3d_ops.h>
#include <ATen/ops/adaptive_avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool2d_ops.h>
#include <ATen/ops/adaptive_avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool3d_backward_ops.h>
#include <ATen/ops/adaptive_avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/adaptive_avg_pool3d_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fractional_max_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/fractional_max_pool3d_backward_ops.h>
#include <ATen/ops/max_pool3d_with_indices_backward_cpu_dispatch.h>
#include <ATen/ops/max_pool3d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool3d_with_indices_cpu_dispatch.h>
#include <ATen/ops/max_pool3d_with_indices_ops.h>
#include <ATen/ops/max_unpool2d_ops.h>
#include <ATen/ops/max_unpool3d_ops.h>

#include <c10/util/accumulate.h>

#include "common/pointwise_spec.h"

namespace openreg::ops {

namespace {

// The operand's sizes with the last ones replaced, in its memory format.
OutputSpec with_last_sizes(const at::Tensor& self, c10::IntArrayRef last) {
  OutputSpec spec = output_of_shape(self);
  std::copy(last.begin(), last.end(), spec.sizes.end() - static_cast<std::ptrdiff_t>(last.size()));
  spec.format = self.suggest_memory_format();
  return spec;
}

template <int kDims>
OutputSpec describe_adaptive(const at::Tensor& self, c10::IntArrayRef output_size) {
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

OutputSpec describe_adaptive_out(const at::Tensor& self, c10::IntArrayRef output_size, const at::Tensor& /*out*/) {
  return self.dim() > 2 && output_size.size() == 3 ? describe_adaptive<3>(self, output_size)
                                                   : describe_adaptive<2>(self, output_size);
}

// Three numbers, from one for all or three; without a stride, the kernel's size.
std::array<int, 3> triple(c10::IntArrayRef given, const char* what) {
  TORCH_CHECK(given.size() == 1 || given.size() == 3, "max_pool3d: ", what,
              " must be either a single int, or a tuple of three ints");
  std::array<int, 3> result;
  for (size_t i = 0; i < 3; ++i) {
    result[i] = static_cast<int>(given.size() == 1 ? given[0] : given[i]);
  }
  return result;
}

std::array<OutputSpec, 2> describe_max_pool3d(const at::Tensor& self, c10::IntArrayRef kernel_size,
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
    // A volume without a batch.
    const auto strides = c10::get_channels_last_strides_3d({1, values.sizes[0], out[0], out[1], out[2]});
    values.strides = c10::DimVector(strides.begin() + 1, strides.end());
    values.format = c10::MemoryFormat::Contiguous;
  }
  OutputSpec indices = values;
  indices.dtype = at::kLong;
  return {values, indices};
}

OutputSpec derivative_of_pool(const at::Tensor& /*grad*/, const at::Tensor& self) {
  return with_last_sizes(self, {});
}

// A derivative in the memory format of the input.
constexpr auto describe_pool_backward = [](const at::Tensor& grad, const at::Tensor& self, const auto&... /*rest*/) {
  return derivative_of_pool(grad, self);
};

template <int kDims>
OutputSpec describe_unpool(const at::Tensor& self, const at::Tensor& indices, c10::IntArrayRef output_size) {
  at::globalContext().alertNotDeterministic(kDims == 2 ? "max_unpooling2d_forward_out" : "max_unpooling3d_forward_out");
  const bool is_served = at::isFloatingType(self.scalar_type()) && (dtype_bit(self.scalar_type()) & kCommonDtypes) != 0;
  require_dtype(is_served, "max_unpooling", self.scalar_type());
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(output_size.size() == kDims, "There should be exactly ", kDims == 2 ? "two" : "three", " elements ",
              kDims == 2 ? "(height, width)" : "(depth, height, width)", " in output_size, but got ",
              output_size.size(), " elements.");
  TORCH_CHECK(self.dim() == kDims + 1 || self.dim() == kDims + 2, "Input to max_unpooling", kDims, "d should be a ",
              kDims + 1, "d or ", kDims + 2, "d Tensor, but got a tensor with dim ", self.dim());
  TORCH_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
              self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t i = 1; i < self.dim(); ++i) {
    TORCH_CHECK(self.size(i) > 0, "max_unpooling", kDims,
                "d(): Expected input to have non-zero size for non-batch dimensions, but got ", self.sizes(),
                " with dimension ", i, " being empty.");
  }
  OutputSpec spec = with_last_sizes(self, output_size);
  spec.format = kDims == 2 ? spec.format : c10::MemoryFormat::Contiguous;
  return spec;
}

OutputSpec describe_unpool3d(const at::Tensor& self, const at::Tensor& indices, c10::IntArrayRef output_size,
                             c10::IntArrayRef stride, c10::IntArrayRef padding) {
  TORCH_CHECK(stride.size() == 3,
              "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(),
              " elements.");
  TORCH_CHECK(padding.size() == 3,
              "There should be exactly three elements (depth, height, width) in padding, but got: ", padding.size(),
              " elements.");
  TORCH_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0,
              "strides should be greater than zero, but got stride: ", stride);
  return describe_unpool<3>(self, indices, output_size);
}

// By another kernel: at::cpu::max_unpool* ask, when they run, whether algorithms have to be deterministic. That was
// answered at the launch.
template <int kDims>
void unpool(const at::Tensor& self, const at::Tensor& indices, at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  at::Tensor dense = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  const int64_t planes = c10::multiply_integers(out.sizes().slice(0, static_cast<size_t>(out.dim() - kDims)));
  dense.zero_().view({planes, -1}).scatter_(1, indices.reshape({planes, -1}), self.reshape({planes, -1}));
  if (!dense.is_same(out)) {
    out.copy_(dense);
  }
}

at::Tensor& unpool2d(const at::Tensor& self, const at::Tensor& indices, c10::IntArrayRef /*output_size*/,
                     at::Tensor& out) {
  unpool<2>(self, indices, out);
  return out;
}

at::Tensor& unpool3d(const at::Tensor& self, const at::Tensor& indices, c10::IntArrayRef /*output_size*/,
                     c10::IntArrayRef /*stride*/, c10::IntArrayRef /*padding*/, at::Tensor& out) {
  unpool<3>(self, indices, out);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED_OUT_ONLY(library, adaptive_avg_pool2d_out, at::cpu::adaptive_avg_pool2d_outf, describe_adaptive_out)
  OPENREG_DESCRIBED_OUT_ONLY(library, adaptive_avg_pool3d_out, at::cpu::adaptive_avg_pool3d_outf, describe_adaptive_out)
  OPENREG_DESCRIBED(library, _adaptive_avg_pool3d, at::cpu::_adaptive_avg_pool3d, describe_adaptive<3>)
  OPENREG_DESCRIBED(library, _adaptive_avg_pool3d_backward, at::cpu::_adaptive_avg_pool3d_backward, shape_of_second)
  OPENREG_DESCRIBED_OUT_ONLY(library, adaptive_avg_pool3d_backward_grad_input,
                             at::cpu::adaptive_avg_pool3d_backward_outf, shape_of_second)
  OPENREG_DESCRIBED_OUT(library, fractional_max_pool3d_backward, fractional_max_pool3d_backward_grad_input,
                        AsOut<&at::cpu::fractional_max_pool3d_backward>::call, shape_of_second)
  OPENREG_DESCRIBED_OUT(library, max_pool3d_with_indices, max_pool3d_with_indices_out,
                        at::cpu::max_pool3d_with_indices_outf, describe_max_pool3d)
  OPENREG_DESCRIBED_OUT(library, max_pool3d_with_indices_backward, max_pool3d_with_indices_backward_grad_input,
                        at::cpu::max_pool3d_with_indices_backward_outf, describe_pool_backward)
  OPENREG_DESCRIBED_OUT(library, max_unpool2d, max_unpool2d_out, unpool2d, describe_unpool<2>)
  OPENREG_DESCRIBED_OUT(library, max_unpool3d, max_unpool3d_out, unpool3d, describe_unpool3d)
}

}  // namespace

}  // namespace openreg::ops
