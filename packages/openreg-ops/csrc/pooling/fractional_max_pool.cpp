// SPDX-License-Identifier: BSD-3-Clause
// Fractional maximum pooling with backward.
#include "declare/declare.h"

namespace openreg::ops {

namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured_fractional_max_pool2d, op::fractional_max_pool2d>(
      library, cpu::fractional_max_pool2d_outf, {.refused = kNotFloating, .agreement = Agreement::kAll});
  structured<meta::structured_fractional_max_pool2d_backward, op::fractional_max_pool2d_backward>(
      library, cpu::fractional_max_pool2d_backward_outf,
      {.refused = kNotFloating, .agreement = Agreement::kAllButIndices});
  structured<meta::structured_fractional_max_pool3d, op::fractional_max_pool3d>(
      library, cpu::fractional_max_pool3d_outf, {.refused = kNotFloating, .agreement = Agreement::kAll});
  described<shape_of_second, op::fractional_max_pool3d_backward>(library, as_out<cpu::fractional_max_pool3d_backward>);
}

}  // namespace

}  // namespace openreg::ops
