// SPDX-License-Identifier: BSD-3-Clause
// torch.cholesky(), which PyTorch had until 2.13; torch.linalg.cholesky() is in the structured table.
#include "common/torch_versions.h"

#if OPENREG_TORCH_HAS_CHOLESKY

#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_cholesky_ex.h>

#include "common/described.h"
#include "common/linalg_spec.h"

namespace openreg::ops {

namespace {

// A matrix that is not positive-definite shows when the host reads `info`, which waits, as on a GPU.
at::Tensor factorize(const at::Tensor& self, bool upper) {
  TORCH_WARN_ONCE(
      "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch release; "
      "torch.cholesky(A) is torch.linalg.cholesky(A), and with upper=True it is torch.linalg.cholesky(A).mH");
  at::native::squareCheckInputs(self, "cholesky");
  if (self.numel() == 0) {
    return at::empty_like(self, at::MemoryFormat::Contiguous);
  }
  require_lapack_dtype("cholesky_cpu", self.scalar_type());
  const auto [factor, info] = at::linalg_cholesky_ex(self, upper);
  at::_linalg_check_errors(info, "cholesky", self.dim() == 2);
  return factor;
}

at::Tensor& factorize_out(const at::Tensor& self, bool upper, at::Tensor& out) {
  check_same_device("aten::cholesky", device_of("aten::cholesky", self, out), self, out);
  at::native::checkLinalgCompatibleDtype("cholesky", out, self);
  const at::Tensor factor = factorize(self, upper);
  resize_out(out, factor.sizes(), {}, out.options());
  return out.copy_(factor);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("cholesky", TORCH_FN(factorize));
  library.impl("cholesky.out", TORCH_FN(factorize_out));
}

}  // namespace

}  // namespace openreg::ops

#endif
