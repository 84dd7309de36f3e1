// SPDX-License-Identifier: BSD-3-Clause
// The arguments and results of one call that falls back, on their way between the device and the CPU kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "openreg/runtime/alias.h"

namespace openreg::ops {

// Lives for one call on one thread.
class FallbackCall {
 public:
  // `stack` holds the arguments on top, and keeps them until finish().
  FallbackCall(const c10::OperatorHandle& op, torch::jit::Stack& stack);

  c10::Device device() const { return device_; }
  // The arguments as the CPU kernel takes them; the kernel replaces them by its results.
  torch::jit::Stack& cpu_stack() { return cpu_stack_; }
  // What the kernel reads and writes, for runtime::launch(); results that it makes come to the device as copies.
  const runtime::Operands* operands() const { return aliases_.operands(); }
  // Replaces the arguments on the caller's stack by results on the device. Returns the bytes copied to it.
  size_t finish();

 private:
  // An operand that the kernel writes.
  struct Written {
    at::Tensor given;    // by the caller
    at::Tensor seen;     // by the kernel
    const void* memory;  // of `seen` before the kernel
  };

  void find_device();
  void check_devices() const;
  c10::IValue to_cpu(const c10::IValue& value, const c10::Argument& argument);
  at::Tensor tensor_to_cpu(const at::Tensor& tensor, bool written);
  c10::IValue to_device(const c10::IValue& value);
  at::Tensor tensor_to_device(const at::Tensor& tensor);
  void write_back();

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  const size_t first_argument_;  // index on the caller's stack
  const std::string name_;
  c10::Device device_;
  runtime::Aliases aliases_;
  torch::jit::Stack cpu_stack_;
  std::vector<std::pair<at::Tensor, at::Tensor>> passed_;  // (given by the caller, seen by the kernel)
  std::vector<Written> written_;
  size_t copied_bytes_ = 0;
};

}  // namespace openreg::ops
