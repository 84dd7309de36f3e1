// SPDX-License-Identifier: BSD-3-Clause
// Static facts about a kernel: the dtypes that it rejects, and the values for which it throws. PyTorch leaves such
// checks to kernels. On this device the kernel runs later, when its exception would become the device's sticky error.
// So the host evaluates the traits at the launch, and makes the launch synchronous if the kernel may throw
// (sync_policy.h). The traits are part of the operator's registration. tests/errors/test_operand_dtypes.py measures the
// kernels and lists differences.
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

// A set of dtypes: one bit for each dtype, at the position of its number in c10::ScalarType.
using DtypeSet = uint64_t;

// Returns the set of one dtype.
constexpr DtypeSet dtype_bit(c10::ScalarType dtype) {
  return DtypeSet{1} << static_cast<int>(dtype);
}

// The dtypes that most kernels support, and that traits can list. A launch with any other dtype has a dry run first: a
// call of the kernel on zero-filled stand-ins, on the calling thread (sync_policy.h).
constexpr DtypeSet kCommonDtypes = dtype_bit(c10::ScalarType::Bool) | dtype_bit(c10::ScalarType::Byte) |
                                   dtype_bit(c10::ScalarType::Char) | dtype_bit(c10::ScalarType::Short) |
                                   dtype_bit(c10::ScalarType::Int) | dtype_bit(c10::ScalarType::Long) |
                                   dtype_bit(c10::ScalarType::Half) | dtype_bit(c10::ScalarType::BFloat16) |
                                   dtype_bit(c10::ScalarType::Float) | dtype_bit(c10::ScalarType::Double) |
                                   dtype_bit(c10::ScalarType::ComplexFloat) | dtype_bit(c10::ScalarType::ComplexDouble);

// Returns the set of these dtypes. Sets can be joined by |.
template <class... Dtypes>
constexpr DtypeSet dtype_set(Dtypes... dtypes) {
  return (dtype_bit(dtypes) | ...);
}
// The dtypes of quantized tensors. Only the kernels of csrc/operators/quantized get such tensors, so these dtypes cause
// no dry run.
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

// The operands that must have one dtype, because the kernel would misread others.
enum class DtypeMatch : uint8_t {
  kNone,           // no requirement: the kernel converts operands, or checks them itself
  kAll,            // all operands
  kAllButIndices,  // all operands except indices, which are int64 or uint8
};

// The argument values for which a kernel throws. These launches are synchronous, so that the operator call throws.
enum class DataCheck : uint8_t {
  kNone,
  kAlways,           // values found by the computation, which CUDA's host reads, too, such as LAPACK's error code
  kIfCheckErrors,    // as kAlways, but only if the operator's last argument, check_errors, is true
  kFractionalScale,  // a number of fractional type among the arguments, because it cannot scale integers
  kZeroDivisor,      // zero in an integer division: the second tensor is a divisor that may contain it
};

// Returns true for complex numbers of two half or two bfloat16 parts, which few kernels support.
inline bool is_reduced_complex(c10::ScalarType dtype) {
  return c10::isComplexType(dtype) && c10::elementSize(dtype) == 4;
}

// The dtypes that a kernel rejects in one of its modes. A string argument selects the mode, such as rounding or
// reduction.
struct ModeTraits {
  std::string_view mode;
  DtypeSet refused = 0;
};

// Static facts about a kernel. The default is a kernel that supports all operands of kCommonDtypes.
struct KernelTraits {
  DtypeSet refused = 0;  // dtypes that the kernel rejects, at least in some modes or shapes
  DtypeMatch dtype_match = DtypeMatch::kNone;
  DataCheck data_check = DataCheck::kNone;
  bool checked = false;                  // true if the host finds all errors but those in the data (sync_policy.h)
  bool elementwise = false;              // structured operators: ElementwiseOperands may bypass the meta function
  bool expands = false;                  // in-place operators: true if the operand may be an expanded tensor
  OverlapRule overlap = {};              // structured operators: overlaps of outputs that the kernel rejects
  std::array<ModeTraits, 3> modes = {};  // modes in which the kernel rejects further dtypes

  // Returns true if the kernel supports all dtypes of kCommonDtypes in any combination.
  bool takes_all_dtypes() const { return refused == 0 && dtype_match == DtypeMatch::kNone; }
};

// The traits of most kernels that support only real floating-point numbers.
constexpr KernelTraits kFloats{.refused = kNotFloating};
// The traits of kernels that support no complex numbers, and of those that support no booleans either.
constexpr KernelTraits kNoComplex{.refused = kComplex};
constexpr KernelTraits kRealNumbers{.refused = kBoolean | kComplex};
// Returns the traits for an operator whose host checks are complete.
constexpr KernelTraits checked(KernelTraits traits) {
  traits.checked = true;
  return traits;
}
constexpr KernelTraits kChecked{.checked = true};
// The traits of elementwise kernels that support all dtypes.
constexpr KernelTraits kElementwise{.elementwise = true};

// Throws c10::Error, in PyTorch's words, about a dtype that differs from the first operand's.
[[noreturn]] void throw_dtype_mismatch(const char* name, c10::ScalarType expected, c10::ScalarType found);

// Returns the dtype of the first tensor among the arguments, if there is one.
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

// Throws c10::Error if the dtypes of the tensors among the arguments do not match as `dtype_match` requires.
template <class... Args>
void check_dtypes_match(const char* name, DtypeMatch dtype_match, const Args&... args) {
  std::optional<c10::ScalarType> first;
  const auto visit = [&](const at::Tensor& tensor) {
    const c10::ScalarType dtype = tensor.scalar_type();
    const bool is_index = dtype == c10::ScalarType::Long || dtype == c10::ScalarType::Byte;
    if (!first.has_value()) {
      first = dtype;
    } else if (dtype != *first && !(is_index && dtype_match == DtypeMatch::kAllButIndices)) {
      throw_dtype_mismatch(name, *first, dtype);
    }
  };
  (for_each_tensor(visit, args), ...);
}

// Same as `may_reject_dtype()` below, except that it is for kernels whose traits restrict dtypes.
template <class... Args>
bool may_reject_listed_dtype(const char* name, const KernelTraits& traits, std::optional<c10::ScalarType> dtype,
                             const Args&... args) {
  const std::optional<c10::ScalarType> computed = dtype.has_value() ? dtype : first_dtype(args...);
  if (computed.has_value() && (traits.refused & dtype_bit(*computed)) != 0) {
    return true;  // before the check of several dtypes, because the kernel's error names the dtype
  }
  if (traits.dtype_match != DtypeMatch::kNone) {
    check_dtypes_match(name, traits.dtype_match, args...);
  }
  return false;
}

// Returns true if a kernel that computes in `dtype` may reject it. Without `dtype`, the kernel computes in the dtype of
// the first operand. Throws c10::Error if the kernel would misread operands of several dtypes. Inline, because every
// launch calls it.
template <class... Args>
C10_ALWAYS_INLINE bool may_reject_dtype(const char* name, const KernelTraits& traits,
                                        std::optional<c10::ScalarType> dtype, const Args&... args) {
  return C10_UNLIKELY(!traits.takes_all_dtypes()) && may_reject_listed_dtype(name, traits, dtype, args...);
}

// Returns the mode that an operator's string argument selects, such as rounding or reduction. Returns an empty text for
// other arguments.
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

// Same as `may_reject_dtype()`, except that it considers the dtypes that the kernel rejects in the mode of its
// arguments.
template <class... Args>
bool may_reject_mode(const char* name, const KernelTraits& traits, std::optional<c10::ScalarType> dtype,
                     const Args&... args) {
  const auto refuses = [&](std::string_view mode) {
    for (const ModeTraits& of_mode : traits.modes) {
      if (!mode.empty() && of_mode.mode == mode) {
        return may_reject_dtype(name, KernelTraits{.refused = of_mode.refused}, dtype, args...);
      }
    }
    return false;
  };
  return (refuses(mode_of(args)) || ...);
}

}  // namespace openreg::ops
