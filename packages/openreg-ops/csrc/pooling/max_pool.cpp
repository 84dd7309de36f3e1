// SPDX-License-Identifier: BSD-3-Clause
// Maximum pooling with backward: max_pool, adaptive_max_pool and fractional_max_pool. Where PyTorch
// has no meta function, as of max_pool in three dimensions, the shapes are ours to check.
#include <ATen/native/Pool.h>

#include "declare/declare.h"

namespace openreg::ops {

namespace {

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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelRule kBackward{.refused = kNotFloating, .agreement = Agreement::kAllButIndices};
  structured<meta::structured_max_pool2d_with_indices, op::max_pool2d_with_indices>(
      library, cpu::max_pool2d_with_indices_outf, checked(kRealNumbers));
  structured<meta::structured_max_pool2d_with_indices_backward, op::max_pool2d_with_indices_backward>(
      library, cpu::max_pool2d_with_indices_backward_outf, checked(kBackward));
  described<describe_max_pool3d, op::max_pool3d_with_indices>(library, cpu::max_pool3d_with_indices_outf, kRealNumbers);
  described<format_of_second, op::max_pool3d_with_indices_backward>(library,
                                                                    cpu::max_pool3d_with_indices_backward_outf);
  structured<meta::structured_adaptive_max_pool2d, op::adaptive_max_pool2d>(library, cpu::adaptive_max_pool2d_outf,
                                                                            kFloats);
  structured<meta::structured_adaptive_max_pool2d_backward, op::adaptive_max_pool2d_backward>(
      library, cpu::adaptive_max_pool2d_backward_outf, kBackward);
  structured<meta::structured_adaptive_max_pool3d, op::adaptive_max_pool3d>(library, cpu::adaptive_max_pool3d_outf,
                                                                            kFloats);
  structured<meta::structured_adaptive_max_pool3d_backward, op::adaptive_max_pool3d_backward>(
      library, cpu::adaptive_max_pool3d_backward_outf, kBackward);
  structured<meta::structured_fractional_max_pool2d, op::fractional_max_pool2d>(
      library, cpu::fractional_max_pool2d_outf, {.refused = kNotFloating, .agreement = Agreement::kAll});
  structured<meta::structured_fractional_max_pool2d_backward, op::fractional_max_pool2d_backward>(
      library, cpu::fractional_max_pool2d_backward_outf, kBackward);
  structured<meta::structured_fractional_max_pool3d, op::fractional_max_pool3d>(
      library, cpu::fractional_max_pool3d_outf, {.refused = kNotFloating, .agreement = Agreement::kAll});
  described<shape_of_second, op::fractional_max_pool3d_backward>(library, as_out<cpu::fractional_max_pool3d_backward>);
}

}  // namespace

}  // namespace openreg::ops
