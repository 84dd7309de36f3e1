// SPDX-License-Identifier: BSD-3-Clause
// Elementwise losses and margin losses, with backward. The CPU has no margin kernels for half precision, so these
// compute in float.
#include <ATen/core/Reduction.h>
#include <ATen/native/LossMulti.h>

#include "launch/derivative.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Returns the specification of a loss after its reduction. The output may be an operand itself, because PyTorch's
// TensorIterator computes it.
OutputSpec reduced(OutputSpec per_element, int64_t reduction) {
  return (reduction == at::Reduction::None ? std::move(per_element) : scalar_output(per_element.dtype))
      .allowing({.elementwise = true});
}

OutputSpec meta_cross_entropy(const at::Tensor& self, const at::Tensor& target, MaybeTensor /*weight*/,
                              int64_t reduction) {
  return reduced(output_of_operands(self, target), reduction);
}

OutputSpec meta_huber(const at::Tensor& self, const at::Tensor& target, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  OutputSpec per_element = output_of_operands(self, target);
  per_element.dtype = self.scalar_type();  // the target is converted to it
  return reduced(std::move(per_element), reduction);
}

void check_multi_margin(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p, MaybeTensor weight) {
  int64_t samples = 0;
  int64_t classes = 0;
  TORCH_CHECK(p.toLong() == 1 || p.toLong() == 2, "only p == 1 and p == 2 supported");
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ", target.scalar_type());
  at::native::multi_margin_loss_shape_check(samples, classes, self.dim(), self, target, weight);
  TORCH_CHECK(!is_given(weight) || weight->scalar_type() == self.scalar_type(), "expected scalar type ",
              self.scalar_type(), " but found ", is_given(weight) ? weight->scalar_type() : self.scalar_type());
}

OutputSpec meta_multi_margin(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
                             const at::Scalar& /*margin*/, MaybeTensor weight, int64_t reduction) {
  check_multi_margin(self, target, p, weight);
  return reduction == at::Reduction::None && target.dim() > 0 ? output_of({target.size(0)}, self.scalar_type())
                                                              : scalar_output(self.scalar_type());
}

// Throws c10::Error if the gradient does not match the loss. For a 0-dim loss it has one element, in any shape.
void expect_gradient(const char* name, const at::Tensor& grad, const OutputSpec& loss) {
  loss.sizes.empty() ? expect_count(name, "grad_output", grad, 1, loss.dtype)
                     : expect(name, "grad_output", grad, loss.sizes, loss.dtype);
}

OutputSpec meta_multi_margin_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                      const at::Scalar& p, const at::Scalar& margin, MaybeTensor weight,
                                      int64_t reduction) {
  expect_gradient(op::multi_margin_loss_backward::name, grad,
                  meta_multi_margin(self, target, p, margin, weight, reduction));
  return output_of_shape(self).allowing({.elsewhere = true});
}

void check_multilabel(const at::Tensor& self, const at::Tensor& target) {
  int64_t samples = 0;
  int64_t classes = 0;
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ", target.scalar_type());
  at::native::multilabel_margin_loss_shape_check(samples, classes, self.dim(), self, target);
}

std::array<OutputSpec, 2> meta_multilabel(const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  check_multilabel(self, target);
  const bool per_sample = reduction == at::Reduction::None && target.dim() > 1;
  const OutputSpec loss =
      per_sample ? output_of({self.size(0)}, self.scalar_type()) : scalar_output(self.scalar_type());
  return {OutputSpec(loss).allowing({.elsewhere = true}),
          output_of(target.sizes(), self.scalar_type()).allowing({.elsewhere = true})};
}

OutputSpec meta_multilabel_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                    int64_t reduction, const at::Tensor& is_target) {
  constexpr const char* kName = op::multilabel_margin_loss_backward::name;
  const auto [loss, marks] = meta_multilabel(self, target, reduction);
  expect_gradient(kName, grad, loss);
  expect(kName, "is_target", is_target, marks.sizes, marks.dtype);
  return output_of_shape(self).allowing({.elsewhere = true});
}

// Meta functions of derivatives that PyTorch's TensorIterator computes. The result of mse_loss_backward is contiguous.
constexpr auto meta_mse_backward = [](const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                      const auto&... /*rest*/) {
  const OutputSpec spec = broadcast_derivative(self, target, grad);
  return output_of(spec.sizes, spec.dtype).allowing({.elementwise = true});
};
constexpr auto meta_smooth_backward = [](const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                         int64_t /*reduction*/, double /*width*/, const at::Tensor& grad_input) {
  for (const at::Tensor& operand : {grad, self, target}) {
    at::assert_no_partial_overlap(grad_input, operand);
  }
  return broadcast_derivative(self, target, grad);
};

OutputSpec meta_cross_entropy_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                       MaybeTensor weight, int64_t /*reduction*/) {
  constexpr const char* kName = op::binary_cross_entropy_backward::name;
  const c10::ScalarType dtype = self.scalar_type();
  // PyTorch drops dimensions of size 1 before it broadcasts.
  const at::Tensor squeezed = self.squeeze();
  expect_expandable(kName, "grad_output", grad.squeeze(), squeezed.sizes(), dtype);
  expect_expandable(kName, "target", target.squeeze(), squeezed.sizes(), dtype);
  expect_expandable(kName, "weight", value_or_undefined(weight), self.sizes(), dtype);
  return output_like(self).allowing({.elementwise = true});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured_mse_loss, op::mse_loss>(library, cpu::mse_loss_outf, kFloats);
  unstructured<meta_mse_backward, op::mse_loss_backward>(library, cpu::mse_loss_backward_outf, kChecked);
  structured<meta::structured_smooth_l1_loss, op::smooth_l1_loss>(library, cpu::smooth_l1_loss_outf, kFloats);
  unstructured<meta_smooth_backward, op::smooth_l1_loss_backward_grad_input>(library, cpu::smooth_l1_loss_backward_outf,
                                                                             kChecked);
  unstructured<meta_huber, op::huber_loss>(library, as_out<cpu::huber_loss>, kFloats);
  unstructured<meta_smooth_backward, op::huber_loss_backward_out>(
      library, cpu::huber_loss_backward_outf, {.refused = kNotFloating, .dtype_match = DtypeMatch::kAll});
  unstructured<meta_cross_entropy, op::binary_cross_entropy>(library, as_out<cpu::binary_cross_entropy>, kFloats);
  unstructured<meta_cross_entropy_backward, op::binary_cross_entropy_backward>(
      library, as_out<cpu::binary_cross_entropy_backward>, kFloats);
  unstructured<meta_multi_margin, op::multi_margin_loss>(
      library, computed_in<reduced_as_float, as_out<cpu::multi_margin_loss>>, kFloats);
  unstructured<meta_multi_margin_backward, op::multi_margin_loss_backward>(
      library, computed_in<reduced_as_float, as_out<cpu::multi_margin_loss_backward>>, kFloats);
  unstructured<meta_multilabel, op::multilabel_margin_loss_forward>(
      library, computed_in<reduced_as_float, as_out<cpu::multilabel_margin_loss_forward>>, kFloats);
  unstructured<meta_multilabel_backward, op::multilabel_margin_loss_backward>(
      library, computed_in<reduced_as_float, as_out<cpu::multilabel_margin_loss_backward>>, kFloats);
}

}  // namespace

}  // namespace openreg::ops
