// SPDX-License-Identifier: BSD-3-Clause
// How many steps of the generator a number of elements takes. The host reserves them, and the kernels draw from them.
#pragma once

#include <cstdint>

namespace openreg::ops {

// The number of elements that draw from one step of the generator, whatever their dtype. So a tensor of n elements
// takes n / 4 steps, rounded up, and its parts draw the same numbers as the whole if each begins at a multiple of four
// elements. DTensor relies on this for the parts that the ranks have (source: torch/distributed/tensor/_random.py).
constexpr int kElementsPerStep = 4;

// Returns the number of steps from which `elements` elements draw.
constexpr int64_t steps_for(int64_t elements) {
  return (elements + kElementsPerStep - 1) / kElementsPerStep;
}

}  // namespace openreg::ops
