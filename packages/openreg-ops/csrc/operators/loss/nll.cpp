// SPDX-License-Identifier: BSD-3-Clause
// The negative log likelihood loss with backward. There is one class for each sample, or for each pixel of an image.
#include <ATen/core/Reduction.h>
#include <ATen/ops/empty.h>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

void check_images(const at::Tensor& self, const at::Tensor& target, MaybeTensor weight) {
  TORCH_CHECK(target.dim() == 3,
              "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  TORCH_CHECK(self.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  TORCH_CHECK(!is_given(weight) || weight->numel() == self.size(1),
              "weight tensor should be defined either for all or no classes");
  TORCH_CHECK(self.size(0) == target.size(0) && self.size(2) == target.size(1) && self.size(3) == target.size(2),
              "size mismatch (got input: ", self.sizes(), " , target: ", target.sizes());
  TORCH_CHECK(target.scalar_type() == at::kLong || target.scalar_type() == at::kByte,
              "expected target of dtype int64 or uint8, but got ", target.scalar_type());
}

// Returns the specification of an output that may overlap operands and itself, because PyTorch's kernels do not check
// this.
OutputSpec unchecked_output(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  return output_of(sizes, dtype).allowing({.overlaps = true, .expands = true});
}

std::array<OutputSpec, 2> meta_forward2d(const at::Tensor& self, const at::Tensor& target, MaybeTensor weight,
                                         int64_t reduction, int64_t /*ignore_index*/) {
  check_images(self, target, weight);
  const auto sizes = reduction == at::Reduction::None ? target.sizes() : c10::IntArrayRef();
  return {unchecked_output(sizes, self.scalar_type()), unchecked_output({}, self.scalar_type())};
}

// Throws c10::Error unless the operands that the kernels read have the sizes and the one dtype that they require. A
// gradient of one element may have any shape.
void check_backward(const char* name, const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                    MaybeTensor weight, int64_t reduction, const at::Tensor& total_weight) {
  const c10::ScalarType dtype = self.scalar_type();
  if (reduction == at::Reduction::None && target.dim() > 0) {
    expect(name, "grad_output", grad, target.sizes(), dtype);
  } else {
    expect_count(name, "grad_output", grad, 1, dtype);
  }
  expect_count(name, "weight", weight, self.size(self.dim() == 1 ? 0 : 1), dtype);
  expect_count(name, "total_weight", total_weight, 1, dtype);
}

void check_backward1d(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, MaybeTensor weight,
                      int64_t reduction, int64_t /*ignore_index*/, const at::Tensor& total_weight) {
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "input tensor should be 1D or 2D");
  check_backward(op::nll_loss_backward::name, grad, self, target, weight, reduction, total_weight);
}

constexpr auto meta_backward2d = [](const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                    MaybeTensor weight, int64_t reduction, int64_t /*ignore_index*/,
                                    const at::Tensor& total_weight, const auto&... /*grad_input*/) {
  check_images(self, target, weight);
  check_backward(op::nll_loss2d_backward::name, grad, self, target, weight, reduction, total_weight);
  return unchecked_output(self.sizes(), self.scalar_type());
};

// Replaces a result that is not contiguous by a new tensor, because the CPU's kernel requires a contiguous one. The
// launch copies it to its place.
at::Tensor& backward2d(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, MaybeTensor weight,
                       int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight, at::Tensor& result) {
  if (!result.is_contiguous()) {
    result = at::empty(result.sizes(), result.options());
  }
  return cpu::nll_loss2d_backward_outf(grad, self, target, weight, reduction, ignore_index, total_weight, result);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  constexpr KernelTraits kOneType{.refused = kNotFloating, .dtype_match = DtypeMatch::kAllButIndices};
  structured<meta::structured_nll_loss_forward, op::nll_loss_forward>(library, cpu::nll_loss_forward_outf,
                                                                      checked(kOneType));
  structured<meta::structured_nll_loss_backward, op::nll_loss_backward>(library, cpu::nll_loss_backward_outf,
                                                                        checked(kOneType), {.check = check_backward1d});
  unstructured<meta_forward2d, op::nll_loss2d_forward>(library, cpu::nll_loss2d_forward_outf, kFloats);
  unstructured<meta_backward2d, op::nll_loss2d_backward>(library, backward2d, kFloats);
}

}  // namespace

}  // namespace openreg::ops
