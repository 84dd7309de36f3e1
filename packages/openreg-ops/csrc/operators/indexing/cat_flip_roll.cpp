// SPDX-License-Identifier: BSD-3-Clause
// Operators that join tensors or reorder elements: cat, flip, roll, and the gradient of unfold.
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

OutputSpec meta_flip(const at::Tensor& self, c10::IntArrayRef dims) {
  at::dim_list_to_bitset(dims, self.dim());
  return output_like(self);
}

OutputSpec meta_roll(const at::Tensor& self, c10::IntArrayRef shifts, c10::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  OutputSpec spec = output_of_shape(self);
  if (dims.empty() && shifts.size() == 1) {
    return spec;
  }
  TORCH_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
              ", dims:", dims.size());
  if (self.numel() == 0) {
    return spec;  // PyTorch does not look at the dimensions of nothing
  }
  for (const int64_t dim : dims) {
    self.size(dim);  // throws if out of range, or for a 0-dim tensor
  }
  spec.format = self.suggest_memory_format();
  return spec;
}

OutputSpec meta_unfold_backward(const at::Tensor& grad, c10::IntArrayRef input_sizes, int64_t dim, int64_t size,
                                int64_t step) {
  c10::DimVector sizes(input_sizes);
  const auto place = static_cast<size_t>(at::maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size())));
  const int64_t length = sizes.empty() ? 1 : sizes[place];
  TORCH_CHECK_VALUE(step > 0, op::unfold_backward::name, ": step is ", step, " but must be > 0");
  TORCH_CHECK(size >= 0, op::unfold_backward::name, ": size is ", size, " but must be >= 0");
  TORCH_CHECK(size <= length, op::unfold_backward::name, ": expected windows of at most ", length,
              " elements, the size of the dimension, but got windows of ", size);
  if (!sizes.empty()) {
    sizes[place] = (length - size) / step + 1;
  }
  sizes.push_back(size);
  expect(op::unfold_backward::name, "grad_in", grad, sizes, grad.scalar_type());
  return output_of(input_sizes, grad.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured_cat, op::cat>(library, cpu::cat_outf, kChecked);
  unstructured<meta_flip, op::flip>(library, cpu::flip, kChecked);
  unstructured<meta_roll, op::roll>(library, cpu::roll, kChecked);
  unstructured<meta_unfold_backward, op::unfold_backward>(library, cpu::unfold_backward);
}

}  // namespace

}  // namespace openreg::ops
