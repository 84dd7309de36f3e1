// SPDX-License-Identifier: BSD-3-Clause
// The arguments and results of one call whose host waits for a CPU kernel, on their way between the device and the
// kernel: of an operator that falls back, whose results have sizes that depend on data (registration/layout.h), or that
// is rehearsed (registration/rehearsed.h).
#pragma once

#include <ATen/core/QuantizerBase.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include <optional>
#include <utility>
#include <vector>

#include "openreg/runtime/alias.h"
#include "support/sparse_members.h"

namespace openreg::ops {

// The device of the operands and options among the last `count` values of a stack: that of the first tensor on an
// openreg device, or the one that a factory is told; the current one where none says. Throws c10::Error for an index
// that no device has.
c10::Device device_of_call(const torch::jit::Stack& stack, size_t count);

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

// A boxed argument with `function(tensor)` in the place of every tensor that it has; they may be undefined.
template <class Function>
c10::IValue with_tensors(const c10::IValue& value, Function&& function) {
  if (value.isTensor()) {
    return function(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(function(tensor));
    }
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      list.push_back(tensor.has_value() ? std::optional<at::Tensor>(function(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

// What the kernel does with an operand.
orAccess access_of(const c10::Argument& argument);

// Throws c10::Error, in PyTorch's words, where the operands on top of the stack are not on `device`, but for numbers
// and what the operator takes on the host.
void check_devices_of_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack, c10::Device device);

// The key of the CPU's kernel for dense operands, or for quantised ones where one of them is.
c10::DispatchKey cpu_key_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Lives for one call on one thread.
class FallbackCall {
 public:
  // `stack` holds the arguments on top, and keeps them until finish().
  FallbackCall(const c10::OperatorHandle& op, torch::jit::Stack& stack);

  // Runs the kernel that the CPU has under `key` on the engine, in stream order, and waits. What the kernel throws is
  // thrown here, and the device stays healthy; what it warns of is warned of here.
  void run_on_engine(c10::DispatchKey key);

  c10::Device device() const { return device_; }
  // The arguments as the CPU kernel takes them; the kernel replaces them by its results.
  torch::jit::Stack& cpu_stack() { return cpu_stack_; }
  // What the kernel reads and writes, for runtime::launch(); results that it makes come to the device as copies.
  const runtime::Operands* operands() const { return aliases_.operands(); }
  // Replaces the arguments on the caller's stack by results on the device. Returns the bytes copied to it.
  size_t finish();

 private:
  // An operand, or a member of a sparse one.
  struct Passed {
    at::Tensor given;                      // by the caller
    at::Tensor seen;                       // by the kernel
    const void* memory;                    // of `seen` before the kernel
    at::QuantizerPtr quantizer = nullptr;  // of `seen` before the kernel, if it is quantised
  };

  c10::IValue to_cpu(const c10::IValue& value, const c10::Argument& argument);
  at::Tensor tensor_to_cpu(const at::Tensor& tensor, orAccess access);
  at::Tensor sparse_to_cpu(const at::Tensor& sparse, orAccess access);
  at::Tensor alias_of(const at::Tensor& tensor);
  at::Tensor tensor_to_device(const at::Tensor& tensor);
  at::Tensor sparse_to_device(const at::Tensor& sparse);
  SparseMembers members_to_device(const at::Tensor& sparse);
  void write_back(const Passed& written);
  void take_over(const at::Tensor& result, const at::Tensor& given);

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  const size_t first_argument_;  // index on the caller's stack
  c10::Device device_;
  runtime::Aliases aliases_;
  torch::jit::Stack cpu_stack_;
  std::vector<Passed> passed_;
  std::vector<Passed> written_;
  std::vector<at::Tensor> read_sparse_;  // sparse operands as the kernel sees them
  size_t copied_bytes_ = 0;
};

}  // namespace openreg::ops
