// SPDX-License-Identifier: BSD-3-Clause
// Products of matrices that are not structured: the sum of a batch of products, and the exponential.
#include <ATen/ExpandUtils.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/addbmm_cpu_dispatch.h>
#include <ATen/ops/linalg_matrix_exp_cpu_dispatch.h>
#include <ATen/ops/linalg_matrix_exp_ops.h>

#include "common/described.h"

namespace openreg::ops {

namespace {

std::array<int64_t, 2> addbmm_sizes(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2) {
  TORCH_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(batch1.size(0) == batch2.size(0), "batch1 and batch2 must have same number of batches, got ",
              batch1.size(0), " and ", batch2.size(0));
  TORCH_CHECK(batch1.size(2) == batch2.size(1), "Incompatible matrix sizes for bmm (", batch1.size(1), "x",
              batch1.size(2), " and ", batch2.size(1), "x", batch2.size(2), ")");
  TORCH_CHECK(self.scalar_type() == batch1.scalar_type() && self.scalar_type() == batch2.scalar_type(),
              "addbmm: self, batch1 and batch2 must have the same dtype, but got ", self.scalar_type(), ", ",
              batch1.scalar_type(), " and ", batch2.scalar_type());
  const std::array<int64_t, 2> sizes{batch1.size(1), batch2.size(2)};
  const bool is_empty = sizes[0] == 0 || sizes[1] == 0;
  require_dtype(self.scalar_type() != at::kBool || is_empty, "addmm_impl_cpu_", self.scalar_type());
  at::inferExpandGeometry(self.sizes(), self.strides(), sizes);  // throws where self cannot be expanded
  return sizes;
}

void launch_addbmm(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
                   const at::Scalar& alpha, const at::Tensor& out) {
  launch_described<at::Tensor&(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Scalar&,
                               const at::Scalar&, at::Tensor&),
                   1, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Scalar&, const at::Scalar&>(
      "aten::addbmm", out.device(), &at::cpu::addbmm_outf, {out}, self, batch1, batch2, beta, alpha);
}

c10::Device addbmm_device(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                          const at::Tensor& out) {
  const c10::Device device = device_of("aten::addbmm", self, batch1, batch2, out);
  check_same_device("aten::addbmm", device, self, batch1, batch2, out);
  return device;
}

at::Tensor addbmm(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
                  const at::Scalar& alpha) {
  const CurrentDevice current(addbmm_device(self, batch1, batch2, {}));
  at::Tensor out = make_output(addbmm_sizes(self, batch1, batch2), {}, self.options().memory_format(std::nullopt));
  launch_addbmm(self, batch1, batch2, beta, alpha, out);
  return out;
}

at::Tensor& addbmm_out(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                       const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  const CurrentDevice current(addbmm_device(self, batch1, batch2, out));
  const std::array<int64_t, 2> sizes = addbmm_sizes(self, batch1, batch2);
  OutputSpec spec = output_of(sizes, self.scalar_type());
  spec.quiet = true;
  prepare_described(out, spec, self.device());
  check_overlap(out, spec, batch1, batch2);
  if (self.sizes() == out.sizes()) {
    at::assert_no_partial_overlap(out, self);  // it is copied there first
  }
  launch_addbmm(self, batch1, batch2, beta, alpha, out);
  return out;
}

// `self` takes the size of the product, as on the CPU.
at::Tensor& addbmm_(at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
                    const at::Scalar& alpha) {
  const CurrentDevice current(addbmm_device(self, batch1, batch2, {}));
  const std::array<int64_t, 2> sizes = addbmm_sizes(self, batch1, batch2);
  check_overlap(self, OutputSpec(), batch1, batch2);
  const at::Tensor addend = self.sizes() == c10::IntArrayRef(sizes) ? self : self.clone();
  self.resize_(sizes);
  launch_addbmm(addend, batch1, batch2, beta, alpha, self);
  return self;
}

OutputSpec describe_matrix_exp(const at::Tensor& self) {
  at::native::squareCheckInputs(self, "linalg.matrix_exp");
  at::native::checkFloatingOrComplex(self, "linalg.matrix_exp");
  return output_of_shape(self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("addbmm", TORCH_FN(addbmm));
  library.impl("addbmm.out", TORCH_FN(addbmm_out));
  library.impl("addbmm_", TORCH_FN(addbmm_));
  OPENREG_DESCRIBED(library, linalg_matrix_exp, at::cpu::linalg_matrix_exp, describe_matrix_exp)
}

}  // namespace

}  // namespace openreg::ops
