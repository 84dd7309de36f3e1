// SPDX-License-Identifier: BSD-3-Clause
// Average pooling with backward: avg_pool and adaptive_avg_pool. The CPU's avg_pool takes volumes of half precision in
// no kernel; here they are pooled in float.
#include "declare/declare.h"

namespace openreg::ops {

namespace {

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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelRule kBackward{.refused = kBoolean | kShortIntegers | kComplex, .agreement = Agreement::kAll};
  structured<meta::structured_avg_pool2d, op::avg_pool2d>(
      library, cpu::avg_pool2d_outf,
      checked(KernelRule{.refused = kBoolean | kShortIntegers | kComplex, .overlap = kNotItself}));
  structured<meta::structured_avg_pool2d_backward, op::avg_pool2d_backward>(library, cpu::avg_pool2d_backward_outf,
                                                                            checked(kBackward));
  structured<meta::structured_avg_pool3d, op::avg_pool3d>(library, computed_in<reduced_as_float, cpu::avg_pool3d_outf>,
                                                          {.refused = kBoolean | kShortIntegers | kComplex});
  structured<meta::structured_avg_pool3d_backward, op::avg_pool3d_backward>(
      library, computed_in<reduced_as_float, cpu::avg_pool3d_backward_outf>, kBackward);
  described<describe_adaptive<2>, op::_adaptive_avg_pool2d>(library, cpu::_adaptive_avg_pool2d, kFloats);
  described<describe_adaptive_out, op::adaptive_avg_pool2d_out>(library, cpu::adaptive_avg_pool2d_outf);
  described<format_of_second, op::_adaptive_avg_pool2d_backward>(library, cpu::_adaptive_avg_pool2d_backward);
  described<describe_adaptive<3>, op::_adaptive_avg_pool3d>(library, cpu::_adaptive_avg_pool3d, kFloats);
  described<describe_adaptive_out, op::adaptive_avg_pool3d_out>(library, cpu::adaptive_avg_pool3d_outf);
  described<shape_of_second, op::_adaptive_avg_pool3d_backward>(library, cpu::_adaptive_avg_pool3d_backward);
  described<shape_of_second, op::adaptive_avg_pool3d_backward_grad_input>(library,
                                                                          cpu::adaptive_avg_pool3d_backward_outf);
}

}  // namespace

}  // namespace openreg::ops
