// SPDX-License-Identifier: BSD-3-Clause
// Functions that find the device of an operator's operands and throw if the operands are on several devices, and one
// that finds the device of a factory function.
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <optional>

#include "openreg/runtime/device.h"

namespace openreg::ops {

// Calls `visit(tensor)` for every defined tensor in an argument of a type for which an overload follows. Does nothing
// for an argument of another type.
template <class Visit, class T>
void for_each_tensor(Visit&& /*visit*/, const T& /*argument*/) {}

template <class Visit>
void for_each_tensor(Visit&& visit, const at::Tensor& tensor) {
  if (tensor.defined()) {
    visit(tensor);
  }
}

template <class Visit>
void for_each_tensor(Visit&& visit, const std::optional<at::Tensor>& tensor) {
  if (tensor.has_value()) {
    for_each_tensor(visit, *tensor);
  }
}

template <class Visit>
void for_each_tensor(Visit&& visit, const at::TensorList& tensors) {
  for (const at::Tensor& tensor : tensors) {
    for_each_tensor(visit, tensor);
  }
}

template <class Visit>
void for_each_tensor(Visit&& visit, const at::ITensorListRef& tensors) {
  for (const at::Tensor& tensor : tensors) {
    for_each_tensor(visit, tensor);
  }
}

template <class Visit>
void for_each_tensor(Visit&& visit, const c10::List<std::optional<at::Tensor>>& tensors) {
  for (const std::optional<at::Tensor> tensor : tensors) {
    for_each_tensor(visit, tensor);
  }
}

// Returns the device of the first operand on an openreg device. Throws c10::Error if there is none.
template <class... Args>
c10::Device device_of(const char* name, const Args&... args) {
  std::optional<c10::Device> device;
  const auto visit = [&](const at::Tensor& tensor) {
    if (!device.has_value() && tensor.device().type() == runtime::kDeviceType) {
      device = tensor.device();
    }
  };
  (for_each_tensor(visit, args), ...);
  TORCH_CHECK(device.has_value(), name,
              ": expected an operand on an openreg device, but got none; move the operands with .to('openreg')");
  return *device;
}

// Throws c10::Error, whose message begins as PyTorch's, unless every operand is on `device`.
template <class... Args>
void check_same_device(const char* name, c10::Device device, const Args&... args) {
  const auto visit = [&](const at::Tensor& tensor) {
    TORCH_CHECK(tensor.device() == device,
                "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
                tensor.device(), "! (when running ", name, " on openreg) Move the operand with .to('", device, "').");
  };
  (for_each_tensor(visit, args), ...);
}

// Same as `check_same_device()`, except that it accepts 0-dim CPU tensors, because operators take them as numbers.
template <class... Args>
void check_same_device_or_scalar(const char* name, c10::Device device, const Args&... args) {
  const auto visit = [&](const at::Tensor& tensor) {
    if (!(tensor.dim() == 0 && tensor.device().is_cpu())) {
      check_same_device(name, device, tensor);
    }
  };
  (for_each_tensor(visit, args), ...);
}

// Returns the device argument of a factory function, or the current device if it has no index. Throws c10::Error if the
// index is out of range, which PyTorch does not check, or if pinned memory is requested.
inline c10::Device factory_device(const char* name, std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), name,
              ": only dense CPU tensors can be pinned, not tensors on openreg; drop pin_memory or the device");
  const bool has_index = device.has_value() && device->has_index();
  const c10::DeviceIndex index = has_index ? device->index() : runtime::current_device();
  runtime::check_device_index(index);
  return {runtime::kDeviceType, index};
}

using runtime::CurrentDeviceGuard;  // the guard that makes such a device current

}  // namespace openreg::ops
