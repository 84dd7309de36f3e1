// SPDX-License-Identifier: BSD-3-Clause
// Custom operator, third way: added to a namespace that exists, here PyTorch's own. The prefix keeps its name apart
// from those that PyTorch will ever have. Gives the common norm of gradients, and the factor that brings it down to
// max_norm, in one launch and without waiting. (It changes no operand: what torch.compile does with operators that do,
// it does for other namespaces only.)
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "declare/launch.h"

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

constexpr Operator kClipFactor{"aten::_openreg_clip_factor"};
constexpr double kTiny = 1e-6;  // keeps a norm of zero from being divided by, as in PyTorch

void check_gradients(at::TensorList gradients, double max_norm) {
  TORCH_CHECK_VALUE(max_norm >= 0, kClipFactor.name, ": expected max_norm to be at least 0, but got ", max_norm);
  for (const at::Tensor& gradient : gradients) {
    TORCH_CHECK(at::isFloatingType(gradient.scalar_type()) && gradient.scalar_type() == gradients[0].scalar_type(),
                kClipFactor.name, ": expected floating-point gradients of one dtype, but got ",
                gradients[0].scalar_type(), " and ", gradient.scalar_type());
  }
}

void kernel(at::TensorList gradients, double max_norm, at::Tensor& norm, at::Tensor& factor) {
  norm.copy_(at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)), 2));
  factor.copy_(norm.add(kTiny).reciprocal().mul(max_norm).clamp_max(1));
}

Pair clip_factor(at::TensorList gradients, double max_norm) {
  const OperandsDevice device(kClipFactor, gradients);
  check_gradients(gradients, max_norm);
  at::Tensor norm = make_output({}, {}, gradients[0].options());
  at::Tensor factor = make_output({}, {}, gradients[0].options());
  launch(kClipFactor, device, &kernel, gradients, max_norm, norm, factor);
  return {std::move(norm), std::move(factor)};
}

Pair clip_factor_meta(at::TensorList gradients, double max_norm) {
  check_gradients(gradients, max_norm);
  return {at::empty({}, gradients[0].options()), at::empty({}, gradients[0].options())};
}

TORCH_LIBRARY_FRAGMENT(aten, library) {
  library.def("_openreg_clip_factor(Tensor[] gradients, float max_norm) -> (Tensor norm, Tensor factor)",
              {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_openreg_clip_factor", TORCH_FN(clip_factor));
}

TORCH_LIBRARY_IMPL(aten, Meta, library) {
  library.impl("_openreg_clip_factor", TORCH_FN(clip_factor_meta));
}

// PyTorch's ready-made kernel for operators without a derivative: a backward pass through it is an error.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("_openreg_clip_factor", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace

}  // namespace openreg::ops
