// SPDX-License-Identifier: BSD-3-Clause
// Described operators: losses that have no meta function, and their derivatives.
#include "common/described.h"

#include <ATen/core/Reduction.h>
#include <ATen/native/LossMulti.h>
#include <ATen/ops/binary_cross_entropy_backward_cpu_dispatch.h>
#include <ATen/ops/binary_cross_entropy_backward_ops.h>
#include <ATen/ops/binary_cross_entropy_cpu_dispatch.h>
#include <ATen/ops/binary_cross_entropy_ops.h>
#include <ATen/ops/huber_loss_backward_cpu_dispatch.h>
#include <ATen/ops/huber_loss_backward_ops.h>
#include <ATen/ops/huber_loss_cpu_dispatch.h>
#include <ATen/ops/huber_loss_ops.h>
#include <ATen/ops/mse_loss_backward_cpu_dispatch.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/multi_margin_loss_backward_cpu_dispatch.h>
#include <ATen/ops/multi_margin_loss_backward_ops.h>
#include <ATen/ops/multi_margin_loss_cpu_dispatch.h>
#include <ATen/ops/multi_margin_loss_ops.h>
#include <ATen/ops/multilabel_margin_loss_backward_cpu_dispatch.h>
#include <ATen/ops/multilabel_margin_loss_backward_ops.h>
#include <ATen/ops/multilabel_margin_loss_forward_cpu_dispatch.h>
#include <ATen/ops/multilabel_margin_loss_forward_ops.h>
#include <ATen/ops/smooth_l1_loss_backward_cpu_dispatch.h>
#include <ATen/ops/smooth_l1_loss_backward_ops.h>

#include "common/as_out.h"
#include "common/compute_dtype.h"
#include "common/pointwise_spec.h"

namespace openreg::ops {

namespace {

using MaybeTensor = std::optional<at::Tensor>;

// What a loss per element becomes.
OutputSpec reduced(OutputSpec per_element, int64_t reduction) {
  return reduction == at::Reduction::None ? per_element : scalar_output(per_element.dtype);
}

OutputSpec describe_cross_entropy(const at::Tensor& self, const at::Tensor& target, const MaybeTensor& /*weight*/,
                                  int64_t reduction) {
  return reduced(output_of_operands(self, target), reduction);
}

OutputSpec describe_huber(const at::Tensor& self, const at::Tensor& target, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  return reduced(output_of_operands(self, target), reduction);
}

void check_multi_margin(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
                        const MaybeTensor& weight) {
  int64_t samples = 0;
  int64_t classes = 0;
  TORCH_CHECK(p.toLong() == 1 || p.toLong() == 2, "only p == 1 and p == 2 supported");
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ", target.scalar_type());
  at::native::multi_margin_loss_shape_check(samples, classes, self.dim(), self, target, weight);
}

OutputSpec describe_multi_margin(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
                                 const at::Scalar& /*margin*/, const MaybeTensor& weight, int64_t reduction) {
  check_multi_margin(self, target, p, weight);
  return reduction == at::Reduction::None && target.dim() > 0 ? output_of({target.size(0)}, self.scalar_type())
                                                              : scalar_output(self.scalar_type());
}

OutputSpec describe_multi_margin_backward(const at::Tensor& /*grad*/, const at::Tensor& self, const at::Tensor& target,
                                          const at::Scalar& p, const at::Scalar& /*margin*/, const MaybeTensor& weight,
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
  OPENREG_DESCRIBED_OUT(library, binary_cross_entropy, binary_cross_entropy_out,
                        AsOut<&at::cpu::binary_cross_entropy>::call, describe_cross_entropy)
  OPENREG_DESCRIBED_OUT(library, binary_cross_entropy_backward, binary_cross_entropy_backward_grad_input,
                        AsOut<&at::cpu::binary_cross_entropy_backward>::call, like_second)
  OPENREG_DESCRIBED_OUT(library, huber_loss, huber_loss_out, AsOut<&at::cpu::huber_loss>::call, describe_huber)
  OPENREG_DESCRIBED_OUT_ONLY(library, huber_loss_backward_out, at::cpu::huber_loss_backward_outf, like_second)
  OPENREG_DESCRIBED_OUT(library, mse_loss_backward, mse_loss_backward_grad_input, at::cpu::mse_loss_backward_outf,
                        shape_of_second)
  OPENREG_DESCRIBED_OUT_ONLY(library, smooth_l1_loss_backward_grad_input, at::cpu::smooth_l1_loss_backward_outf,
                             like_second)
  OPENREG_DESCRIBED_OUT(library, multi_margin_loss, multi_margin_loss_out,
                        (ComputedIn<reduced_as_float, &AsOut<&at::cpu::multi_margin_loss>::call>::call),
                        describe_multi_margin)
  OPENREG_DESCRIBED_OUT(library, multi_margin_loss_backward, multi_margin_loss_backward_grad_input,
                        (ComputedIn<reduced_as_float, &AsOut<&at::cpu::multi_margin_loss_backward>::call>::call),
                        describe_multi_margin_backward)
  OPENREG_DESCRIBED_OUT(library, multilabel_margin_loss_forward, multilabel_margin_loss_forward_output,
                        (ComputedIn<reduced_as_float, &AsOut<&at::cpu::multilabel_margin_loss_forward>::call>::call),
                        describe_multilabel)
  OPENREG_DESCRIBED_OUT(library, multilabel_margin_loss_backward, multilabel_margin_loss_backward_grad_input,
                        (ComputedIn<reduced_as_float, &AsOut<&at::cpu::multilabel_margin_loss_backward>::call>::call),
                        describe_multilabel_backward)
}

}  // namespace

}  // namespace openreg::ops
