// SPDX-License-Identifier: BSD-3-Clause
#include "poison_check.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstdint>

#include "host_tensor.h"
#include "operator_names.h"
#include "sanitizer.h"

namespace openreg::sanitizer {

namespace {

// The operators that copy values to the host. Other operators that do so call one of them.
constexpr OperatorNameArray<2> kToHost = {"aten::_copy_from", "aten::_local_scalar_dense"};

// The bits of poison in floating-point numbers of 16, 32 and 64 bits: the exponent, and the upper 10 bits of the
// payload, which is all that half has.
constexpr uint16_t kHalfBits = 0x7FFF;
constexpr uint32_t kFloatBits = 0x7FFFE000;
constexpr uint64_t kDoubleBits = 0x7FFFFC0000000000;

template <class Word>
bool any_has_bits(const at::Tensor& dense, Word bits) {
  const auto* const words = static_cast<const Word*>(dense.const_data_ptr());
  return std::any_of(words, words + dense.nbytes() / sizeof(Word), [bits](Word word) { return (word & bits) == bits; });
}

void check_output(const char* operation, const c10::IValue& output) {
  Sanitizer& sanitizer = Sanitizer::instance();
  if (output.isDouble() || output.isComplexDouble()) {
    const at::Tensor value = output.isDouble() ? at::scalar_tensor(output.toDouble(), at::kDouble)
                                               : at::scalar_tensor(output.toComplexDouble(), at::kComplexDouble);
    if (has_poison(value)) {
      HostTensor number = describe_host_tensor(value);
      number.begin = nullptr;  // the program has no tensor
      sanitizer.poison_on_host(operation, number);
    }
  } else if (output.isTensor()) {
    const at::Tensor& tensor = output.toTensor();
    // A copy to pinned memory may not be complete. The operator that reads it is checked instead.
    if (tensor.defined() && tensor.device().is_cpu() && !sanitizer.may_be_pinned(tensor.const_data_ptr()) &&
        has_poison(tensor)) {
      sanitizer.poison_on_host(operation, describe_host_tensor(tensor));
    }
  }
}

void on_operator_end(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
  if (!Sanitizer::instance().is_active() || !contains(kToHost, function.name())) {
    return;
  }
  for (const c10::IValue& output : function.outputs()) {
    check_output(function.name(), output);
  }
}

}  // namespace

bool has_poison(const at::Tensor& tensor) {
  if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex()) || tensor.numel() == 0 ||
      c10::toRealValueType(tensor.scalar_type()) == at::kBFloat16) {
    return false;
  }
  // The operators below must not be checked themselves.
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

OperatorWatch& poison_watch() {
  static OperatorWatch watch(at::RecordFunctionCallback(nullptr, &on_operator_end).needsOutputs(true));
  return watch;
}

}  // namespace openreg::sanitizer
