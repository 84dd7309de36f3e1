// SPDX-License-Identifier: BSD-3-Clause
#include "poison_check.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "sanitizer.h"

namespace openreg::sanitizer {

namespace {

// The operators that end with values on the host. Others end in a call of one of them.
constexpr std::array<std::string_view, 2> kToHost = {"aten::_copy_from", "aten::_local_scalar_dense"};

// The bits of the exponent, and as many of the payload as bfloat16 has: a conversion to fewer bits keeps them.
constexpr uint16_t kHalfBits = 0x7FFF;
constexpr uint32_t kFloatBits = 0x7FFF0000;
constexpr uint64_t kDoubleBits = 0x7FFFE00000000000;

template <class Word>
bool any_has_bits(const at::Tensor& dense, Word bits) {
  const auto* const words = static_cast<const Word*>(dense.const_data_ptr());
  return std::any_of(words, words + dense.nbytes() / sizeof(Word), [bits](Word word) { return (word & bits) == bits; });
}

// Returns a layout for reports.
Layout layout_of(const at::Tensor& tensor) {
  return {tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec()};
}

void check_output(const char* operation, const c10::IValue& output) {
  Sanitizer& sanitizer = Sanitizer::instance();
  if (output.isDouble() || output.isComplexDouble()) {
    const at::Tensor value = output.isDouble() ? at::scalar_tensor(output.toDouble(), at::kDouble)
                                               : at::scalar_tensor(output.toComplexDouble(), at::kComplexDouble);
    if (has_poison(value)) {
      sanitizer.poison_on_host(operation, nullptr, value.nbytes(), layout_of(value));
    }
  } else if (output.isTensor()) {
    const at::Tensor& tensor = output.toTensor();
    // A copy to pinned memory may not be complete. The operator that reads it is checked instead.
    if (tensor.defined() && tensor.device().is_cpu() && !sanitizer.may_be_pinned(tensor.const_data_ptr()) &&
        has_poison(tensor)) {
      sanitizer.poison_on_host(operation, tensor.const_data_ptr(), tensor.nbytes(), layout_of(tensor));
    }
  }
}

void on_end(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
  const std::string_view name = function.name();
  if (!Sanitizer::instance().is_active() || std::find(kToHost.begin(), kToHost.end(), name) == kToHost.end()) {
    return;
  }
  for (const c10::IValue& output : function.outputs()) {
    check_output(function.name(), output);
  }
}

std::mutex& watch_mutex() {
  static std::mutex value;
  return value;
}

std::atomic<at::CallbackHandle>& watch_handle() {
  static std::atomic<at::CallbackHandle> value = at::INVALID_CALLBACK_HANDLE;
  return value;
}

}  // namespace

bool has_poison(const at::Tensor& tensor) {
  if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex()) || tensor.numel() == 0) {
    return false;
  }
  // The operators below must not be checked in their turn.
  const at::RecordFunctionGuard no_callbacks(/*is_enabled=*/false);
  const at::Tensor dense =
      tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()).contiguous() : tensor.resolve_neg().contiguous();
  switch (dense.element_size()) {
    case 2:
      return any_has_bits(dense, kHalfBits);
    case 4:
      return any_has_bits(dense, kFloatBits);
    case 8:
      return any_has_bits(dense, kDoubleBits);
    default:
      return false;  // a float of 8 bits has one NaN only
  }
}

void watch_poison() {
  const std::lock_guard<std::mutex> lock(watch_mutex());
  if (watch_handle() == at::INVALID_CALLBACK_HANDLE) {
    watch_handle() = at::addGlobalCallback(
        at::RecordFunctionCallback(nullptr, &on_end).needsOutputs(true).scopes({at::RecordScope::FUNCTION}));
  }
}

void stop_watching_poison() {
  const std::lock_guard<std::mutex> lock(watch_mutex());
  if (watch_handle() != at::INVALID_CALLBACK_HANDLE) {
    at::removeCallback(watch_handle());
    watch_handle() = at::INVALID_CALLBACK_HANDLE;
  }
}

bool is_watching_poison() {
  return watch_handle() != at::INVALID_CALLBACK_HANDLE;
}

}  // namespace openreg::sanitizer
