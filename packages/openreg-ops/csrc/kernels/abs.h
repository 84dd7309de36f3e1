// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/axes.h"
#include "kernels/types.h"

namespace openreg::ops::raw {

using AbsTypes = Types<float, double, Half, BFloat16, c10::complex<Half>, c10::complex<float>, c10::complex<double>,
                       uint8_t, int8_t, int16_t, int32_t, int64_t, bool>;

// output = |input|, element by element. A complex output holds the magnitude as its real part. Both operands have
// `type` and may be the same memory.
struct AbsArguments {
  Type type;  // one of AbsTypes
  const void* input;
  void* output;
  Axes<2> axes;  // strides of the input, of the output
};

void abs(const AbsArguments& arguments);

}  // namespace openreg::ops::raw
