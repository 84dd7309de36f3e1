// SPDX-License-Identifier: BSD-3-Clause
// Every operator without a kernel: PyTorch copies the operands to the CPU, computes there and copies the result back.
#include "fallback.h"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <atomic>
#include <mutex>

namespace pocket {

namespace {

std::atomic<bool> refuses{false};
std::mutex mutex;
std::map<std::string, int64_t> counts;

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(!refuses, name, ": pocket has no kernel, and torch.pocket.refuse_fallbacks() is on");
  {
    const std::lock_guard<std::mutex> lock(mutex);
    ++counts[name];
  }
  // A view cannot go that way: its result would not share memory. Such operators belong in tensors.cpp.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

// Convolution of a device goes to two operators that PyTorch leaves to backends, without a kernel for the CPU. These
// take the same arguments, except for the sizes of the bias, which the backward pass of any device gets.
c10::OperatorHandle find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

void convolution(const c10::OperatorHandle& /*op*/, torch::jit::Stack* stack) {
  static const c10::OperatorHandle any_device = find("aten::convolution");
  fallback(any_device, stack);
}

void convolution_backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const c10::OperatorHandle any_device = find("aten::convolution_backward");
  const auto arguments = stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  const int64_t channels = arguments->toTensor().size(1);  // of the gradient of the output
  stack->insert(arguments + 3, c10::IValue(std::vector<int64_t>{channels}));
  fallback(any_device, stack);
}

// Batch normalization changes its running statistics. Its schema does not say so, and the fallback would not copy them
// back. That of another operator does, which takes the same arguments.
void batch_norm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const c10::OperatorHandle with_statistics = find("aten::_native_batch_norm_legit");
  const c10::IValue& running_mean = torch::jit::peek(*stack, 3, op.schema().arguments().size());
  const bool has_statistics = running_mean.isTensor() && running_mean.toTensor().defined();
  fallback(has_statistics ? with_statistics : op, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("native_batch_norm", torch::CppFunction::makeFromBoxedFunction<&batch_norm>());
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  library.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

}  // namespace

std::map<std::string, int64_t> fallback_counts() {
  const std::lock_guard<std::mutex> lock(mutex);
  return counts;
}

void reset_fallback_counts() {
  const std::lock_guard<std::mutex> lock(mutex);
  counts.clear();
}

void refuse_fallbacks(bool refused) {
  refuses = refused;
}

}  // namespace pocket
