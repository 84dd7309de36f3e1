// SPDX-License-Identifier: BSD-3-Clause
// Specifications of outputs, and dtype checks, for meta functions of linear algebra.
#pragma once

#include <ATen/native/LinearAlgebraUtils.h>

#include "support/output_spec.h"

namespace openreg::ops {

// Returns the specification of a batch of column-major matrices, because LAPACK's functions leave their results in this
// order. An out= tensor may have any dtype to which the values can be cast.
inline OutputSpec column_major(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  OutputSpec spec = output_of(sizes, dtype).allowing({.casts = true});
  spec.strides = at::native::batched_matrix_contiguous_strides(sizes, /*f_contig=*/true);
  return spec;
}

// Throws c10::NotImplementedError, in PyTorch's words, unless the dtype has single or double precision, because LAPACK
// supports only these.
inline void require_lapack_dtype(const char* kernel, c10::ScalarType dtype) {
  const c10::ScalarType real = c10::toRealValueType(dtype);
  require_dtype(real == c10::ScalarType::Float || real == c10::ScalarType::Double, kernel, dtype);
}

}  // namespace openreg::ops
