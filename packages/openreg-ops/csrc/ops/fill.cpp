// SPDX-License-Identifier: BSD-3-Clause
// Filling tensors in place, everywhere or under a mask. It does not matter to a fill that elements share memory.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/fill_cpu_dispatch.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/masked_fill_cpu_dispatch.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/zero_cpu_dispatch.h>
#include <ATen/ops/zero_ops.h>

#include "common/launch_on.h"
#include "common/numbers.h"
#include "common/output_spec.h"
#include "common/overlap.h"

namespace openreg::ops {

namespace {

using FillScalar = InplaceLaunch<at::_ops::fill__Scalar>;
using FillTensor = InplaceLaunch<at::_ops::fill__Tensor>;
using MaskedFillScalar = InplaceLaunch<at::_ops::masked_fill__Scalar>;
using MaskedFillTensor = InplaceLaunch<at::_ops::masked_fill__Tensor>;

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  require_number(value, self.scalar_type());
  return FillScalar::call<at::cpu::fill_, SelfOverlap::kAllowed>(self, value);
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  at::assert_no_internal_overlap(self);  // a tensor is copied, a number is written
  if (value.device().is_cpu()) {
    return fill_scalar(self, value.item());
  }
  return FillTensor::call<at::cpu::fill_>(self, value);
}

// What the kernel would find out too late for an exception on the caller's line.
void check_mask(const at::Tensor& self, const at::Tensor& mask) {
  warn_if_expanded("masked_fill_", self, "tensor[mask] = scalar");
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  TORCH_CHECK(at::is_expandable_to(mask.sizes(), self.sizes()), "masked_fill_: a mask of shape ", mask.sizes(),
              " cannot be broadcast to the tensor's shape ", self.sizes());
  at::assert_no_partial_overlap(self, mask);
}

at::Tensor& masked_fill_scalar(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  check_mask(self, mask);
  require_number(value, self.scalar_type());
  return MaskedFillScalar::call<at::cpu::masked_fill_, SelfOverlap::kAllowed>(self, mask, value);
}

at::Tensor& masked_fill_tensor(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  check_mask(self, mask);
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  if (value.device().is_cpu()) {
    return masked_fill_scalar(self, mask, value.item());
  }
  return MaskedFillTensor::call<at::cpu::masked_fill_, SelfOverlap::kAllowed>(self, mask, value);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("zero_", TORCH_FN((InplaceLaunch<at::_ops::zero_>::call<at::cpu::zero_, SelfOverlap::kAllowed>)));
  library.impl("fill_.Scalar", TORCH_FN(fill_scalar));
  library.impl("fill_.Tensor", TORCH_FN(fill_tensor));
  library.impl("masked_fill_.Scalar", TORCH_FN(masked_fill_scalar));
  library.impl("masked_fill_.Tensor", TORCH_FN(masked_fill_tensor));
}

}  // namespace

}  // namespace openreg::ops
