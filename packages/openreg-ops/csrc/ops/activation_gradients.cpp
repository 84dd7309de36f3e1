// SPDX-License-Identifier: BSD-3-Clause
// Described operators: activations that have no meta function, and derivatives of activations.
#include "common/described.h"

#include <ATen/ops/_prelu_kernel_backward_cpu_dispatch.h>
#include <ATen/ops/_prelu_kernel_backward_ops.h>
#include <ATen/ops/_prelu_kernel_cpu_dispatch.h>
#include <ATen/ops/_prelu_kernel_ops.h>
#include <ATen/ops/glu_backward_cpu_dispatch.h>
#include <ATen/ops/glu_backward_jvp_cpu_dispatch.h>
#include <ATen/ops/glu_backward_jvp_ops.h>
#include <ATen/ops/glu_backward_ops.h>
#include <ATen/ops/glu_jvp_cpu_dispatch.h>
#include <ATen/ops/glu_jvp_ops.h>
#include <ATen/ops/hardswish_backward_cpu_dispatch.h>
#include <ATen/ops/hardswish_backward_ops.h>
#include <ATen/ops/hardswish_cpu_dispatch.h>
#include <ATen/ops/hardswish_ops.h>
#include <ATen/ops/hardtanh_backward_cpu_dispatch.h>
#include <ATen/ops/hardtanh_backward_ops.h>
#include <ATen/ops/hardtanh_native.h>
#include <ATen/ops/log_sigmoid_backward_cpu_dispatch.h>
#include <ATen/ops/log_sigmoid_backward_ops.h>
#include <ATen/ops/log_sigmoid_forward_cpu_dispatch.h>
#include <ATen/ops/log_sigmoid_forward_ops.h>
#include <ATen/ops/mish_backward_cpu_dispatch.h>
#include <ATen/ops/mish_backward_ops.h>

#include "common/pointwise_spec.h"

namespace openreg::ops {

namespace {

std::array<OutputSpec, 2> describe_log_sigmoid(const at::Tensor& self) {
  OutputSpec spec = output_of_shape(self);
  spec.quiet = true;
  spec.overlaps = true;
  return {spec, spec};
}

std::array<OutputSpec, 2> describe_prelu_backward(const at::Tensor& grad, const at::Tensor& self,
                                                  const at::Tensor& weight) {
  OutputSpec of_self = output_of_operands(self, grad, weight);
  OutputSpec of_weight = of_self;
  of_weight.dtype = weight.scalar_type();
  return {of_self, of_weight};
}

OutputSpec describe_glu_backward_jvp(const at::Tensor& /*grad_x*/, const at::Tensor& /*grad_glu*/, const at::Tensor& x,
                                     const at::Tensor& /*dgrad_glu*/, const at::Tensor& /*dx*/, int64_t /*dim*/) {
  return output_of_shape(x);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  // These clamp, by operators that the device has.
  library.impl("hardtanh", TORCH_FN(at::native::hardtanh));
  library.impl("hardtanh.out", TORCH_FN(at::native::hardtanh_out));
  library.impl("hardtanh_", TORCH_FN(at::native::hardtanh_));
  OPENREG_DESCRIBED_OUT(library, hardtanh_backward, hardtanh_backward_grad_input, at::cpu::hardtanh_backward_outf,
                        like_operands)
  OPENREG_DESCRIBED_OUT(library, hardswish, hardswish_out, at::cpu::hardswish_outf, like_first)
  OPENREG_DESCRIBED_INPLACE(library, hardswish_, at::cpu::hardswish_, unchecked)
  OPENREG_DESCRIBED(library, hardswish_backward, at::cpu::hardswish_backward, like_operands)
  OPENREG_DESCRIBED_OUT(library, log_sigmoid_forward, log_sigmoid_forward_output, at::cpu::log_sigmoid_forward_outf,
                        describe_log_sigmoid)
  OPENREG_DESCRIBED_OUT(library, log_sigmoid_backward, log_sigmoid_backward_grad_input,
                        at::cpu::log_sigmoid_backward_outf, like_first)
  OPENREG_DESCRIBED_OUT(library, glu_backward, glu_backward_grad_input, at::cpu::glu_backward_outf, shape_of_second)
  OPENREG_DESCRIBED(library, glu_jvp, at::cpu::glu_jvp, shape_of_first)
  OPENREG_DESCRIBED(library, glu_backward_jvp, at::cpu::glu_backward_jvp, describe_glu_backward_jvp)
  OPENREG_DESCRIBED(library, _prelu_kernel, at::cpu::_prelu_kernel, like_operands)
  OPENREG_DESCRIBED(library, _prelu_kernel_backward, at::cpu::_prelu_kernel_backward, describe_prelu_backward)
  OPENREG_DESCRIBED(library, mish_backward, at::cpu::mish_backward, like_second)
}

}  // namespace

}  // namespace openreg::ops
