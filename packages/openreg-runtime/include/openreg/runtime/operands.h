// SPDX-License-Identifier: BSD-3-Clause
// The memory ranges that a launch reads and writes, for observers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// A list of the memory ranges that one launch reads and writes, for observers such as sanitizers and performance
// predictors (see orOperand in openreg.h). Gather it only if wanted() is true, because it takes time. Not thread-safe.
class OPENREG_RUNTIME_API Operands {
 public:
  // Returns true if an observer or a capture requires operands. Costs one call of the driver. Thread-safe.
  static bool wanted() noexcept { return orOperandsWanted() != 0; }

  // Adds the bytes of a tensor, from its first element to its last. Adds nothing if the tensor is undefined or has no
  // elements. A tensor that the kernel reads and writes is added once with orAccessReadWrite, or twice.
  void add(const at::Tensor& tensor, orAccess access);

  const orOperand* data() const noexcept { return ranges_.data(); }
  size_t size() const noexcept { return ranges_.size(); }

 private:
  std::vector<orOperand> ranges_;
};

}  // namespace openreg::runtime
