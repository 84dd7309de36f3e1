// SPDX-License-Identifier: BSD-3-Clause
// QR factorizations, and products with the reflectors in which LAPACK stores them.
#include "operators/linalg/outputs.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

std::array<OutputSpec, 2> meta_geqrf(const at::Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  require_lapack_dtype("geqrf_cpu", self.scalar_type());
  c10::DimVector tau(self.sizes().slice(0, self.dim() - 2));
  tau.push_back(std::min(self.size(-2), self.size(-1)));
  return {column_major(self.sizes(), self.scalar_type()).allowing({.casts = true, .elsewhere = true}),
          output_of(tau, self.scalar_type()).allowing({.casts = true})};
}

// Throws c10::Error if reflectors and their factors do not match, for householder_product and ormqr.
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

OutputSpec meta_householder_product(const at::Tensor& input, const at::Tensor& tau) {
  constexpr const char* kName = "torch.linalg.householder_product";
  TORCH_CHECK(input.dim() >= 2, kName, ": input must have at least 2 dimensions.");
  TORCH_CHECK(input.size(-2) >= input.size(-1), kName,
              ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  TORCH_CHECK(tau.dim() > 0 && input.size(-1) >= tau.size(-1), kName,
              ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  check_reflectors(kName, input, tau);
  require_lapack_dtype("orgqr_cpu", input.scalar_type());
  // The output may overlap operands, because the kernel computes in its own memory.
  return column_major(input.sizes(), input.scalar_type()).allowing({.casts = true, .overlaps = true});
}

OutputSpec meta_ormqr(const at::Tensor& input, const at::Tensor& tau, const at::Tensor& other, bool left,
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
  // The output may overlap operands, because the kernel computes in its own memory.
  return column_major(other.sizes(), other.scalar_type()).allowing({.overlaps = true});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_geqrf, op::geqrf>(library, cpu::geqrf_outf);
  unstructured<meta_householder_product, op::linalg_householder_product>(library, cpu::linalg_householder_product_outf);
  structured<meta::structured_linalg_qr, op::linalg_qr>(library, cpu::linalg_qr_outf,
                                                        {.refused = kReduced, .overlap = kNotItself});
  unstructured<meta_ormqr, op::ormqr>(library, cpu::ormqr_outf);
}

}  // namespace

}  // namespace openreg::ops
