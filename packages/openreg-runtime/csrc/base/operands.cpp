// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/operands.h"

#include "openreg/runtime/tool_hooks.h"

namespace openreg::runtime {

namespace {

std::vector<OperandLayout>& layouts_of_thread() noexcept {
  thread_local std::vector<OperandLayout> layouts;
  return layouts;
}

}  // namespace

const std::vector<OperandLayout>& operand_layouts() noexcept {
  return layouts_of_thread();
}

void Operands::add(const at::Tensor& tensor, orAccess access) {
  if (!tensor.defined() || tensor.numel() == 0 || !tensor.has_storage()) {
    return;
  }
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    last += (tensor.size(i) - 1) * tensor.stride(i);
  }
  const auto size = static_cast<size_t>(last + 1) * tensor.element_size();
  std::vector<OperandLayout>& layouts = layouts_of_thread();
  if (ranges_.empty()) {
    layouts.clear();
  }
  ranges_.push_back({tensor.const_data_ptr(), size, access});
  const c10::IntArrayRef sizes = tensor.sizes();
  const c10::IntArrayRef strides = tensor.strides();
  layouts.push_back({tensor.const_data_ptr(),
                     size,
                     tensor.scalar_type(),
                     {sizes.begin(), sizes.end()},
                     {strides.begin(), strides.end()}});
}

}  // namespace openreg::runtime
