// SPDX-License-Identifier: BSD-3-Clause
// Factorisations that are not structured (QR in LAPACK's form), and what is made of them.
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/cholesky_inverse_cpu_dispatch.h>
#include <ATen/ops/geqrf_cpu_dispatch.h>
#include <ATen/ops/geqrf_ops.h>
#include <ATen/ops/linalg_householder_product_cpu_dispatch.h>
#include <ATen/ops/linalg_householder_product_ops.h>
#include <ATen/ops/ormqr_cpu_dispatch.h>
#include <ATen/ops/ormqr_ops.h>

#include "common/described.h"
#include "common/linalg_spec.h"

namespace openreg::ops {

namespace {

// `info` is what LAPACK gives: the first zero on the diagonal, counted from 1. Then there is no inverse.
void invert_kernel(const at::Tensor& self, bool upper, at::Tensor& result, at::Tensor& info) {
  const at::Tensor is_zero = self.diagonal(0, -2, -1).eq(0);
  info.zero_();
  if (is_zero.numel() == 0) {
    return;
  }
  info.copy_(is_zero.to(at::kInt).argmax(-1).add(1).mul(is_zero.any(-1)));
  if (!is_zero.any().item<bool>()) {
    result.copy_(at::cpu::cholesky_inverse(self, upper));
  }
}

at::Tensor invert(const at::Tensor& self, bool upper) {
  constexpr const char* kName = "aten::cholesky_inverse";
  at::native::squareCheckInputs(self, "cholesky_inverse");
  require_lapack_dtype("cholesky_inverse_cpu", self.scalar_type());
  const CurrentDevice current(self.device());
  at::Tensor result = make_described(column_major(self.sizes(), self.scalar_type()), self.device());
  at::Tensor info = make_output(self.sizes().slice(0, self.dim() - 2), {}, self.options().dtype(at::kInt));
  launch_described<void(const at::Tensor&, bool, at::Tensor&, at::Tensor&), 2, const at::Tensor&, bool>(
      kName, self.device(), &invert_kernel, {result, info}, self, upper);
  at::_linalg_check_errors(info, "cholesky_inverse", self.dim() == 2);
  return result;
}

at::Tensor& invert_out(const at::Tensor& self, bool upper, at::Tensor& out) {
  check_same_device("aten::cholesky_inverse", device_of("aten::cholesky_inverse", self, out), self, out);
  at::native::checkLinalgCompatibleDtype("cholesky_inverse", out, self);
  const at::Tensor result = invert(self, upper);
  resize_out(out, result.sizes(), result.strides(), out.options());
  return out.copy_(result);
}

std::array<OutputSpec, 2> describe_geqrf(const at::Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  require_lapack_dtype("geqrf_cpu", self.scalar_type());
  c10::DimVector tau(self.sizes().slice(0, self.dim() - 2));
  tau.push_back(std::min(self.size(-2), self.size(-1)));
  OutputSpec tau_spec = output_of(tau, self.scalar_type());
  tau_spec.casts = true;
  return {column_major(self.sizes(), self.scalar_type()), tau_spec};
}

// What householder_product and ormqr ask of reflectors and their factors.
void check_reflectors(const char* name, const at::Tensor& input, const at::Tensor& tau) {
  TORCH_CHECK(input.dim() - tau.dim() == 1, name,
              ": Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
              " and input.ndim is equal to ", input.dim());
  const c10::IntArrayRef batch = input.sizes().slice(0, input.dim() - 2);
  const c10::IntArrayRef tau_batch = tau.sizes().slice(0, tau.dim() - 1);
  TORCH_CHECK(batch == tau_batch, name, ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ",
              tau_batch);
  TORCH_CHECK(tau.scalar_type() == input.scalar_type(), name, ": tau dtype ", tau.scalar_type(),
              " does not match input dtype ", input.scalar_type());
}

OutputSpec describe_householder_product(const at::Tensor& input, const at::Tensor& tau) {
  constexpr const char* kName = "torch.linalg.householder_product";
  TORCH_CHECK(input.dim() >= 2, kName, ": input must have at least 2 dimensions.");
  TORCH_CHECK(input.size(-2) >= input.size(-1), kName,
              ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  TORCH_CHECK(tau.dim() > 0 && input.size(-1) >= tau.size(-1), kName,
              ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  check_reflectors(kName, input, tau);
  require_lapack_dtype("orgqr_cpu", input.scalar_type());
  OutputSpec spec = column_major(input.sizes(), input.scalar_type());
  spec.overlaps = true;  // the kernel computes in memory of its own
  return spec;
}

OutputSpec describe_ormqr(const at::Tensor& input, const at::Tensor& tau, const at::Tensor& other, bool left,
                          bool /*transpose*/) {
  constexpr const char* kName = "torch.ormqr";
  TORCH_CHECK(input.dim() >= 2, kName, ": input must have at least 2 dimensions.");
  TORCH_CHECK(other.dim() >= 2, kName, ": other must have at least 2 dimensions.");
  const int64_t side = left ? -2 : -1;
  TORCH_CHECK(tau.dim() > 0 && other.size(side) >= tau.size(-1), kName, ": other.shape[", side,
              "] must be greater than or equal to tau.shape[-1]");
  TORCH_CHECK(other.size(side) == input.size(-2), kName, ": other.shape[", side, "] must be equal to input.shape[-2]");
  TORCH_CHECK(tau.size(-1) <= input.size(-1), kName, ": tau.shape[-1] must be less than or equal to input.shape[-1]");
  check_reflectors(kName, input, tau);
  const c10::IntArrayRef batch = input.sizes().slice(0, input.dim() - 2);
  TORCH_CHECK(other.dim() == input.dim() && other.sizes().slice(0, other.dim() - 2) == batch, kName,
              ": Expected batch dimensions of other to be equal to input.shape[:-2], but got ", other.sizes());
  TORCH_CHECK(other.scalar_type() == input.scalar_type(), kName,
              ": Expected input and other to have the same dtype, but input has dtype ", input.scalar_type(),
              " and other has dtype ", other.scalar_type());
  require_lapack_dtype("ormqr_cpu", input.scalar_type());
  OutputSpec spec = column_major(other.sizes(), other.scalar_type());
  spec.casts = false;
  spec.overlaps = true;  // the kernel computes in memory of its own
  return spec;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("cholesky_inverse", TORCH_FN(invert));
  library.impl("cholesky_inverse.out", TORCH_FN(invert_out));
  OPENREG_DESCRIBED_OUT(library, geqrf, geqrf_a, at::cpu::geqrf_outf, describe_geqrf)
  OPENREG_DESCRIBED_OUT(library, linalg_householder_product, linalg_householder_product_out,
                        at::cpu::linalg_householder_product_outf, describe_householder_product)
  OPENREG_DESCRIBED_OUT(library, ormqr, ormqr_out, at::cpu::ormqr_outf, describe_ormqr)
}

}  // namespace

}  // namespace openreg::ops
