// SPDX-License-Identifier: BSD-3-Clause
// Leaky ReLU with a random slope per element.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mul.h>

#include "launch/derivative.h"
#include "registration/declare.h"
#include "support/random.h"

namespace openreg::ops {

namespace {

constexpr Operator kRrelu{"aten::rrelu_with_noise"};

// In training, also writes the drawn slopes into `noise`, and 1 for positive elements, because the backward pass needs
// them.
at::Tensor& rrelu_out(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                      bool training, MaybeGenerator generator, at::Tensor& out) {
  TORCH_CHECK(self.sym_sizes() == noise.sym_sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
              " noise.shape = ", noise.sizes());
  const OperandDeviceGuard device(kRrelu, self, noise, out);
  if (!training) {
    return at::leaky_relu_out(out, self, (lower.toDouble() + upper.toDouble()) / 2);
  }
  // Before the generator advances, because the operators below would throw after that.
  require_dtype((dtype_bit(self.scalar_type()) & kFloating) != 0, "rrelu_with_noise_out_cpu", self.scalar_type());
  expect_like(kRrelu.name, "noise", noise, self);
  expect(kRrelu.name, "out", out, out.sizes(), self.scalar_type());
  at::assert_no_internal_overlap(noise);
  at::assert_no_internal_overlap(out);
  at::assert_no_partial_overlap(out, self);
  at::assert_no_partial_overlap(out, noise);
  noise.uniform_(lower.toDouble(), upper.toDouble(), std::move(generator));
  noise.masked_fill_(at::gt(self, 0), 1);
  return at::mul_out(out, self, noise);
}

at::Tensor rrelu(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                 bool training, MaybeGenerator generator) {
  const CurrentDeviceGuard current(self.device());
  at::Tensor out = make_output_like(self);
  return rrelu_out(self, noise, lower, upper, training, std::move(generator), out);
}

at::Tensor& rrelu_(at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper, bool training,
                   MaybeGenerator generator) {
  return rrelu_out(self, noise, lower, upper, training, std::move(generator), self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::rrelu_with_noise>(library, rrelu);
  function<op::rrelu_with_noise_out>(library, rrelu_out);
  function<op::rrelu_with_noise_>(library, rrelu_);
}

}  // namespace

}  // namespace openreg::ops
