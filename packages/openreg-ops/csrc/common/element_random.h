// SPDX-License-Identifier: BSD-3-Clause
// Random numbers for samplers that need an unknown count of them per element (rejection methods).
#pragma once

#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "openreg/runtime/generator.h"
#include "raw/grid.h"

namespace openreg::ops {

// One element's own sequence: a subsequence of the generator, which depends on the element's index alone. Launches use
// different offsets, and other random kernels subsequence 0, so no two elements share numbers as long as an element
// takes at most kSteps steps of four words; the chance that a sampler needs more is below 1e-30.
//
// Satisfies UniformRandomBitGenerator, for the distributions of <random>. Used by one thread.
class ElementRandom {
 public:
  static constexpr int64_t kSteps = 1024;
  using result_type = uint32_t;

  ElementRandom(runtime::PhiloxState start, int64_t element)
      : engine_(start.seed(), static_cast<uint64_t>(element) + 1, start.offset()) {}

  static constexpr uint32_t min() { return 0; }
  static constexpr uint32_t max() { return std::numeric_limits<uint32_t>::max(); }
  uint32_t operator()() { return engine_(); }

  // In (0, 1).
  double uniform() { return (static_cast<double>(engine_()) + 0.5) * 0x1p-32; }
  double normal() {
    constexpr double kTwoPi = 6.283185307179586476925286766559;
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(kTwoPi * uniform());
  }

 private:
  at::philox_engine engine_;
};

// Fills a contiguous CPU tensor with `sample(index, random)`, on the engine.
template <class Value, class Sample>
void fill_samples(at::Tensor& out, runtime::PhiloxState start, Sample sample) {
  constexpr int64_t kElementsPerThread = 256;
  Value* data = out.mutable_data_ptr<Value>();
  raw::parallel(out.numel(), kElementsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ElementRandom random(start, i);
      data[i] = static_cast<Value>(sample(i, random));
    }
  });
}

}  // namespace openreg::ops
