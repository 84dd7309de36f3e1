// SPDX-License-Identifier: BSD-3-Clause
// Launching in-place operators that fill a tensor with random numbers.
#pragma once

#include <utility>

#include "common/device_check.h"
#include "common/random.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"

namespace openreg::ops {

// Launches fill_random() on `self`. Throws c10::Error when `self` is on another kind of device.
template <class Value, int kPerStep, class Draw>
void launch_random(const char* name, const at::Tensor& self, const std::optional<at::Generator>& generator, Draw draw) {
  const runtime::PhiloxState state = reserve_random(name, self, generator);
  const CurrentDevice current(self.device());
  runtime::Aliases aliases(name);
  auto fill = [alias = aliases.as(orAccessWrite)(self), state, draw]() mutable {
    fill_random<Value, kPerStep>(alias, state, draw);
  };
  runtime::launch(name, self.device().index(), std::move(fill), aliases.operands());
}

// The precision in which numbers of a dtype are drawn: its own, at least single.
template <class Value>
using RandomNumber = std::conditional_t<std::is_same_v<Value, double>, double, float>;

// Fills a range of random numbers by calling `make(number)` with each uniform number of a step, never 0: that stands
// for the smallest step, so that logarithms are finite.
template <class Value, class Values, class Make>
void draw_each(const RandomBits& bits, Values& values, Make make) {
  using Number = RandomNumber<Value>;
  constexpr Number kSmallest = std::numeric_limits<Number>::epsilon() / 2;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<Value>(make(std::max(uniform_number<Number>(bits, static_cast<int>(i)), kSmallest)));
  }
}

// Box and Muller: two uniform numbers give two normal ones (Annals of Mathematical Statistics 29, 1958).
template <class Value, class Values>
void draw_normal(const RandomBits& bits, Values& values, double mean, double standard_deviation) {
  using Number = RandomNumber<Value>;
  constexpr Number kTwoPi = static_cast<Number>(6.283185307179586476925286766559);
  for (size_t i = 0; i < values.size(); i += 2) {
    const Number positive = 1 - uniform_number<Number>(bits, static_cast<int>(i));  // in (0, 1], fit for a logarithm
    const Number angle = kTwoPi * uniform_number<Number>(bits, static_cast<int>(i) + 1);
    const Number radius = std::sqrt(-2 * std::log(positive)) * static_cast<Number>(standard_deviation);
    values[i] = static_cast<Value>(radius * std::cos(angle) + static_cast<Number>(mean));
    values[i + 1] = static_cast<Value>(radius * std::sin(angle) + static_cast<Number>(mean));
  }
}

}  // namespace openreg::ops
