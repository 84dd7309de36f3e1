// SPDX-License-Identifier: BSD-3-Clause
// The part of a random operator that precedes its launch: it reserves a range of the generator's steps, each of which
// gives 128 random bits. The random numbers thus do not depend on the place and time at which the kernel runs.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

#include "openreg/runtime/device.h"
#include "openreg/runtime/generator.h"
#include "support/random_steps.h"

namespace openreg::ops {

using MaybeGenerator = std::optional<at::Generator>;

// Reserves `steps` steps of the generator, or of the default generator of the device, and returns where they start.
inline runtime::PhiloxState reserve_steps(const MaybeGenerator& generator, c10::DeviceIndex index, int64_t steps) {
  return runtime::generator_or_default(generator, index).reserve(static_cast<uint64_t>(steps));
}

// Same as `reserve_steps()`, for a kernel that draws one number for each of `elements` elements.
inline runtime::PhiloxState reserve_random(const MaybeGenerator& generator, c10::DeviceIndex index, int64_t elements) {
  return reserve_steps(generator, index, steps_for(elements));
}

// Reserves the steps with which the operator `name` fills `self`. Throws c10::Error if `self` is on another type of
// device, because the dispatcher also selects this backend for a CPU tensor with a generator of this device.
inline runtime::PhiloxState reserve_random(const char* name, const at::Tensor& self, const MaybeGenerator& generator) {
  TORCH_CHECK(
      self.device().type() == runtime::kDeviceType, name, ": the tensor is on ", self.device(),
      " but the generator is on an openreg device; use a CPU generator, or make the tensor with device='openreg'");
  return reserve_random(generator, self.device().index(), self.numel());
}

}  // namespace openreg::ops
