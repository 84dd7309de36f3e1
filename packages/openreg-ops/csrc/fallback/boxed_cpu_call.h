// SPDX-License-Identifier: BSD-3-Clause
// A synchronous, boxed call of a CPU kernel on operands of the device. It replaces the operands by aliases (CPU tensors
// over their bytes), runs the kernel, and copies results to the device. Its users are the fallback, operators whose
// results have data-dependent sizes (registration/non_strided.h), and the first call of an operator with given
// arguments, from which registration/cached_meta.h caches the metadata of the results.
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
#include "support/sparse_components.h"

namespace openreg::ops {

// Returns the device of a call whose arguments are the last `count` values of `stack`. It is that of the first tensor
// on an openreg device, else the device argument of a factory, else the current device. Throws c10::Error for an index
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
      if (tensor.defined()) {
        visit(tensor);
      }
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      if (tensor.has_value() && tensor->defined()) {
        visit(*tensor);
      }
    }
  }
}

// Returns a boxed argument in which `function(tensor)` replaces every tensor. The tensors may be undefined.
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

// Returns the access of a kernel to an argument, as the operator's schema declares it.
orAccess access_of(const c10::Argument& argument);

// Throws c10::Error, with PyTorch's message, if an operand on top of the stack is not on `device`. Accepts a 0-dim CPU
// tensor as a number, unless the operator writes it or it is quantized. Does not check operators that take some of
// their operands on the host (kTakeHostOperands in boxed_cpu_call.cpp).
void check_devices_of_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack, c10::Device device);

// Returns the dispatch key of the CPU kernel: QuantizedCPU if an operand is quantized, else CPU.
c10::DispatchKey cpu_key_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// A boxed call of a CPU kernel on aliases of its operands. It exists for one call, on one thread.
class BoxedCpuCall {
 public:
  // `stack` holds the arguments on top and must keep them until finish(). `device` is that of the call
  // (device_of_call()), and has to be current until then.
  BoxedCpuCall(const c10::OperatorHandle& op, torch::jit::Stack& stack, c10::Device device);

  // Runs the kernel that PyTorch has for `key` on the engine, in stream order, and blocks until it is complete. Also
  // checks the indices of sparse operands and results, and throws c10::Error if one is out of bounds. Reissues the
  // kernel's warnings on the calling thread. Throws as run_and_wait() does, so the device stays healthy.
  void run_on_engine(c10::DispatchKey key);

  // The two functions below are for callers that run the kernel themselves on the host instead of run_on_engine().
  // cpu_stack() returns the arguments as the CPU kernel takes them. The kernel replaces them by its results.
  torch::jit::Stack& cpu_stack() { return cpu_stack_; }
  // Returns the operands that such a caller reports to observers, by runtime::launch(). Null if no observer requires
  // them. Results that the kernel allocates are not among them, because they are copied to the device.
  const runtime::Operands* operands() const { return aliases_.operands(); }
  // Replaces the arguments on the caller's stack by results on the device. Returns the number of bytes that were copied
  // to the device.
  size_t finish();

 private:
  // An operand of the device, or a component of a sparse one, and its alias.
  struct Passed {
    at::Tensor given;                      // the caller's tensor
    at::Tensor seen;                       // the kernel's tensor, an alias
    const void* memory;                    // of `seen` before the kernel
    at::QuantizerPtr quantizer = nullptr;  // of `seen` before the kernel, if it is quantized
  };

  c10::IValue to_cpu(const c10::IValue& value, const c10::Argument& argument);
  at::Tensor tensor_to_cpu(const at::Tensor& tensor, orAccess access);
  at::Tensor sparse_to_cpu(const at::Tensor& sparse, orAccess access);
  at::Tensor alias_of(const at::Tensor& tensor);
  at::Tensor tensor_to_device(const at::Tensor& tensor);
  at::Tensor sparse_to_device(const at::Tensor& sparse);
  SparseComponents components_to_device(const at::Tensor& sparse);
  void write_back(const Passed& written);
  // Copies `result` into `operand`, an in-place or out= operand, if the kernel returned another tensor than its alias.
  void copy_result_into_operand(const at::Tensor& result, const at::Tensor& operand);

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  const size_t first_argument_;  // index on the caller's stack
  c10::Device device_;
  runtime::AliasBuilder aliases_;
  torch::jit::Stack cpu_stack_;
  std::vector<Passed> passed_;   // all operands of the device, and the components of sparse ones
  std::vector<Passed> written_;  // those that the kernel writes
  // The kernel's tensors of the sparse operands that it reads. Their indices are checked before it runs.
  std::vector<at::Tensor> read_sparse_;
  size_t copied_bytes_ = 0;
};

}  // namespace openreg::ops
