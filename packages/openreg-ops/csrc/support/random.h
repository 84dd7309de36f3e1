// SPDX-License-Identifier: BSD-3-Clause
// What a random operator takes from the generator before its launch: a range of steps, which are the kernel's own
// wherever and whenever it runs.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

#include "openreg/runtime/device.h"
#include "openreg/runtime/generator.h"

namespace openreg::ops {

using MaybeGenerator = std::optional<at::Generator>;

// Reserves what a launch over `count` elements needs at most: one step per element.
inline runtime::PhiloxState reserve_random(const MaybeGenerator& generator, c10::DeviceIndex index, int64_t count) {
  return runtime::generator_or_default(generator, index).reserve(static_cast<uint64_t>(count));
}

// The same for filling `self` by the operator `name`. Throws c10::Error when `self` is on another kind of device: a
// generator of this device brings a tensor of the CPU here, too.
inline runtime::PhiloxState reserve_random(const char* name, const at::Tensor& self, const MaybeGenerator& generator) {
  TORCH_CHECK(
      self.device().type() == runtime::kDeviceType, name, ": the tensor is on ", self.device(),
      " but the generator is on an openreg device; use a CPU generator, or make the tensor with device='openreg'");
  return reserve_random(generator, self.device().index(), self.numel());
}

}  // namespace openreg::ops
