// SPDX-License-Identifier: BSD-3-Clause
// What is known of a kernel before it runs: dtypes that it refuses, and whether it judges the data. PyTorch leaves such
// checks to kernels; ours run later, when a mistake would concern the whole device. So launches look here first, on the
// calling line, and where the kernel may fail they wait for it (failure.h). The rule stands in the operator's
// declaration; tests/test_operand_dtypes.py measures the kernels and names what differs.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/macros/Macros.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "support/device_check.h"
#include "support/overlap.h"

namespace openreg::ops {

// One bit per dtype.
using DtypeSet = uint64_t;

constexpr DtypeSet dtype_bit(c10::ScalarType dtype) {
  return DtypeSet{1} << static_cast<int>(dtype);
}

// The dtypes that most kernels take, which rules know of. What becomes of the others: failure.h.
constexpr DtypeSet kCommonDtypes = dtype_bit(c10::ScalarType::Bool) | dtype_bit(c10::ScalarType::Byte) |
                                   dtype_bit(c10::ScalarType::Char) | dtype_bit(c10::ScalarType::Short) |
                                   dtype_bit(c10::ScalarType::Int) | dtype_bit(c10::ScalarType::Long) |
                                   dtype_bit(c10::ScalarType::Half) | dtype_bit(c10::ScalarType::BFloat16) |
                                   dtype_bit(c10::ScalarType::Float) | dtype_bit(c10::ScalarType::Double) |
                                   dtype_bit(c10::ScalarType::ComplexFloat) | dtype_bit(c10::ScalarType::ComplexDouble);

// Sets for rules, to be joined by |.
template <class... Dtypes>
constexpr DtypeSet dtype_set(Dtypes... dtypes) {
  return (dtype_bit(dtypes) | ...);
}
// Those of quantised tensors, which meet the kernels of csrc/operators/quantized alone.
constexpr DtypeSet kQuantizedDtypes = dtype_bit(c10::ScalarType::QInt8) | dtype_bit(c10::ScalarType::QUInt8) |
                                      dtype_bit(c10::ScalarType::QInt32) | dtype_bit(c10::ScalarType::QUInt4x2) |
                                      dtype_bit(c10::ScalarType::QUInt2x4);

constexpr DtypeSet kBoolean = dtype_set(c10::ScalarType::Bool);
constexpr DtypeSet kLongIntegers = dtype_set(c10::ScalarType::Long);
constexpr DtypeSet kShortIntegers =
    dtype_set(c10::ScalarType::Byte, c10::ScalarType::Char, c10::ScalarType::Short, c10::ScalarType::Int);
constexpr DtypeSet kIntegers = kShortIntegers | kLongIntegers;
constexpr DtypeSet kSignedIntegers = kIntegers & ~dtype_set(c10::ScalarType::Byte);
constexpr DtypeSet kReduced = dtype_set(c10::ScalarType::Half, c10::ScalarType::BFloat16);
constexpr DtypeSet kFloating = kReduced | dtype_set(c10::ScalarType::Float, c10::ScalarType::Double);
constexpr DtypeSet kComplex = dtype_set(c10::ScalarType::ComplexFloat, c10::ScalarType::ComplexDouble);
constexpr DtypeSet kNotFloating = kBoolean | kIntegers | kComplex;

// Whether the kernel wants one dtype for all its operands.
enum class Agreement : uint8_t {
  kNone,           // it converts them, or checks them by itself
  kAll,            // all of them
  kAllButIndices,  // all but indices, which are int64 or uint8
};

// Whether the kernel judges the data, and the caller waits to hear it.
enum class Verdict : uint8_t {
  kNone,
  kAlways,      // as CUDA's, whose verdict the host reads: LAPACK's info
  kIfAsked,     // the same when the operator's last argument, check_errors, is true
  kOfFraction,  // of integers, which a number with a fraction may not scale: when one is among the arguments
  kOfDivisor,   // integers cannot be divided by zero: when the second operand is a tensor that may hold one
};

// Complex numbers of two half or two bfloat16 parts, which few kernels take.
inline bool is_reduced_complex(c10::ScalarType dtype) {
  return c10::isComplexType(dtype) && c10::elementSize(dtype) == 4;
}

// Dtypes that a kernel refuses in one of its modes: rounding, or reduction, which a string argument chooses.
struct ModeRule {
  std::string_view mode;
  DtypeSet refused = 0;
};

// What is known of a kernel. By default that it takes all operands in common use.
struct KernelRule {
  DtypeSet refused = 0;  // in some modes or shapes, at least: the kernel has the last word
  Agreement agreement = Agreement::kNone;
  Verdict verdict = Verdict::kNone;
  bool checked = false;                // whether the host finds every mistake that is not in the data: see failure.h
  bool elementwise = false;            // of a structured operator: see ElementwiseOperands in registration/structured.h
  bool expands = false;                // of an in-place operator: whether its operand may be an expanded tensor
  OverlapRule overlap = {};            // of a structured operator: what its kernel refuses of outputs
  std::array<ModeRule, 3> modes = {};  // those that it refuses more in

  bool takes_all_dtypes() const { return refused == 0 && agreement == Agreement::kNone; }
};

// Of most kernels that know real floating point alone.
constexpr KernelRule kFloats{.refused = kNotFloating};
// Of those that know no complex numbers, and of those that know no booleans either.
constexpr KernelRule kNoComplex{.refused = kComplex};
constexpr KernelRule kRealNumbers{.refused = kBoolean | kComplex};
// The same rule for an operator whose host checks are complete.
constexpr KernelRule checked(KernelRule rule) {
  rule.checked = true;
  return rule;
}
constexpr KernelRule kChecked{.checked = true};
// Of those that take all dtypes, element by element.
constexpr KernelRule kElementwise{.elementwise = true};

// Throws c10::Error in PyTorch's words when a dtype is not the first operand's.
[[noreturn]] void refuse_second_dtype(const char* name, c10::ScalarType expected, c10::ScalarType found);

// The dtype of the first tensor among the arguments.
template <class... Args>
std::optional<c10::ScalarType> first_dtype(const Args&... args) {
  std::optional<c10::ScalarType> first;
  const auto visit = [&](const at::Tensor& tensor) {
    if (!first.has_value()) {
      first = tensor.scalar_type();
    }
  };
  (for_each_tensor(visit, args), ...);
  return first;
}

template <class... Args>
void check_agreement(const char* name, Agreement agreement, const Args&... args) {
  std::optional<c10::ScalarType> first;
  const auto visit = [&](const at::Tensor& tensor) {
    const c10::ScalarType dtype = tensor.scalar_type();
    const bool is_index = dtype == c10::ScalarType::Long || dtype == c10::ScalarType::Byte;
    if (!first.has_value()) {
      first = dtype;
    } else if (dtype != *first && !(is_index && agreement == Agreement::kAllButIndices)) {
      refuse_second_dtype(name, *first, dtype);
    }
  };
  (for_each_tensor(visit, args), ...);
}

template <class... Args>
bool may_refuse_listed(const char* name, const KernelRule& rule, std::optional<c10::ScalarType> dtype,
                       const Args&... args) {
  const std::optional<c10::ScalarType> computed = dtype.has_value() ? dtype : first_dtype(args...);
  if (computed.has_value() && (rule.refused & dtype_bit(*computed)) != 0) {
    return true;  // the kernel names the dtype, so it speaks before the check of several
  }
  if (rule.agreement != Agreement::kNone) {
    check_agreement(name, rule.agreement, args...);
  }
  return false;
}

// Whether a kernel that computes in `dtype` may refuse it; without one, it computes in that of the first operand.
// Throws c10::Error where the kernel would misread operands of several dtypes. Inline, as every launch asks.
template <class... Args>
C10_ALWAYS_INLINE bool may_refuse(const char* name, const KernelRule& rule, std::optional<c10::ScalarType> dtype,
                                  const Args&... args) {
  return C10_UNLIKELY(!rule.takes_all_dtypes()) && may_refuse_listed(name, rule, dtype, args...);
}

// The mode that an operator's string argument chooses, such as rounding or reduction; empty for other arguments.
template <class T>
std::string_view mode_of(const T& /*argument*/) {
  return {};
}
inline std::string_view mode_of(const std::string_view& mode) {
  return mode;
}
inline std::string_view mode_of(const std::optional<std::string_view>& mode) {
  return mode.value_or(std::string_view());
}

template <class T>
constexpr bool is_mode = std::is_same_v<std::decay_t<T>, std::string_view> ||
                         std::is_same_v<std::decay_t<T>, std::optional<std::string_view>>;

// The same for the mode that an argument chooses.
template <class... Args>
bool may_refuse_mode(const char* name, const KernelRule& rule, std::optional<c10::ScalarType> dtype,
                     const Args&... args) {
  const auto refuses = [&](std::string_view mode) {
    for (const ModeRule& of_mode : rule.modes) {
      if (!mode.empty() && of_mode.mode == mode) {
        return may_refuse(name, KernelRule{.refused = of_mode.refused}, dtype, args...);
      }
    }
    return false;
  };
  return (refuses(mode_of(args)) || ...);
}

}  // namespace openreg::ops
