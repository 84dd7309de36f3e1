// SPDX-License-Identifier: BSD-3-Clause
// The Cholesky factorization of positive-definite matrices, and inverses and solutions computed from it.
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_cholesky_ex.h>

#include "operators/linalg/outputs.h"
#include "registration/declare.h"
#include "support/torch_versions.h"

namespace openreg::ops {

namespace {

constexpr Operator kInverse{"aten::cholesky_inverse"};

// Sets `info` as LAPACK does: to the position of the first zero on the diagonal, counted from 1, or to 0. Does not
// write the result if there is such a zero, because there is no inverse then.
void invert_kernel(const at::Tensor& self, bool upper, at::Tensor& result, at::Tensor& info) {
  const at::Tensor is_zero = self.diagonal(0, -2, -1).eq(0);
  info.zero_();
  if (is_zero.numel() == 0) {
    return;
  }
  info.copy_(is_zero.to(at::kInt).argmax(-1).add(1).mul(is_zero.any(-1)));
  if (!is_zero.any().item<bool>()) {
    result.copy_(cpu::cholesky_inverse(self, upper));
  }
}

at::Tensor invert(const at::Tensor& self, bool upper) {
  at::native::squareCheckInputs(self, "cholesky_inverse");
  require_lapack_dtype("cholesky_inverse_cpu", self.scalar_type());
  const OperandDeviceGuard device(kInverse, self);
  at::Tensor result = allocate_output(column_major(self.sizes(), self.scalar_type()), device);
  at::Tensor info = make_output(self.sizes().slice(0, self.dim() - 2), {}, self.options().dtype(at::kInt));
  launch_out_kernel<2>(kInverse, device, &invert_kernel, {result, info}, self, upper);
  at::_linalg_check_errors(info, "cholesky_inverse", self.dim() == 2);
  return result;
}

at::Tensor& invert_out(const at::Tensor& self, bool upper, at::Tensor& out) {
  const OperandDeviceGuard device(kInverse, self, out);
  at::native::checkLinalgCompatibleDtype("cholesky_inverse", out, self);
  const at::Tensor result = invert(self, upper);
  resize_out(out, result.sizes(), result.strides(), out.options());
  return out.copy_(result);
}

#if OPENREG_TORCH_HAS_CHOLESKY

// Implements torch.cholesky(), which PyTorch had until 2.13. Blocks to read `info`, as on a GPU, and throws if a matrix
// is not positive-definite.
at::Tensor factorize(const at::Tensor& self, bool upper) {
  TORCH_WARN_ONCE(
      "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch release; "
      "torch.cholesky(A) is torch.linalg.cholesky(A), and with upper=True it is torch.linalg.cholesky(A).mH");
  if (self.numel() == 0) {
    return at::empty_like(self, at::MemoryFormat::Contiguous);
  }
  at::native::squareCheckInputs(self, "cholesky");
  require_lapack_dtype("cholesky_cpu", self.scalar_type());
  const auto [factor, info] = at::linalg_cholesky_ex(self, upper);
  at::_linalg_check_errors(info, "cholesky", self.dim() == 2);
  return factor;
}

at::Tensor& factorize_out(const at::Tensor& self, bool upper, at::Tensor& out) {
  const OperandDeviceGuard device({"aten::cholesky"}, self, out);
  at::native::checkLinalgCompatibleDtype("cholesky", out, self);
  const at::Tensor factor = factorize(self, upper);
  resize_out(out, factor.sizes(), {}, out.options());
  return out.copy_(factor);
}

#endif

OutputSpec meta_cholesky_solve(const at::Tensor& self, const at::Tensor& /*factor*/, bool /*upper*/) {
  require_lapack_dtype("cholesky_solve_cpu", self.scalar_type());
  return column_major(self.sizes(), self.scalar_type());  // cholesky_solve() has checked and expanded the operands
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
#if OPENREG_TORCH_HAS_CHOLESKY
  function<op::cholesky>(library, factorize);
  function<op::cholesky_out>(library, factorize_out);
#endif
  function<op::cholesky_inverse>(library, invert);
  function<op::cholesky_inverse_out>(library, invert_out);
  unstructured<meta_cholesky_solve, op::_cholesky_solve_helper>(library, cpu::_cholesky_solve_helper);
  structured<meta::structured_linalg_cholesky_ex, op::linalg_cholesky_ex>(
      library, cpu::linalg_cholesky_ex_outf,
      {.refused = kReduced, .data_check = DataCheck::kIfCheckErrors, .overlap = kNotItself});
}

}  // namespace

}  // namespace openreg::ops
