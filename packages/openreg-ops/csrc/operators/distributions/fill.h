// SPDX-License-Identifier: BSD-3-Clause
// Functions for operators that fill a tensor with random numbers, either the operand or a new one.
#pragma once

#include <ATen/MemoryOverlap.h>

#include <string_view>
#include <type_traits>

#include "kernels/distributions.h"
#include "launch/launch.h"
#include "support/output_spec.h"
#include "support/outputs.h"
#include "support/random.h"

namespace openreg::ops {

// Returns the operator's name without the namespace aten, such as "normal_".
inline const char* unqualified_name(const Operator& op) {
  return op.name + std::string_view("aten::").size();
}

// Launches `kernel(self, state, numbers...)`. Throws NotImplementedError, in PyTorch's words, unless `supported`
// contains the dtype. Throws c10::Error if `self` overlaps itself, or is on another type of device than the generator.
template <class... Numbers>
void fill_with(const Operator& op, DtypeSet supported, void (*kernel)(at::Tensor&, runtime::PhiloxState, Numbers...),
               const at::Tensor& self, const MaybeGenerator& generator, std::type_identity_t<Numbers>... numbers) {
  at::assert_no_internal_overlap(self);
  require_dtype((dtype_bit(self.scalar_type()) & supported) != 0, unqualified_name(op), self.scalar_type());
  const runtime::PhiloxState state = reserve_random(op.name, self, generator);
  const OperandDeviceGuard device(op, self);
  launch(op, device, kernel, self, state, numbers...);
}

// An adapter of `fill_with()` for PyTorch's templates (ATen/native/DistributionTemplates.h). These check the arguments
// and pass complex tensors as real ones. Filling<kOp, kSupported, kernel>::By is the kernel class that they take.
template <const Operator& kOp, DtypeSet kSupported, auto kKernel>
struct Filling {
  template <class>
  struct By {
    void operator()(const at::Tensor& self, double first, const MaybeGenerator& generator) const {
      fill_with(kOp, kSupported, kKernel, self, generator, first);
    }
    void operator()(const at::Tensor& self, double first, double second, const MaybeGenerator& generator) const {
      fill_with(kOp, kSupported, kKernel, self, generator, first, second);
    }
    void operator()(at::TensorIterator& iterator, const auto&... arguments) const {
      (*this)(iterator.tensor(0), arguments...);
    }
  };
};

// Returns a new tensor of random numbers with the operand's shape and dtype. The operand's elements are parameters of
// the distribution. Reserves kernels::kSamplerSteps steps of the generator, whatever the size, because each element
// draws from its own subsequence of that length. Throws NotImplementedError unless the dtype is floating-point.
template <const Operator& kOp, void (*kKernel)(const at::Tensor&, at::Tensor&, runtime::PhiloxState)>
at::Tensor sample(const at::Tensor& parameter, MaybeGenerator generator) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(parameter.scalar_type()), '"', unqualified_name(kOp),
                              "\" not implemented for '", parameter.scalar_type(),
                              "'; convert the parameters of the distribution with .float()");
  const OperandDeviceGuard device(kOp, parameter);
  at::Tensor out = make_output(parameter.sizes(), {}, parameter.options());
  launch(kOp, device, kKernel, parameter, out, reserve_steps(generator, device.index(), kernels::kSamplerSteps));
  return out;
}

}  // namespace openreg::ops
