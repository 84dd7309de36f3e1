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

using raw::kValuesPerCounter;
using raw::long_word;
using raw::RandomBits;
using raw::uniform_number;

// Fills a CPU tensor, on all OpenMP threads if it is large. `draw(bits, values)` computes kPerCounter consecutive
// elements from the generator's 128 random bits for one counter value. Counter value `start` + i gives the elements
// that begin at kPerCounter * i.
template <class Value, int kPerCounter, class Draw>
void fill_random(at::Tensor& out, runtime::PhiloxState start, Draw draw) {
  constexpr int64_t kCountersPerThread = 4096;
  at::Tensor dense = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  Value* data = dense.mutable_data_ptr<Value>();
  const int64_t count = dense.numel();
  const int64_t counters = (count + kPerCounter - 1) / kPerCounter;
  for_each_item(counters, kCountersPerThread, [&, seed = start.seed(), offset = start.offset()](int64_t index) {
    std::array<Value, kPerCounter> values;
    draw(raw::philox(seed, offset + static_cast<uint64_t>(index)), values);
    const int64_t first = index * kPerCounter;
    std::copy_n(values.begin(), std::min<int64_t>(kPerCounter, count - first), data + first);
  });
  if (!dense.is_same(out)) {
    out.copy_(dense);
  }
}

// Same as `fill_random()`, except that `number(bits, i)` computes element i from the bits of one counter value.
template <class Value, int kPerCounter, class Number>
void fill_each(at::Tensor& out, runtime::PhiloxState start, Number number) {
  fill_random<Value, kPerCounter>(out, start, [number](const RandomBits& bits, auto& values) {
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
