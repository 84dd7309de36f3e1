// SPDX-License-Identifier: BSD-3-Clause
// Operands: the memory ranges that a launch reads and writes. The driver reports them to observers, such as
// sanitizers and the prediction of performance.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// The operands of one launch (see orOperand in openreg.h). Callers add operands only if wanted() returns true, because
// that takes time. Not thread-safe.
class OPENREG_RUNTIME_API Operands {
 public:
  // Returns true if an observer requires operands, or a capture records them for observers of its replays. Costs one
  // call of the driver. Thread-safe.
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
