// SPDX-License-Identifier: BSD-3-Clause
// Parallel fills with random numbers of the Philox generator. The numbers of an element depend on its index, not on the
// thread that computes them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/parallel.h"
#include "kernels/philox.h"
#include "openreg/runtime/generator.h"

namespace openreg::ops::kernels {

using raw::kValuesPerStep;
using raw::long_word;
using raw::RandomBits;
using raw::uniform_number;

// Fills a CPU tensor on all OpenMP threads. `draw(bits, values)` computes kPerStep consecutive elements from one step
// of the generator (128 random bits). Step i, counted from `start`, gives the elements from kPerStep * i on.
template <class Value, int kPerStep, class Draw>
void fill_random(at::Tensor& out, runtime::PhiloxState start, Draw draw) {
  constexpr int64_t kStepsPerThread = 4096;
  at::Tensor dense = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  Value* data = dense.mutable_data_ptr<Value>();
  const int64_t count = dense.numel();
  const int64_t steps = (count + kPerStep - 1) / kPerStep;
  for_each_item(steps, kStepsPerThread, [&, seed = start.seed(), offset = start.offset()](int64_t step) {
    std::array<Value, kPerStep> values;
    draw(raw::philox(seed, offset + static_cast<uint64_t>(step)), values);
    const int64_t first = step * kPerStep;
    std::copy_n(values.begin(), std::min<int64_t>(kPerStep, count - first), data + first);
  });
  if (!dense.is_same(out)) {
    out.copy_(dense);
  }
}

// Same as `fill_random()`, except that `number(bits, i)` computes element i of a step.
template <class Value, int kPerStep, class Number>
void fill_each(at::Tensor& out, runtime::PhiloxState start, Number number) {
  fill_random<Value, kPerStep>(out, start, [number](const RandomBits& bits, auto& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<Value>(number(bits, i));
    }
  });
}

// Returns a new CPU tensor of doubles that are uniform in [0, 1).
inline at::Tensor uniform_doubles(c10::IntArrayRef sizes, runtime::PhiloxState start) {
  at::Tensor numbers = at::empty(sizes, at::kDouble);
  fill_each<double, 2>(numbers, start,
                       [](const RandomBits& bits, size_t i) { return uniform_number<double>(bits, i); });
  return numbers;
}

}  // namespace openreg::ops::kernels
