// SPDX-License-Identifier: BSD-3-Clause
// An elementwise kernel. Each thread computes a range of elements, row by row.
#include "kernels/abs.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <type_traits>

#include "kernels/clones.h"

namespace openreg::ops::raw {

namespace {

constexpr int64_t kElementsPerRange = 32768;

// Return the absolute value. For 16-bit floats they clear the sign, which is the highest bit, because the compiler can
// vectorize this.
Half magnitude(Half x) {
  return {static_cast<uint16_t>(x.x & 0x7FFF), Half::from_bits()};
}
BFloat16 magnitude(BFloat16 x) {
  return {static_cast<uint16_t>(x.x & 0x7FFF), BFloat16::from_bits()};
}

template <class Value>
c10::complex<Value> magnitude(c10::complex<Value> x) {
  const c10::complex<Accumulator<Value>> wide = x;
  return c10::complex<Accumulator<Value>>(std::hypot(wide.real(), wide.imag()));
}

template <class Value>
Value magnitude(Value x) {
  if constexpr (std::is_floating_point_v<Value>) {
    return std::fabs(x);
  } else if constexpr (std::is_signed_v<Value>) {
    // Unsigned, because the negation of the smallest signed number overflows. The result is that number itself.
    using Unsigned = std::make_unsigned_t<Value>;
    return x < 0 ? static_cast<Value>(Unsigned{0} - static_cast<Unsigned>(x)) : x;
  } else {
    return x;
  }
}

template <class Value>
OPENREG_CLONES void abs_row(const Value* input, Value* output, int64_t count, int64_t input_stride,
                            int64_t output_stride) {
  if (input == output && input_stride == output_stride && output_stride == 1) {
    for (int64_t i = 0; i < count; ++i) {  // with one pointer, so that the compiler can vectorize the loop
      output[i] = magnitude(output[i]);
    }
  } else if (input_stride == 1 && output_stride == 1) {
    for (int64_t i = 0; i < count; ++i) {
      output[i] = magnitude(input[i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      output[i * output_stride] = magnitude(input[i * input_stride]);
    }
  }
}

}  // namespace

void abs(const AbsArguments& arguments) {
  visit(AbsTypes(), arguments.type, [&](auto example) {
    using Value = decltype(example);
    const auto* input = static_cast<const Value*>(arguments.input);
    auto* output = static_cast<Value*>(arguments.output);
    const auto strides = row_strides(arguments.axes);
    at::parallel_for(0, element_count(arguments.axes), kElementsPerRange, [&](int64_t begin, int64_t end) {
      for_each_row(arguments.axes, begin, end, [&](const std::array<int64_t, 2>& offsets, int64_t length) {
        abs_row(input + offsets[0], output + offsets[1], length, strides[0], strides[1]);
      });
    });
  });
}

}  // namespace openreg::ops::raw
