// SPDX-License-Identifier: BSD-3-Clause
#include "launch/derivative.h"

#include <ATen/ExpandUtils.h>
#include <c10/util/Exception.h>

namespace openreg::ops {

namespace {

// The end of errors about shapes and dtypes.
constexpr const char* kWayOut = "; pass the gradient of what the forward operator gives, and what it saved, unchanged";

}  // namespace

void expect(const char* op, const char* what, const at::Tensor& operand, c10::IntArrayRef sizes,
            c10::ScalarType dtype) {
  TORCH_CHECK(!operand.defined() || (operand.sizes() == sizes && operand.scalar_type() == dtype), op, " on ",
              operand.device(), ": ", what, " has the shape ", operand.sizes(), " and the type ", operand.scalar_type(),
              ", but for these operands it has to have the shape ", sizes, " and the type ", dtype, kWayOut);
}

void expect_count(const char* op, const char* what, const at::Tensor& operand, int64_t count, c10::ScalarType dtype) {
  TORCH_CHECK(!operand.defined() || (operand.numel() == count && operand.scalar_type() == dtype), op, " on ",
              operand.device(), ": ", what, " has the shape ", operand.sizes(), " and the type ", operand.scalar_type(),
              ", but for these operands it has to have ", count, " elements of the type ", dtype, kWayOut);
}

void expect_expandable(const char* op, const char* what, const at::Tensor& operand, c10::IntArrayRef sizes,
                       c10::ScalarType dtype) {
  TORCH_CHECK(!operand.defined() || (at::is_expandable_to(operand.sizes(), sizes) && operand.scalar_type() == dtype),
              op, " on ", operand.device(), ": ", what, " has the shape ", operand.sizes(), " and the type ",
              operand.scalar_type(), ", but for these operands it has to be broadcast to the shape ", sizes,
              " and to have the type ", dtype, kWayOut);
}

void expect_dim(const char* op, const char* what, const at::Tensor& operand, int64_t dim) {
  TORCH_CHECK(operand.dim() == dim, op, " on ", operand.device(), ": ", what, " has the shape ", operand.sizes(),
              ", but has to have ", dim, " dimensions");
}

}  // namespace openreg::ops
