// SPDX-License-Identifier: BSD-3-Clause
// The arguments and results of one call that falls back, on their way between the device and the CPU kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/core/QuantizerBase.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "openreg/runtime/alias.h"

namespace openreg::ops {

// Calls `visit(tensor)` for every defined tensor in a boxed argument.
template <class Visit>
void for_each_tensor_in(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      visit(value.toTensor());
    }
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      visit(tensor);
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      if (tensor.has_value() && tensor->defined()) {
        visit(*tensor);
      }
    }
  }
}

// Whether the schema says that the operator writes into the argument.
bool is_written(const c10::Argument& argument);

// What the kernel does with an operand.
orAccess access_of(const c10::Argument& argument);

// Which kernel of PyTorch's runs a call: that of quantised tensors on the CPU if one of the arguments, on top of the
// stack, is quantised.
c10::DispatchKeySet cpu_keys_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// The device of a call: that of the first operand on one, else the one it asks for, else the current one. Throws
// c10::Error where operands are elsewhere, but for numbers and what the operator takes on the host.
c10::Device device_of_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Lives for one call on one thread.
class FallbackCall {
 public:
  // `stack` holds the arguments on top, and keeps them until finish().
  FallbackCall(const c10::OperatorHandle& op, torch::jit::Stack& stack);

  c10::Device device() const { return device_; }
  // The key of PyTorch's kernel.
  c10::DispatchKeySet keys() const { return keys_; }
  // The arguments as the CPU kernel takes them; the kernel replaces them by its results.
  torch::jit::Stack& cpu_stack() { return cpu_stack_; }
  // Runs the kernel on the engine and waits for it. What it throws is thrown here and concerns this call alone: the
  // device stays healthy. What it warns of is issued here, too.
  void run_on_engine(c10::Stream stream);
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
    at::QuantizerPtr quantizer;  // of `seen` before the kernel; null of a dense tensor
  };

  c10::IValue to_cpu(const c10::IValue& value, const c10::Argument& argument);
  at::Tensor tensor_to_cpu(const at::Tensor& tensor, bool written);
  c10::IValue to_device(const c10::IValue& value);
  at::Tensor tensor_to_device(const at::Tensor& tensor);
  void write_back();
  void take_over(const at::Tensor& result, const at::Tensor& given);

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  const size_t first_argument_;  // index on the caller's stack
  const std::string name_;
  const c10::DispatchKeySet keys_;
  const c10::Device device_;
  runtime::Aliases aliases_;
  torch::jit::Stack cpu_stack_;
  std::vector<std::pair<at::Tensor, at::Tensor>> passed_;  // (given by the caller, seen by the kernel)
  std::vector<Written> written_;
  size_t copied_bytes_ = 0;
};

}  // namespace openreg::ops
