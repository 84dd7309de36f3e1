// SPDX-License-Identifier: BSD-3-Clause
// How random kernels use the counter-based generator: number k of a launch belongs to element k, whoever computes it.
#pragma once

#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "openreg/runtime/device.h"
#include "openreg/runtime/generator.h"
#include "raw/grid.h"

namespace openreg::ops {

// One step of the generator: 128 random bits.
using RandomBits = std::array<uint32_t, 4>;

// Reserves what a launch over `count` elements needs at most: one step per element.
inline runtime::PhiloxState reserve_random(const std::optional<at::Generator>& generator, c10::DeviceIndex index,
                                           int64_t count) {
  return runtime::generator_or_default(generator, index).reserve(static_cast<uint64_t>(count));
}

// The same for filling `self` by the operator `name`. Throws c10::Error when `self` is on another kind of device: a
// generator of this device brings a tensor of the CPU here, too.
inline runtime::PhiloxState reserve_random(const char* name, const at::Tensor& self,
                                           const std::optional<at::Generator>& generator) {
  TORCH_CHECK(
      self.device().type() == runtime::kDeviceType, name, ": the tensor is on ", self.device(),
      " but the generator is on an openreg device; use a CPU generator, or make the tensor with device='openreg'");
  return reserve_random(generator, self.device().index(), self.numel());
}

// Fills a CPU tensor, on the engine. `draw(bits, values)` makes kPerStep elements of one step; which step an element
// belongs to depends on its index alone, so the numbers do not depend on the number of threads.
template <class Value, int kPerStep, class Draw>
void fill_random(at::Tensor& out, runtime::PhiloxState start, Draw draw) {
  constexpr int64_t kStepsPerThread = 4096;
  at::Tensor dense = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  Value* data = dense.mutable_data_ptr<Value>();
  const int64_t count = dense.numel();
  const int64_t steps = (count + kPerStep - 1) / kPerStep;
  raw::parallel(steps, kStepsPerThread, [&](int64_t begin, int64_t end) {
    at::philox_engine engine(start.seed(), 0, start.offset() + static_cast<uint64_t>(begin));
    for (int64_t step = begin; step < end; ++step) {
      const RandomBits bits{engine(), engine(), engine(), engine()};
      std::array<Value, kPerStep> values;
      draw(bits, values);
      const int64_t first = step * kPerStep;
      std::copy_n(values.begin(), std::min<int64_t>(kPerStep, count - first), data + first);
    }
  });
  if (!dense.is_same(out)) {
    out.copy_(dense);
  }
}

// How many random numbers of type Value one step gives: a double takes 64 bits.
template <class Value>
constexpr int kValuesPerStep = std::is_same_v<Value, double> ? 2 : 4;

// Number `i` of a step, uniform in [0, 1) and exact in Value's own precision, so that storing it cannot round up to 1.
template <class Value>
auto uniform_number(const RandomBits& bits, int i) {
  if constexpr (std::is_same_v<Value, double>) {
    const uint64_t word = (static_cast<uint64_t>(bits[2 * i]) << 32) | bits[2 * i + 1];
    return static_cast<double>(word >> 11) * 0x1p-53;
  } else {
    constexpr int kDigits = std::numeric_limits<Value>::digits;
    return static_cast<float>(bits[i] >> (32 - kDigits)) * std::ldexp(1.0F, -kDigits);
  }
}

}  // namespace openreg::ops
