// SPDX-License-Identifier: BSD-3-Clause
#include "openreg/runtime/operands.h"

#include "base/storage_extent.h"
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
  const size_t size = bytes_to_last_element(tensor, 0);
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
