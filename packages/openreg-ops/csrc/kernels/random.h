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

using raw::RandomWords;
using raw::uniform_number;
using raw::WordOf;

// Fills a CPU tensor, on all OpenMP threads if it is large. `draw(words, values)` computes the elements of one step,
// which are kElementsPerStep consecutive ones, from the step's random words. Step `start` + i gives the elements that
// begin at kElementsPerStep * i.
template <class Value, class Word, class Draw>
void fill_random(at::Tensor& out, runtime::PhiloxState start, Draw draw) {
  constexpr int64_t kStepsPerThread = 4096;
  at::Tensor dense = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  Value* data = dense.mutable_data_ptr<Value>();
  const int64_t count = dense.numel();
  for_each_item(steps_for(count), kStepsPerThread, [&, seed = start.seed(), offset = start.offset()](int64_t index) {
    std::array<Value, kElementsPerStep> values;
    draw(raw::random_words<Word>(seed, offset + static_cast<uint64_t>(index)), values);
    const int64_t first = index * kElementsPerStep;
    std::copy_n(values.begin(), std::min<int64_t>(kElementsPerStep, count - first), data + first);
  });
  if (!dense.is_same(out)) {
    out.copy_(dense);
  }
}

// Same as `fill_random()`, except that `number(word)` computes one element.
template <class Value, class Word, class Number>
void fill_each(at::Tensor& out, runtime::PhiloxState start, Number number) {
  fill_random<Value, Word>(out, start, [number](const RandomWords<Word>& words, auto& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<Value>(number(words[i]));
    }
  });
}

// Returns a new CPU tensor of doubles that are uniform in [0, 1).
inline at::Tensor uniform_doubles(c10::IntArrayRef sizes, runtime::PhiloxState start) {
  at::Tensor numbers = at::empty(sizes, at::kDouble);
  fill_each<double, uint64_t>(numbers, start, [](uint64_t word) { return uniform_number<double>(word); });
  return numbers;
}

}  // namespace openreg::ops::kernels
