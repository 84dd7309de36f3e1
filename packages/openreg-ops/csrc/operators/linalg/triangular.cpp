// SPDX-License-Identifier: BSD-3-Clause
// Triangular parts of matrices, and the LU factorization, whose results are such parts.
#include <algorithm>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Returns true if the kernels find all elements of an output. They assume that the matrices of a batch are consecutive
// in memory, and otherwise write out of bounds.
bool is_batch_contiguous(const at::Tensor& out) {
  return out.dim() <= 2 || out.is_contiguous() || out.mT().is_contiguous();
}

void check_order(const at::Tensor& /*self*/, int64_t /*diagonal*/, at::Tensor& out) {
  if (!is_batch_contiguous(out)) {
    at::assert_no_internal_overlap(out);
  }
}

// Throws c10::Error if the pivots have wrong sizes. PyTorch does not check them, and its kernels would read and write
// out of bounds.
void check_pivots(const at::Tensor& lu, const at::Tensor& pivots, bool /*unpack_data*/, bool unpack_pivots) {
  if (!unpack_pivots || lu.dim() < 2) {
    return;
  }
  c10::DimVector sizes(lu.sizes().slice(0, lu.dim() - 2));
  sizes.push_back(std::min(lu.size(-2), lu.size(-1)));
  TORCH_CHECK(pivots.sizes() == c10::IntArrayRef(sizes), op::lu_unpack::name, ": expected LU_pivots of shape ",
              c10::IntArrayRef(sizes), " for LU_data of shape ", lu.sizes(),
              ", as torch.linalg.lu_factor() gives, but got ", pivots.sizes());
}

template <auto kFunctional, auto kOut>
at::Tensor& in_order(const at::Tensor& self, int64_t diagonal, at::Tensor& out) {
  return is_batch_contiguous(out) ? kOut(self, diagonal, out) : out.copy_(kFunctional(self, diagonal));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured_linalg_lu, op::linalg_lu>(
      library, cpu::linalg_lu_outf, {.refused = kBoolean | kIntegers | kReduced, .overlap = kNotItself});
  structured<meta::structured_lu_unpack, op::lu_unpack>(
      library, cpu::lu_unpack_outf, checked(KernelTraits{.overlap = kNotItself}), {.check = check_pivots});
  structured<meta::structured_tril, op::tril, op::tril_>(library, in_order<cpu::tril, cpu::tril_outf>, kChecked,
                                                         {.check_outputs = check_order});
  structured<meta::structured_triu, op::triu, op::triu_>(library, in_order<cpu::triu, cpu::triu_outf>, kChecked,
                                                         {.check_outputs = check_order});
}

}  // namespace

}  // namespace openreg::ops
