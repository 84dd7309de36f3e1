// SPDX-License-Identifier: BSD-3-Clause
// Dtypes that a kernel refuses. PyTorch leaves this check to kernels; ours run later, when a mistake would concern the
// whole device. So launches ask here first, on the calling line. The table is in operand_dtypes.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/device_check.h"

namespace openreg::ops {

// One bit per dtype.
using DtypeSet = uint64_t;

constexpr DtypeSet dtype_bit(c10::ScalarType dtype) {
  return DtypeSet{1} << static_cast<int>(dtype);
}

// Whether the kernel wants one dtype for all its operands.
enum class Agreement : uint8_t {
  kNone,           // it converts them, or checks them by itself
  kAll,            // all of them
  kAllButIndices,  // all but indices, which are int64 or uint8
};

// What a kernel asks of its operands. By default nothing.
struct DtypeRule {
  DtypeSet refused = 0;
  Agreement agreement = Agreement::kNone;

  bool is_empty() const { return refused == 0 && agreement == Agreement::kNone; }
};

// The rule for an operator as the dispatcher names it ("aten::round.decimals"), or for one of its modes
// ("aten::div.Tensor_mode:floor"). Lives for ever; thread-safe.
const DtypeRule& dtype_rule(std::string_view op);

// Whether any mode of the operator has a rule of its own.
bool has_mode_rules(std::string_view op);

// All rules, for tests.
std::map<std::string, DtypeRule> dtype_rules();

// Throws c10::NotImplementedError in PyTorch's words when `dtype`, in which the kernel would compute, is refused.
void check_dtype(const char* name, const DtypeRule& rule, c10::ScalarType dtype);

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

// Checks operands of a kernel that computes in `dtype`; without one, in that of the first.
template <class... Args>
void check_operand_dtypes(const char* name, const DtypeRule& rule, std::optional<c10::ScalarType> dtype,
                          const Args&... args) {
  if (rule.is_empty()) {
    return;
  }
  const std::optional<c10::ScalarType> computed = dtype.has_value() ? dtype : first_dtype(args...);
  if (computed.has_value()) {
    check_dtype(name, rule, *computed);
  }
  if (rule.agreement != Agreement::kNone) {
    check_agreement(name, rule.agreement, args...);
  }
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

// The same for an operator that has modes, each with a rule of its own.
template <class... Args>
void check_mode_dtypes(const char* name, const std::string& op, std::optional<c10::ScalarType> dtype,
                       const Args&... args) {
  const auto check = [&](std::string_view mode) {
    if (!mode.empty()) {
      check_operand_dtypes(name, dtype_rule(op + ":" + std::string(mode)), dtype, args...);
    }
  };
  (check(mode_of(args)), ...);
}

}  // namespace openreg::ops
