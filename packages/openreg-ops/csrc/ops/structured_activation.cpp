// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: activation functions and their derivatives.
#include "common/structured.h"

#include <ATen/native/Activation.h>
#include <ATen/ops/elu_backward_cpu_dispatch.h>
#include <ATen/ops/elu_backward_meta.h>
#include <ATen/ops/elu_backward_ops.h>
#include <ATen/ops/elu_cpu_dispatch.h>
#include <ATen/ops/elu_meta.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/gelu_backward_cpu_dispatch.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_cpu_dispatch.h>
#include <ATen/ops/gelu_meta.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/glu_cpu_dispatch.h>
#include <ATen/ops/glu_meta.h>
#include <ATen/ops/glu_ops.h>
#include <ATen/ops/hardshrink_backward_cpu_dispatch.h>
#include <ATen/ops/hardshrink_backward_meta.h>
#include <ATen/ops/hardshrink_backward_ops.h>
#include <ATen/ops/hardshrink_cpu_dispatch.h>
#include <ATen/ops/hardshrink_meta.h>
#include <ATen/ops/hardshrink_ops.h>
#include <ATen/ops/hardsigmoid_backward_cpu_dispatch.h>
#include <ATen/ops/hardsigmoid_backward_meta.h>
#include <ATen/ops/hardsigmoid_backward_ops.h>
#include <ATen/ops/hardsigmoid_cpu_dispatch.h>
#include <ATen/ops/hardsigmoid_meta.h>
#include <ATen/ops/hardsigmoid_ops.h>
#include <ATen/ops/leaky_relu_backward_cpu_dispatch.h>
#include <ATen/ops/leaky_relu_backward_meta.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/leaky_relu_cpu_dispatch.h>
#include <ATen/ops/leaky_relu_meta.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/logit_backward_cpu_dispatch.h>
#include <ATen/ops/logit_backward_meta.h>
#include <ATen/ops/logit_backward_ops.h>
#include <ATen/ops/mish_cpu_dispatch.h>
#include <ATen/ops/mish_meta.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/sigmoid_backward_cpu_dispatch.h>
#include <ATen/ops/sigmoid_backward_meta.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_backward_cpu_dispatch.h>
#include <ATen/ops/silu_backward_meta.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/silu_cpu_dispatch.h>
#include <ATen/ops/silu_meta.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/softplus_backward_cpu_dispatch.h>
#include <ATen/ops/softplus_backward_meta.h>
#include <ATen/ops/softplus_backward_ops.h>
#include <ATen/ops/softplus_cpu_dispatch.h>
#include <ATen/ops/softplus_meta.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/softshrink_backward_cpu_dispatch.h>
#include <ATen/ops/softshrink_backward_meta.h>
#include <ATen/ops/softshrink_backward_ops.h>
#include <ATen/ops/softshrink_cpu_dispatch.h>
#include <ATen/ops/softshrink_meta.h>
#include <ATen/ops/softshrink_ops.h>
#include <ATen/ops/tanh_backward_cpu_dispatch.h>
#include <ATen/ops/tanh_backward_meta.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_cpu_dispatch.h>
#include <ATen/ops/threshold_backward_meta.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/threshold_cpu_dispatch.h>
#include <ATen/ops/threshold_meta.h>
#include <ATen/ops/threshold_ops.h>

namespace openreg::ops {

namespace {

// GELU has two forms by name; the kernels find out that another name is wrong, too late for the calling line.

OPENREG_STRUCTURED_SPEC(gelu, gelu_out, gelu)
OPENREG_STRUCTURED_SPEC(gelu_backward, gelu_backward_grad_input, gelu_backward)
using Gelu = StructuredOf<Spec_gelu>;
using GeluBackward = StructuredOf<Spec_gelu_backward>;

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  at::native::get_gelutype_enum(approximate);
  return Gelu::functional(self, approximate);
}

at::Tensor& gelu_out(const at::Tensor& self, std::string_view approximate, at::Tensor& out) {
  at::native::get_gelutype_enum(approximate);
  const bool is_like_self = out.sizes() == self.sizes() && out.scalar_type() == self.scalar_type();
  if (is_like_self && out.strides() != self.strides() && at::has_internal_overlap(out) != at::MemOverlap::Yes) {
    // oneDNN's kernel writes one element after the other, as they lie in the operand.
    check_same_device("aten::gelu", device_of("aten::gelu", self, out), self, out);
    at::assert_no_partial_overlap(out, self);
    return out.copy_(Gelu::functional(self, approximate));
  }
  return Gelu::out(self, approximate, out);
}

at::Tensor& gelu_(at::Tensor& self, std::string_view approximate) {
  at::native::get_gelutype_enum(approximate);
  return Inplace<Spec_gelu, SchemaOf<at::_ops::gelu_>>::call<Gelu>(self, approximate);
}

at::Tensor gelu_backward(const at::Tensor& grad, const at::Tensor& self, std::string_view approximate) {
  at::native::get_gelutype_enum(approximate);
  return GeluBackward::functional(grad, self, approximate);
}

at::Tensor& gelu_backward_out(const at::Tensor& grad, const at::Tensor& self, std::string_view approximate,
                              at::Tensor& out) {
  at::native::get_gelutype_enum(approximate);
  return GeluBackward::out(grad, self, approximate, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("gelu", &gelu);
  library.impl("gelu.out", &gelu_out);
  library.impl("gelu_", &gelu_);
  library.impl("gelu_backward", &gelu_backward);
  library.impl("gelu_backward.grad_input", &gelu_backward_out);
}

}  // namespace

}  // namespace openreg::ops

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_STRUCTURED_INPLACE(library, elu, elu_out, elu_, elu)
  OPENREG_STRUCTURED(library, elu_backward, elu_backward_grad_input, elu_backward)
  OPENREG_STRUCTURED(library, glu, glu_out, glu)
  OPENREG_STRUCTURED(library, hardshrink, hardshrink_out, hardshrink)
  OPENREG_STRUCTURED(library, hardshrink_backward, hardshrink_backward_grad_input, hardshrink_backward)
  OPENREG_STRUCTURED_INPLACE(library, hardsigmoid, hardsigmoid_out, hardsigmoid_, hardsigmoid)
  OPENREG_STRUCTURED(library, hardsigmoid_backward, hardsigmoid_backward_grad_input, hardsigmoid_backward)
  OPENREG_STRUCTURED_INPLACE(library, leaky_relu, leaky_relu_out, leaky_relu_, leaky_relu)
  OPENREG_STRUCTURED(library, leaky_relu_backward, leaky_relu_backward_grad_input, leaky_relu_backward)
  OPENREG_STRUCTURED(library, logit_backward, logit_backward_grad_input, logit_backward)
  OPENREG_STRUCTURED_INPLACE(library, mish, mish_out, mish_, mish)
  OPENREG_STRUCTURED(library, sigmoid_backward, sigmoid_backward_grad_input, sigmoid_backward)
  OPENREG_STRUCTURED_INPLACE(library, silu, silu_out, silu_, silu)
  OPENREG_STRUCTURED(library, silu_backward, silu_backward_grad_input, silu_backward)
  OPENREG_STRUCTURED(library, softplus, softplus_out, softplus)
  OPENREG_STRUCTURED(library, softplus_backward, softplus_backward_grad_input, softplus_backward)
  OPENREG_STRUCTURED(library, softshrink, softshrink_out, softshrink)
  OPENREG_STRUCTURED(library, softshrink_backward, softshrink_backward_grad_input, softshrink_backward)
  OPENREG_STRUCTURED(library, tanh_backward, tanh_backward_grad_input, tanh_backward)
  OPENREG_STRUCTURED_INPLACE(library, threshold, threshold_out, threshold_, threshold)
  OPENREG_STRUCTURED(library, threshold_backward, threshold_backward_grad_input, threshold_backward)
}
