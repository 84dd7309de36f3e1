// SPDX-License-Identifier: BSD-3-Clause
// Random numbers: each step of the generator makes a few elements.
#include "kernels/uniform.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/philox.h"

namespace openreg::ops::raw {

namespace {

constexpr int64_t kStepsPerRange = 4096;

// How many bits of a random word a number of this type takes: as many as it holds, so that rounding cannot reach 1.
template <class Value>
constexpr int kDigits = std::numeric_limits<Value>::digits;

// Numbers of one step, in [0, 1).
template <class Value>
auto unit_numbers(const std::array<uint32_t, 4>& bits) {
  if constexpr (std::is_same_v<Value, double>) {
    std::array<double, 2> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const uint64_t word = (static_cast<uint64_t>(bits[2 * i]) << 32) | bits[2 * i + 1];
      numbers[i] = static_cast<double>(word >> 11) * 0x1p-53;
    }
    return numbers;
  } else {
    constexpr float kStep = 1.0F / static_cast<float>(1U << kDigits<Value>);
    std::array<float, 4> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<float>(bits[i] >> (32 - kDigits<Value>)) * kStep;
    }
    return numbers;
  }
}

template <class Value>
void run(const UniformArguments& arguments, uint64_t seed, uint64_t offset) {
  constexpr int64_t kPerStep = std::is_same_v<Value, double> ? 2 : 4;
  auto* output = static_cast<Value*>(arguments.output);
  const int64_t count = element_count(arguments.axes);
  const bool dense = arguments.axes.empty() || (arguments.axes.size() == 1 && arguments.axes[0].strides[0] == 1);
  const auto from = arguments.from;
  const auto to = arguments.to;
  at::parallel_for(0, (count + kPerStep - 1) / kPerStep, kStepsPerRange, [&](int64_t begin, int64_t end) {
    for (int64_t step = begin; step < end; ++step) {
      const auto numbers = unit_numbers<Value>(philox(seed, offset + static_cast<uint64_t>(step)));
      const int64_t first = step * kPerStep;
      for (int64_t i = 0; i < std::min(kPerStep, count - first); ++i) {
        const auto value = static_cast<Value>(numbers[static_cast<size_t>(i)] * (to - from) + from);
        const int64_t place = dense ? first + i : offsets_at(arguments.axes, first + i)[0];
        output[place] = value < static_cast<Value>(to) ? value : static_cast<Value>(from);  // rounded up to `to`
      }
    }
  });
}

}  // namespace

void uniform(const UniformArguments& arguments, uint64_t seed, uint64_t offset) {
  visit(Floats(), arguments.type, [&](auto value) { run<decltype(value)>(arguments, seed, offset); });
}

}  // namespace openreg::ops::raw
