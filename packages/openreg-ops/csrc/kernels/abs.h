// SPDX-License-Identifier: BSD-3-Clause
// The kernel of aten::abs for the dtypes of AbsTypes. Like all kernels in namespace raw, it takes addresses, sizes and
// strides instead of tensors. The compute engine of the device runs it, on all OpenMP threads.
#pragma once

#include "kernels/axes.h"
#include "kernels/types.h"

namespace openreg::ops::raw {

using AbsTypes = Types<float, double, Half, BFloat16, c10::complex<Half>, c10::complex<float>, c10::complex<double>,
                       uint8_t, int8_t, int16_t, int32_t, int64_t, bool>;

// Arguments of abs(), which computes output = |input|. A complex output gets the magnitude as its real part. Both
// operands have `type`. The output may be the input itself.
struct AbsArguments {
  Type type;  // one of AbsTypes
  const void* input;
  void* output;
  LoopAxes<2> axes;  // strides of the input, of the output
};

void abs(const AbsArguments& arguments);

}  // namespace openreg::ops::raw
