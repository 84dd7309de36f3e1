// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/operands.h"

namespace openreg::runtime {

void Operands::add(const at::Tensor& tensor, orAccess access) {
  if (!tensor.defined() || tensor.numel() == 0 || !tensor.has_storage()) {
    return;
  }
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    last += (tensor.size(i) - 1) * tensor.stride(i);
  }
  const auto size = static_cast<size_t>(last + 1) * tensor.element_size();
  ranges_.push_back({tensor.const_data_ptr(), size, access});
}

}  // namespace openreg::runtime
