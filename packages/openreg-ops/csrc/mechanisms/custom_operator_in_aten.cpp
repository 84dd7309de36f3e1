// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: a custom operator in a namespace that exists, here PyTorch's own. The prefix separates its name from all
// future names of PyTorch. The operator returns the common norm of gradients, and the factor that reduces it to
// max_norm, in one asynchronous launch. (It changes no operand, because torch.compile supports operators that do so in
// other namespaces only.)
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <vector>

#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

constexpr const char* kName = "aten::_openreg_clip_factor";
constexpr double kTiny = 1e-6;  // avoids a division by a norm of zero, as in PyTorch

void check_gradients(at::TensorList gradients, double max_norm) {
  TORCH_CHECK_VALUE(max_norm >= 0, kName, ": expected max_norm to be at least 0, but got ", max_norm);
  TORCH_CHECK(!gradients.empty(), kName, ": expected at least one gradient");
  for (const at::Tensor& gradient : gradients) {
    TORCH_CHECK(gradient.device() == gradients[0].device(), kName,
                ": Expected all tensors to be on the same device, but found at least two devices, ",
                gradients[0].device(), " and ", gradient.device(), "!");
    TORCH_CHECK(at::isFloatingType(gradient.scalar_type()) && gradient.scalar_type() == gradients[0].scalar_type(),
                kName, ": expected floating-point gradients of one dtype, but got ", gradients[0].scalar_type(),
                " and ", gradient.scalar_type());
  }
}

void kernel(at::TensorList gradients, double max_norm, at::Tensor& norm, at::Tensor& factor) {
  norm.copy_(at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)), 2));
  factor.copy_(norm.add(kTiny).reciprocal().mul(max_norm).clamp_max(1));
}

Pair clip_factor(at::TensorList gradients, double max_norm) {
  check_gradients(gradients, max_norm);
  const c10::DeviceGuard guard(gradients[0].device());
  at::Tensor norm = at::empty({}, gradients[0].options());
  at::Tensor factor = at::empty({}, gradients[0].options());
  runtime::AliasBuilder aliases(kName);
  std::vector<at::Tensor> of_gradients;
  for (const at::Tensor& gradient : gradients) {
    of_gradients.push_back(aliases(gradient));
  }
  aliases.as(orAccessWrite);
  auto run = [of_gradients = std::move(of_gradients), max_norm, norm = aliases(norm),
              factor = aliases(factor)]() mutable { kernel(of_gradients, max_norm, norm, factor); };
  runtime::launch(kName, gradients[0].device().index(), std::move(run), aliases.operands());
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

// Registers PyTorch's ready-made kernel for operators without a derivative, which makes a backward pass an error.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) {
  library.impl("_openreg_clip_factor", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace

}  // namespace openreg::ops
