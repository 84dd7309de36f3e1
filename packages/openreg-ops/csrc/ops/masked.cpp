// SPDX-License-Identifier: BSD-3-Clause
// masked_scatter_(); masked_fill_() stands with the fills, masked_select() where shapes depend on data.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/masked_scatter_cpu_dispatch.h>
#include <ATen/ops/masked_scatter_ops.h>
#include <torch/library.h>

#include "common/described.h"

namespace openreg::ops {

namespace {

void check_masked_scatter(const at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter: expected self and source to have same dtypes but got ", self.scalar_type(), " and ",
              source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  at::expand_inplace(self, mask, "masked_scatter_");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED_INPLACE(library, masked_scatter_, at::cpu::masked_scatter_, check_masked_scatter)
}

}  // namespace

}  // namespace openreg::ops
