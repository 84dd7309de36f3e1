// SPDX-License-Identifier: BSD-3-Clause
// Conversion of tensors to the arguments of kernels in csrc/kernels, which are addresses, sizes, strides and types. It
// runs on the host, before the launch.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "kernels/axes.h"
#include "kernels/types.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"
#include "support/device_check.h"

namespace openreg::ops {

// Return the address of a device tensor's first element in the kernel view. The memory stays valid until the kernel has
// run, because the allocator reuses it only for later tasks of the same stream.
inline const void* kernel_address(const at::Tensor& tensor) {
  return runtime::kernel_view(tensor.const_data_ptr());
}
inline void* mutable_kernel_address(const at::Tensor& tensor) {
  return runtime::kernel_view(tensor.mutable_data_ptr());
}

enum class AxisOrder { kByIndex, kByStride };

// Returns the axes of operands of one shape, the fastest first. Drops axes of size one and merges neighboring axes
// where all operands allow it. kByIndex keeps the order in which elements are numbered. kByStride sorts by the first
// operand's strides, for kernels that work in any order.
template <size_t kOperands>
raw::Axes<kOperands> merged_axes(c10::IntArrayRef sizes, const std::array<c10::IntArrayRef, kOperands>& strides,
                                 AxisOrder order) {
  raw::Axes<kOperands> axes;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) {
      continue;
    }
    raw::Axis<kOperands> axis{sizes[i], {}};
    for (size_t k = 0; k < kOperands; ++k) {
      axis.strides[k] = strides[k][i];
    }
    axes.push_back(axis);
  }
  if (order == AxisOrder::kByStride) {
    std::stable_sort(axes.begin(), axes.end(),
                     [](const auto& one, const auto& other) { return one.strides[0] < other.strides[0]; });
  }
  raw::Axes<kOperands> merged;
  for (const raw::Axis<kOperands>& axis : axes) {
    const auto continues = [&](const raw::Axis<kOperands>& last) {
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

// Tensors, or lists of them, and the access of a kernel to them. Refers to the caller's tensors.
template <class... Tensors>
struct Accessed {
  orAccess access;
  std::tuple<const Tensors&...> tensors;
};
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
// accesses if an observer requires them. Throws c10::Error if a tensor reaches beyond its storage.
class RawOperands {
 public:
  template <class... Accesses>
  explicit RawOperands(const char* name, const Accesses&... accesses) {
    (check(name, accesses), ...);
    if (C10_UNLIKELY(runtime::Operands::wanted())) {
      (add(accesses), ...);
      wanted_ = true;
    }
  }

  const runtime::Operands* get() const { return wanted_ ? &operands_ : nullptr; }

 private:
  template <class... Tensors>
  static void check(const char* name, const Accessed<Tensors...>& accessed) {
    const auto visit = [&](const at::Tensor& tensor) { runtime::check_storage(name, tensor); };
    std::apply([&](const auto&... argument) { (for_each_tensor(visit, argument), ...); }, accessed.tensors);
  }
  template <class... Tensors>
  void add(const Accessed<Tensors...>& accessed) {
    const auto visit = [&](const at::Tensor& tensor) { operands_.add(tensor, accessed.access); };
    std::apply([&](const auto&... argument) { (for_each_tensor(visit, argument), ...); }, accessed.tensors);
  }

  bool wanted_ = false;
  runtime::Operands operands_;
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
