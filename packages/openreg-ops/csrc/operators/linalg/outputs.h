// SPDX-License-Identifier: BSD-3-Clause
// Outputs of linear algebra, as descriptions give them.
#pragma once

#include <ATen/native/LinearAlgebraUtils.h>

#include "support/output_spec.h"

namespace openreg::ops {

// A batch of matrices in LAPACK's order, which is the order that its functions leave their results in. As an out=
// tensor any dtype will do that the values can be cast to.
inline OutputSpec column_major(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  OutputSpec spec = output_of(sizes, dtype).allowing({.casts = true});
  spec.strides = at::native::batched_matrix_contiguous_strides(sizes, /*f_contig=*/true);
  return spec;
}

// LAPACK has single and double precision. Throws c10::NotImplementedError, in PyTorch's words, for other dtypes.
inline void require_lapack_dtype(const char* kernel, c10::ScalarType dtype) {
  const c10::ScalarType real = c10::toRealValueType(dtype);
  require_dtype(real == c10::ScalarType::Float || real == c10::ScalarType::Double, kernel, dtype);
}

}  // namespace openreg::ops
