// SPDX-License-Identifier: BSD-3-Clause
// Softmax and its gradient. One thread reduces a line and then writes it.
#include "kernels/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/parallel.h"

namespace openreg::ops::raw {

namespace {

constexpr int64_t kGrainElements = 4096;

// Returns the sum of term(0) to term(count - 1). It sums blocks first and then the blocks' sums, so that the rounding
// error of a long line is smaller.
template <class Sum, class Term>
Sum blocked_sum(int64_t count, Term&& term) {
  constexpr int64_t kBlock = 256;
  Sum total(0);
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    Sum block(0);
    for (int64_t i = begin; i < std::min(count, begin + kBlock); ++i) {
      block += term(i);
    }
    total += block;
  }
  return total;
}

template <class Value>
void softmax_line(const Value* input, Value* output, const LoopAxis<2>& along) {
  using Number = Accumulator<Value>;
  const auto [input_stride, output_stride] = along.strides;
  Number largest = -std::numeric_limits<Number>::infinity();
  for (int64_t i = 0; i < along.size; ++i) {
    largest = std::max(largest, static_cast<Number>(input[i * input_stride]));
  }
  const auto power = [&](int64_t i) { return std::exp(static_cast<Number>(input[i * input_stride]) - largest); };
  const Number sum = blocked_sum<Number>(along.size, power);
  for (int64_t i = 0; i < along.size; ++i) {
    output[i * output_stride] = static_cast<Value>(power(i) / sum);
  }
}

template <class Value>
void backward_line(const Value* gradient, const Value* output, Value* result, const LoopAxis<3>& along) {
  using Number = Accumulator<Value>;
  const auto [gradient_stride, output_stride, result_stride] = along.strides;
  const Number dot = blocked_sum<Number>(along.size, [&, g = gradient_stride, o = output_stride](int64_t i) {
    return static_cast<Number>(gradient[i * g]) * static_cast<Number>(output[i * o]);
  });
  for (int64_t i = 0; i < along.size; ++i) {
    const auto slope = static_cast<Number>(gradient[i * gradient_stride]) - dot;
    result[i * result_stride] = static_cast<Value>(static_cast<Number>(output[i * output_stride]) * slope);
  }
}

}  // namespace

void softmax(const SoftmaxArguments& arguments) {
  visit(Floats(), arguments.type, [&](auto example) {
    using Value = decltype(example);
    const auto* input = static_cast<const Value*>(arguments.input);
    auto* output = static_cast<Value*>(arguments.output);
    const int64_t grain = grain_of(kGrainElements, arguments.along.size);
    for_each_item(element_count(arguments.lines), grain, [&](int64_t line) {
      const auto offsets = offsets_at(arguments.lines, line);
      softmax_line(input + offsets[0], output + offsets[1], arguments.along);
    });
  });
}

void softmax_backward(const SoftmaxBackwardArguments& arguments) {
  visit(Floats(), arguments.type, [&](auto example) {
    using Value = decltype(example);
    const auto* gradient = static_cast<const Value*>(arguments.gradient);
    const auto* output = static_cast<const Value*>(arguments.output);
    auto* result = static_cast<Value*>(arguments.input_gradient);
    const int64_t grain = grain_of(kGrainElements, arguments.along.size);
    for_each_item(element_count(arguments.lines), grain, [&](int64_t line) {
      const auto offsets = offsets_at(arguments.lines, line);
      backward_line(gradient + offsets[0], output + offsets[1], result + offsets[2], arguments.along);
    });
  });
}

}  // namespace openreg::ops::raw
