// SPDX-License-Identifier: BSD-3-Clause
// Outputs of pooling, as descriptions give them.
#pragma once

#include <algorithm>

#include "common/output_spec.h"

namespace openreg::ops {

// The operand's sizes with the last ones replaced, in its memory format.
inline OutputSpec with_last_sizes(const at::Tensor& self, c10::IntArrayRef last) {
  OutputSpec spec = output_of_shape(self);
  std::copy(last.begin(), last.end(), spec.sizes.end() - static_cast<std::ptrdiff_t>(last.size()));
  spec.format = self.suggest_memory_format();
  return spec;
}

}  // namespace openreg::ops
