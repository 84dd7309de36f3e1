// SPDX-License-Identifier: BSD-3-Clause
// How kernels use the counter-based generator: number k of a launch belongs to element k, whichever thread computes it.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "openreg/runtime/generator.h"

namespace openreg::ops::kernels {

// One step of the generator: 128 random bits.
using RandomBits = std::array<uint32_t, 4>;

// Fills a CPU tensor, on all threads. `draw(bits, values)` makes kPerStep elements of one step; which step an element
// belongs to depends on its index alone, so the numbers do not depend on the number of threads.
template <class Value, int kPerStep, class Draw>
void fill_random(at::Tensor& out, runtime::PhiloxState start, Draw draw) {
  constexpr int64_t kStepsPerThread = 4096;
  at::Tensor dense = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  Value* data = dense.mutable_data_ptr<Value>();
  const int64_t count = dense.numel();
  const int64_t steps = (count + kPerStep - 1) / kPerStep;
  at::parallel_for(0, steps, kStepsPerThread, [&](int64_t begin, int64_t end) {
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

// Word `i` of 64 bits of a step, of two.
inline uint64_t long_word(const RandomBits& bits, size_t i) {
  return (static_cast<uint64_t>(bits[2 * i]) << 32) | bits[2 * i + 1];
}

// How many random numbers of type Value one step gives: a double takes 64 bits.
template <class Value>
constexpr int kValuesPerStep = std::is_same_v<Value, double> ? 2 : 4;

// Number `i` of a step, uniform in [0, 1) and exact in Value's own precision, so that storing it cannot round up to 1.
template <class Value>
auto uniform_number(const RandomBits& bits, size_t i) {
  if constexpr (std::is_same_v<Value, double>) {
    return static_cast<double>(long_word(bits, i) >> 11) * 0x1p-53;
  } else {
    constexpr int kDigits = std::numeric_limits<Value>::digits;
    return static_cast<float>(bits[i] >> (32 - kDigits)) * std::ldexp(1.0F, -kDigits);
  }
}

// Doubles that are uniform in [0, 1).
inline at::Tensor uniform_doubles(c10::IntArrayRef sizes, runtime::PhiloxState start) {
  at::Tensor numbers = at::empty(sizes, at::kDouble);
  fill_random<double, 2>(numbers, start, [](const RandomBits& bits, auto& values) {
    values = {uniform_number<double>(bits, 0), uniform_number<double>(bits, 1)};
  });
  return numbers;
}

}  // namespace openreg::ops::kernels
