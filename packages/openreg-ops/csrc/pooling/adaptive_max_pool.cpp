// SPDX-License-Identifier: BSD-3-Clause
// Adaptive maximum pooling with backward.
#include "declare/declare.h"

namespace openreg::ops {

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured_adaptive_max_pool2d, op::adaptive_max_pool2d>(library, cpu::adaptive_max_pool2d_outf,
                                                                            kFloats);
  structured<meta::structured_adaptive_max_pool2d_backward, op::adaptive_max_pool2d_backward>(
      library, cpu::adaptive_max_pool2d_backward_outf,
      {.refused = kNotFloating, .agreement = Agreement::kAllButIndices});
  structured<meta::structured_adaptive_max_pool3d, op::adaptive_max_pool3d>(library, cpu::adaptive_max_pool3d_outf,
                                                                            kFloats);
  structured<meta::structured_adaptive_max_pool3d_backward, op::adaptive_max_pool3d_backward>(
      library, cpu::adaptive_max_pool3d_backward_outf,
      {.refused = kNotFloating, .agreement = Agreement::kAllButIndices});
}

}  // namespace

}  // namespace openreg::ops
