// SPDX-License-Identifier: BSD-3-Clause
// Products of matrices. mm() also has a kernel of our own, which OPENREG_KERNELS=raw selects.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>

#include "kernels/matmul.h"
#include "launch/raw_operands.h"
#include "registration/declare.h"
#include "support/kernel_choice.h"

namespace openreg::ops {

namespace {

raw::Matrix matrix_of(const at::Tensor& tensor, const void* address) {
  return {const_cast<void*>(address), {tensor.stride(0), tensor.stride(1)}};
}

// Launches our own kernel and returns true. Returns false for operands that it does not support: complex ones, sparse
// ones, and those that may overlap the output.
bool launch_mm(c10::Device device, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  if (!raw::contains(raw::FloatsAndIntegers(), out.scalar_type()) || self.scalar_type() != out.scalar_type() ||
      other.scalar_type() != out.scalar_type() || at::get_overlap_status(self, out) != at::MemOverlapStatus::No ||
      at::get_overlap_status(other, out) != at::MemOverlapStatus::No) {
    return false;
  }
  launch_raw("aten::mm", device, &raw::matmul,
             raw::MatmulArguments{out.scalar_type(), matrix_of(self, kernel_address(self)),
                                  matrix_of(other, kernel_address(other)), matrix_of(out, mutable_kernel_address(out)),
                                  self.size(0), other.size(1), self.size(1)},
             reads(self, other), writes(out));
  return true;
}

// Throws c10::Error if `self` cannot be expanded to the product's shape. PyTorch's meta function leaves this check to
// the kernel.
void check_addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, const at::Scalar& /*beta*/,
                 const at::Scalar& /*alpha*/) {
  if (mat1.dim() == 2 && mat2.dim() == 2) {
    at::expand_size(self, {mat1.size(0), mat2.size(1)}, "addmm");
  }
}

OutputSpec meta_addbmm(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                       const at::Scalar& /*beta*/, const at::Scalar& /*alpha*/) {
  TORCH_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(batch1.size(0) == batch2.size(0), "batch1 and batch2 must have same number of batches, got ",
              batch1.size(0), " and ", batch2.size(0));
  TORCH_CHECK(batch1.size(2) == batch2.size(1), "Incompatible matrix sizes for bmm (", batch1.size(1), "x",
              batch1.size(2), " and ", batch2.size(1), "x", batch2.size(2), ")");
  TORCH_CHECK(self.scalar_type() == batch1.scalar_type() && self.scalar_type() == batch2.scalar_type(),
              "addbmm: self, batch1 and batch2 must have the same dtype, but got ", self.scalar_type(), ", ",
              batch1.scalar_type(), " and ", batch2.scalar_type());
  OutputSpec spec = output_of({batch1.size(1), batch2.size(2)}, self.scalar_type()).allowing({.quiet = true});
  const bool is_empty = spec.sizes[0] == 0 || spec.sizes[1] == 0;
  require_dtype(self.scalar_type() != at::kBool || is_empty, "addmm_impl_cpu_", self.scalar_type());
  at::inferExpandGeometry(self.sizes(), self.strides(), spec.sizes);  // throws if self cannot be expanded
  return spec;
}

const auto kAddbmm = unstructured_operator<meta_addbmm, op::addbmm>(cpu::addbmm_outf);

at::Tensor& addbmm_out(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                       const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  const OperandDeviceGuard device(kAddbmm.op, self, batch1, batch2, out);
  const OutputSpec spec = meta_addbmm(self, batch1, batch2, beta, alpha);
  check_operands_keep_size(out, spec.sizes, self);
  prepare_out_argument(out, spec, device);
  check_overlap(out, spec, batch1, batch2);
  if (self.sizes() == out.sizes()) {
    at::assert_no_partial_overlap(out, self);  // the kernel first copies self to out
  }
  launch_out_kernel<1>(kAddbmm.op, device, kAddbmm.kernel, {out}, self, batch1, batch2, beta, alpha);
  return out;
}

// Resizes `self` to the size of the product, as the CPU does.
at::Tensor& addbmm_(at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
                    const at::Scalar& alpha) {
  const OutputSpec spec = meta_addbmm(self, batch1, batch2, beta, alpha);
  return addbmm_out(self.sizes() == spec.sizes ? self : self.clone(), batch1, batch2, beta, alpha, self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::addbmm>(library, [](auto... args) { return kAddbmm.functional(args...); });
  function<op::addbmm_out>(library, addbmm_out);
  function<op::addbmm_>(library, addbmm_);
  structured<meta::structured_addmm, op::addmm, op::addmm_>(library, cpu::addmm_outf,
                                                            {.refused = kBoolean,
                                                             .dtype_match = DtypeMatch::kAll,
                                                             .data_check = DataCheck::kFractionalScale,
                                                             .checked = true,
                                                             .overlap = kNotItselfNoPart},
                                                            {.check = check_addmm});
  structured<meta::structured_addmv, op::addmv, op::addmv_>(library, cpu::addmv_outf,
                                                            {.refused = kBoolean, .overlap = kNotItselfNoPart});
  structured<meta::structured_baddbmm, op::baddbmm, op::baddbmm_>(
      library, cpu::baddbmm_outf,
      checked(KernelTraits{.refused = kBoolean, .dtype_match = DtypeMatch::kAll, .overlap = kNoPart}));
  structured<meta::structured_bmm, op::bmm>(library, cpu::bmm_outf,
                                            {.refused = kBoolean, .dtype_match = DtypeMatch::kAll, .checked = true});
  structured<meta::structured_mm, op::mm>(
      library, cpu::mm_outf,
      checked(KernelTraits{.refused = kBoolean, .dtype_match = DtypeMatch::kAll, .overlap = kNotItself}),
      {.launch_own = raw_kernels_chosen() ? launch_mm : nullptr});
}

}  // namespace

}  // namespace openreg::ops
