// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "openreg.h"
#include "openreg/runtime/export.h"

namespace openreg::runtime {

// What one launch reads and writes, for those who observe the device: a sanitizer, a predictor of performance (see
// orOperand in openreg.h). To be gathered only while somebody asks, since it takes time. Not thread-safe.
class OPENREG_RUNTIME_API Operands {
 public:
  // Whether somebody asks. Cheap; never fails.
  static bool wanted() noexcept { return orOperandsWanted() != 0; }

  // Adds the bytes of a tensor, from its first element to its last; of an undefined one and of one without elements,
  // nothing. What a kernel both reads and writes is added once as both, or twice.
  void add(const at::Tensor& tensor, orAccess access);

  const orOperand* data() const noexcept { return ranges_.data(); }
  size_t size() const noexcept { return ranges_.size(); }

 private:
  std::vector<orOperand> ranges_;
};

}  // namespace openreg::runtime
