// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: comparisons and bit operations.
#include "common/structured.h"

#include <ATen/ops/bitwise_and_cpu_dispatch.h>
#include <ATen/ops/bitwise_and_meta.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_left_shift_cpu_dispatch.h>
#include <ATen/ops/bitwise_left_shift_meta.h>
#include <ATen/ops/bitwise_left_shift_ops.h>
#include <ATen/ops/bitwise_not_cpu_dispatch.h>
#include <ATen/ops/bitwise_not_meta.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/bitwise_or_cpu_dispatch.h>
#include <ATen/ops/bitwise_or_meta.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bitwise_right_shift_cpu_dispatch.h>
#include <ATen/ops/bitwise_right_shift_meta.h>
#include <ATen/ops/bitwise_right_shift_ops.h>
#include <ATen/ops/bitwise_xor_cpu_dispatch.h>
#include <ATen/ops/bitwise_xor_meta.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/eq_cpu_dispatch.h>
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/ge_cpu_dispatch.h>
#include <ATen/ops/ge_meta.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_cpu_dispatch.h>
#include <ATen/ops/gt_meta.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/isneginf_cpu_dispatch.h>
#include <ATen/ops/isneginf_meta.h>
#include <ATen/ops/isneginf_ops.h>
#include <ATen/ops/isposinf_cpu_dispatch.h>
#include <ATen/ops/isposinf_meta.h>
#include <ATen/ops/isposinf_ops.h>
#include <ATen/ops/le_cpu_dispatch.h>
#include <ATen/ops/le_meta.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lt_cpu_dispatch.h>
#include <ATen/ops/lt_meta.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/ne_cpu_dispatch.h>
#include <ATen/ops/ne_meta.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/signbit_cpu_dispatch.h>
#include <ATen/ops/signbit_meta.h>
#include <ATen/ops/signbit_ops.h>

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_STRUCTURED_INPLACE(library, bitwise_and_Tensor, bitwise_and_Tensor_out, bitwise_and__Tensor, bitwise_and)
  OPENREG_STRUCTURED_INPLACE(library, bitwise_left_shift_Tensor, bitwise_left_shift_Tensor_out,
                             bitwise_left_shift__Tensor, bitwise_left_shift)
  OPENREG_STRUCTURED_INPLACE(library, bitwise_not, bitwise_not_out, bitwise_not_, bitwise_not)
  OPENREG_STRUCTURED_INPLACE(library, bitwise_or_Tensor, bitwise_or_Tensor_out, bitwise_or__Tensor, bitwise_or)
  OPENREG_STRUCTURED_INPLACE(library, bitwise_right_shift_Tensor, bitwise_right_shift_Tensor_out,
                             bitwise_right_shift__Tensor, bitwise_right_shift)
  OPENREG_STRUCTURED_INPLACE(library, bitwise_xor_Tensor, bitwise_xor_Tensor_out, bitwise_xor__Tensor, bitwise_xor)
  OPENREG_STRUCTURED_INPLACE(library, eq_Scalar, eq_Scalar_out, eq__Scalar, eq)
  OPENREG_STRUCTURED_INPLACE(library, eq_Tensor, eq_Tensor_out, eq__Tensor, eq)
  OPENREG_STRUCTURED_INPLACE(library, ge_Scalar, ge_Scalar_out, ge__Scalar, ge)
  OPENREG_STRUCTURED_INPLACE(library, ge_Tensor, ge_Tensor_out, ge__Tensor, ge)
  OPENREG_STRUCTURED_INPLACE(library, gt_Scalar, gt_Scalar_out, gt__Scalar, gt)
  OPENREG_STRUCTURED_INPLACE(library, gt_Tensor, gt_Tensor_out, gt__Tensor, gt)
  OPENREG_STRUCTURED(library, isneginf, isneginf_out, isneginf)
  OPENREG_STRUCTURED(library, isposinf, isposinf_out, isposinf)
  OPENREG_STRUCTURED_INPLACE(library, le_Scalar, le_Scalar_out, le__Scalar, le)
  OPENREG_STRUCTURED_INPLACE(library, le_Tensor, le_Tensor_out, le__Tensor, le)
  OPENREG_STRUCTURED_INPLACE(library, lt_Scalar, lt_Scalar_out, lt__Scalar, lt)
  OPENREG_STRUCTURED_INPLACE(library, lt_Tensor, lt_Tensor_out, lt__Tensor, lt)
  OPENREG_STRUCTURED_INPLACE(library, ne_Scalar, ne_Scalar_out, ne__Scalar, ne)
  OPENREG_STRUCTURED_INPLACE(library, ne_Tensor, ne_Tensor_out, ne__Tensor, ne)
  OPENREG_STRUCTURED(library, signbit, signbit_out, signbit)
}
