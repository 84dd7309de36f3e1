// SPDX-License-Identifier: BSD-3-Clause
// Operators that fill tensors in place, everywhere or under a mask. A fill with a number accepts expanded tensors,
// because elements that share memory get one value.
#include <ATen/ExpandUtils.h>

#include "registration/declare.h"

namespace openreg::ops {

namespace {

constexpr KernelTraits kExpands{.expands = true};

void check_fill(const at::Tensor& self, const at::Scalar& value) {
  check_scalar_range(value, self.scalar_type());
}

const auto kFillTensor = unstructured_overload<unchecked, op::fill__Tensor>(cpu::fill_);

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  at::assert_no_internal_overlap(self);  // because the kernel copies a tensor
  return value.device() != self.device() ? self.fill_(value.item()) : kFillTensor(self, value);
}

// Throws c10::Error for wrong operands, which the kernel would detect too late to throw on the calling line.
void check_mask(const at::Tensor& self, const at::Tensor& mask) {
  warn_if_expanded("masked_fill_", self, "tensor[mask] = scalar");
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  TORCH_CHECK(at::is_expandable_to(mask.sizes(), self.sizes()), "masked_fill_: a mask of shape ", mask.sizes(),
              " cannot be broadcast to the tensor's shape ", self.sizes());
  at::assert_no_partial_overlap(self, mask);
}

void check_masked_fill(const at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  check_mask(self, mask);
  check_scalar_range(value, self.scalar_type());
}

const auto kMaskedFillTensor = unstructured_overload<unchecked, op::masked_fill__Tensor>(cpu::masked_fill_, kExpands);

at::Tensor& masked_fill_tensor(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  check_mask(self, mask);
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  // The host reads a complex number to check that it is real, as on every device of PyTorch.
  const bool is_read = value.device().is_cpu() || (value.is_complex() && !self.is_complex());
  return is_read ? self.masked_fill_(mask, value.item()) : kMaskedFillTensor(self, mask, value);
}

void check_masked_scatter(const at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  check_same_device("aten::masked_scatter_", self.device(), mask, source);
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter: expected self and source to have same dtypes but got ", self.scalar_type(), " and ",
              source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  at::expand_inplace(self, mask, "masked_scatter_");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<check_fill, op::fill__Scalar>(library, cpu::fill_, checked(kExpands));
  function<op::fill__Tensor>(library, fill_tensor);
  unstructured<check_masked_fill, op::masked_fill__Scalar>(library, cpu::masked_fill_, checked(kExpands));
  function<op::masked_fill__Tensor>(library, masked_fill_tensor, kExpands);
  unstructured<check_masked_scatter, op::masked_scatter_>(library, cpu::masked_scatter_);
  unstructured<unchecked, op::zero_>(library, cpu::zero_, checked(kExpands));
}

}  // namespace

}  // namespace openreg::ops
