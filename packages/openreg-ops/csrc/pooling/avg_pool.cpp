// SPDX-License-Identifier: BSD-3-Clause
// Average pooling with backward. The CPU pools volumes of half precision in no kernel; here they are pooled in float.
#include "declare/declare.h"

namespace openreg::ops {

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured_avg_pool2d, op::avg_pool2d>(
      library, cpu::avg_pool2d_outf, {.refused = kBoolean | kShortIntegers | kComplex, .overlap = kNotItself});
  structured<meta::structured_avg_pool2d_backward, op::avg_pool2d_backward>(
      library, cpu::avg_pool2d_backward_outf,
      {.refused = kBoolean | kShortIntegers | kComplex, .agreement = Agreement::kAll});
  structured<meta::structured_avg_pool3d, op::avg_pool3d>(library, computed_in<reduced_as_float, cpu::avg_pool3d_outf>,
                                                          {.refused = kBoolean | kShortIntegers | kComplex});
  structured<meta::structured_avg_pool3d_backward, op::avg_pool3d_backward>(
      library, computed_in<reduced_as_float, cpu::avg_pool3d_backward_outf>,
      {.refused = kBoolean | kShortIntegers | kComplex, .agreement = Agreement::kAll});
}

}  // namespace

}  // namespace openreg::ops
