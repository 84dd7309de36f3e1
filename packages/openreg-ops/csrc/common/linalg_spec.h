// SPDX-License-Identifier: BSD-3-Clause
// Outputs of linear algebra, as descriptions of the described table give them.
#pragma once

#include <ATen/native/LinearAlgebraUtils.h>

#include "common/output_spec.h"

namespace openreg::ops {

// A batch of matrices in LAPACK's order, which is the order that its functions leave their results in. As an out=
// tensor any dtype will do that the values can be cast to.
inline OutputSpec column_major(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  OutputSpec spec = output_of(sizes, dtype);
  spec.strides = at::native::batched_matrix_contiguous_strides(sizes, /*f_contig=*/true);
  spec.casts = true;
  return spec;
}

}  // namespace openreg::ops
