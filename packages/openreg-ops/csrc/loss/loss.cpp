// SPDX-License-Identifier: BSD-3-Clause
// Losses of elements and of margins, with backward. The CPU computes margins of half precision in no kernel; here they
// are computed in float.
#include <ATen/core/Reduction.h>
#include <ATen/native/LossMulti.h>

#include "declare/declare.h"

namespace openreg::ops {

namespace {

// What a loss per element becomes.
OutputSpec reduced(OutputSpec per_element, int64_t reduction) {
  return reduction == at::Reduction::None ? per_element : scalar_output(per_element.dtype);
}

OutputSpec describe_cross_entropy(const at::Tensor& self, const at::Tensor& target, MaybeTensor /*weight*/,
                                  int64_t reduction) {
  return reduced(output_of_operands(self, target), reduction);
}

OutputSpec describe_huber(const at::Tensor& self, const at::Tensor& target, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  OutputSpec per_element = output_of_operands(self, target);
  per_element.dtype = self.scalar_type();  // that of the target is converted
  return reduced(std::move(per_element), reduction);
}

void check_multi_margin(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p, MaybeTensor weight) {
  int64_t samples = 0;
  int64_t classes = 0;
  TORCH_CHECK(p.toLong() == 1 || p.toLong() == 2, "only p == 1 and p == 2 supported");
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ", target.scalar_type());
  at::native::multi_margin_loss_shape_check(samples, classes, self.dim(), self, target, weight);
}

OutputSpec describe_multi_margin(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
                                 const at::Scalar& /*margin*/, MaybeTensor weight, int64_t reduction) {
  check_multi_margin(self, target, p, weight);
  return reduction == at::Reduction::None && target.dim() > 0 ? output_of({target.size(0)}, self.scalar_type())
                                                              : scalar_output(self.scalar_type());
}

OutputSpec describe_multi_margin_backward(const at::Tensor& /*grad*/, const at::Tensor& self, const at::Tensor& target,
                                          const at::Scalar& p, const at::Scalar& /*margin*/, MaybeTensor weight,
                                          int64_t /*reduction*/) {
  check_multi_margin(self, target, p, weight);
  return output_of_shape(self);
}

void check_multilabel(const at::Tensor& self, const at::Tensor& target) {
  int64_t samples = 0;
  int64_t classes = 0;
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ", target.scalar_type());
  at::native::multilabel_margin_loss_shape_check(samples, classes, self.dim(), self, target);
}

std::array<OutputSpec, 2> describe_multilabel(const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  check_multilabel(self, target);
  const bool per_sample = reduction == at::Reduction::None && target.dim() > 1;
  return {per_sample ? output_of({self.size(0)}, self.scalar_type()) : scalar_output(self.scalar_type()),
          output_of(target.sizes(), self.scalar_type())};
}

OutputSpec describe_multilabel_backward(const at::Tensor& /*grad*/, const at::Tensor& self, const at::Tensor& target,
                                        int64_t /*reduction*/, const at::Tensor& /*is_target*/) {
  check_multilabel(self, target);
  return output_of_shape(self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  structured<meta::structured_mse_loss, op::mse_loss>(library, cpu::mse_loss_outf, kFloats);
  described<shape_of_second, op::mse_loss_backward>(library, cpu::mse_loss_backward_outf, kChecked);
  structured<meta::structured_smooth_l1_loss, op::smooth_l1_loss>(library, cpu::smooth_l1_loss_outf, kFloats);
  described<like_second, op::smooth_l1_loss_backward_grad_input>(library, cpu::smooth_l1_loss_backward_outf, kChecked);
  described<describe_huber, op::huber_loss>(library, as_out<cpu::huber_loss>, kFloats);
  described<like_second, op::huber_loss_backward_out>(library, cpu::huber_loss_backward_outf, kFloats);
  described<describe_cross_entropy, op::binary_cross_entropy>(library, as_out<cpu::binary_cross_entropy>, kFloats);
  described<like_second, op::binary_cross_entropy_backward>(library, as_out<cpu::binary_cross_entropy_backward>,
                                                            kFloats);
  described<describe_multi_margin, op::multi_margin_loss>(
      library, computed_in<reduced_as_float, as_out<cpu::multi_margin_loss>>, kFloats);
  described<describe_multi_margin_backward, op::multi_margin_loss_backward>(
      library, computed_in<reduced_as_float, as_out<cpu::multi_margin_loss_backward>>);
  described<describe_multilabel, op::multilabel_margin_loss_forward>(
      library, computed_in<reduced_as_float, as_out<cpu::multilabel_margin_loss_forward>>, kFloats);
  described<describe_multilabel_backward, op::multilabel_margin_loss_backward>(
      library, computed_in<reduced_as_float, as_out<cpu::multilabel_margin_loss_backward>>);
}

}  // namespace

}  // namespace openreg::ops
