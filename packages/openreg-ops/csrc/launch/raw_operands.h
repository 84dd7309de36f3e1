// SPDX-License-Identifier: BSD-3-Clause
// Raw launches: launches of the kernels in csrc/kernels that take addresses, sizes, strides and types instead of
// tensors (namespace raw). The functions here run on the host, and convert tensors to such arguments before the launch.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "kernels/axes.h"
#include "kernels/types.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"
#include "support/device_check.h"

namespace openreg::ops {

// Return the address of a device tensor's first element in the kernel view, the mapping of device memory that kernels
// dereference. The memory stays valid until the kernel has run, because the allocator reuses it only for later tasks of
// the same stream.
inline const void* kernel_address(const at::Tensor& tensor) {
  return runtime::kernel_view(tensor.const_data_ptr());
}
inline void* mutable_kernel_address(const at::Tensor& tensor) {
  return runtime::kernel_view(tensor.mutable_data_ptr());
}

// The order of a kernel's loop axes. kByIndex is the order in which elements are numbered, so the last dimension is the
// first axis. kByStride sorts by the strides of the first operand, for kernels that visit elements in any order.
enum class AxisOrder { kByIndex, kByStride };

// Returns the loop axes (kernels/axes.h) of operands of one shape, the fastest first. Drops axes of size one, and
// merges neighboring axes if the strides of all operands allow it.
template <size_t kOperands>
raw::LoopAxes<kOperands> merged_axes(c10::IntArrayRef sizes, const std::array<c10::IntArrayRef, kOperands>& strides,
                                     AxisOrder order) {
  raw::LoopAxes<kOperands> axes;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) {
      continue;
    }
    raw::LoopAxis<kOperands> axis{sizes[i], {}};
    for (size_t k = 0; k < kOperands; ++k) {
      axis.strides[k] = strides[k][i];
    }
    axes.push_back(axis);
  }
  if (order == AxisOrder::kByStride) {
    std::stable_sort(axes.begin(), axes.end(),
                     [](const auto& one, const auto& other) { return one.strides[0] < other.strides[0]; });
  }
  raw::LoopAxes<kOperands> merged;
  for (const raw::LoopAxis<kOperands>& axis : axes) {
    const auto continues = [&](const raw::LoopAxis<kOperands>& last) {
      for (size_t k = 0; k < kOperands; ++k) {
        if (axis.strides[k] != last.strides[k] * last.size) {
          return false;
        }
      }
      return true;
    };
    if (!merged.empty() && continues(merged.back())) {
      merged.back().size *= axis.size;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

// Tensors, or lists of them, with the access of a kernel to them. Refers to the caller's tensors.
template <class... Tensors>
struct Accessed {
  orAccess access;
  std::tuple<const Tensors&...> tensors;
};
// Return the tensors with the access of a kernel that reads, overwrites, or both reads and writes them.
template <class... Tensors>
Accessed<Tensors...> reads(const Tensors&... tensors) {
  return {orAccessRead, {tensors...}};
}
template <class... Tensors>
Accessed<Tensors...> writes(const Tensors&... tensors) {
  return {orAccessWrite, {tensors...}};
}
template <class... Tensors>
Accessed<Tensors...> updates(const Tensors&... tensors) {
  return {orAccessReadWrite, {tensors...}};
}

// The tensors behind the addresses of a raw launch. The constructor checks their storages, and gathers the kernel's
// accesses if an observer (a tool such as the sanitizer) requires them. Throws c10::Error if a tensor reaches beyond
// its storage.
class RawOperands {
 public:
  template <class... Accesses>
  explicit RawOperands(const char* name, const Accesses&... accesses) {
    (check(name, accesses), ...);
    if (C10_UNLIKELY(runtime::Operands::wanted())) {
      operands_.emplace();
      (add(accesses), ...);
    }
  }

  // Returns the operands for runtime::launch(), or null if no observer requires them. Valid as long as this object.
  const runtime::Operands* get() const { return operands_.has_value() ? &*operands_ : nullptr; }

 private:
  template <class... Tensors>
  static void check(const char* name, const Accessed<Tensors...>& accessed) {
    const auto visit = [&](const at::Tensor& tensor) { runtime::check_storage(name, tensor); };
    std::apply([&](const auto&... argument) { (for_each_tensor(visit, argument), ...); }, accessed.tensors);
  }
  template <class... Tensors>
  void add(const Accessed<Tensors...>& accessed) {
    const auto visit = [&](const at::Tensor& tensor) { operands_->add(tensor, accessed.access); };
    std::apply([&](const auto&... argument) { (for_each_tensor(visit, argument), ...); }, accessed.tensors);
  }

  std::optional<runtime::Operands> operands_;  // without a value if no observer requires them
};

// Launches a kernel on the current stream of the device. The launch owns numbers and addresses, but no tensors.
// `accesses` must contain all tensors behind the addresses, such as reads(self, other), writes(out). Throws c10::Error
// if one of them reaches beyond its storage.
template <class Arguments, class... Accesses>
void launch_raw(const char* name, c10::Device device, void (*kernel)(const Arguments&), Arguments arguments,
                const Accesses&... accesses) {
  const RawOperands operands(name, accesses...);
  auto run = [kernel, arguments = std::move(arguments)] { kernel(arguments); };
  runtime::launch(name, device.index(), std::move(run), operands.get());
}

}  // namespace openreg::ops
