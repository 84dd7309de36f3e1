// SPDX-License-Identifier: BSD-3-Clause
// Uniform random numbers.
#include "kernels/uniform.h"

#include <algorithm>

#include "kernels/parallel.h"
#include "kernels/philox.h"

namespace openreg::ops::raw {

namespace {

constexpr int64_t kStepsPerRange = 4096;

template <class Value>
void run(const UniformArguments& arguments, uint64_t seed, uint64_t offset) {
  auto* output = static_cast<Value*>(arguments.output);
  const int64_t count = element_count(arguments.axes);
  const bool dense = arguments.axes.empty() || (arguments.axes.size() == 1 && arguments.axes[0].strides[0] == 1);
  const auto from = arguments.from;
  const auto to = arguments.to;
  for_each_item(steps_for(count), kStepsPerRange, [&](int64_t index) {
    const auto words = random_words<WordOf<Value>>(seed, offset + static_cast<uint64_t>(index));
    // Computes all numbers before it stores them, so that the compiler can vectorize this.
    std::array<decltype(uniform_number<Value>(0)), kElementsPerStep> numbers;
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = uniform_number<Value>(words[i]);
    }
    const int64_t first = index * kElementsPerStep;
    for (int64_t i = 0; i < std::min<int64_t>(kElementsPerStep, count - first); ++i) {
      const auto value = static_cast<Value>(numbers[static_cast<size_t>(i)] * (to - from) + from);
      const int64_t place = dense ? first + i : offsets_at(arguments.axes, first + i)[0];
      // A value that was rounded up to `to` is replaced by `from`.
      output[place] = value < static_cast<Value>(to) ? value : static_cast<Value>(from);
    }
  });
}

}  // namespace

void uniform(const UniformArguments& arguments, uint64_t seed, uint64_t offset) {
  visit(Floats(), arguments.type, [&](auto value) { run<decltype(value)>(arguments, seed, offset); });
}

}  // namespace openreg::ops::raw
