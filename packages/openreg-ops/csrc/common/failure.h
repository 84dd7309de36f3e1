// SPDX-License-Identifier: BSD-3-Clause
// Whose failure it is when a kernel throws. As a rule the device's, as on a GPU: the call has returned, later work is
// skipped, and synchronising raises. The caller's, who gets the exception from the call while the device stays usable,
// where the CPU or CUDA would raise at the call:
//
//   - The kernel may refuse a dtype. Of those in common use its rule knows who refuses which. The others (8-bit
//     floats, complex numbers of half precision, unsigned integers of more than a byte, ...) few kernels take, and
//     which ones do depends on PyTorch's version. So the first launch of its kind waits for the kernel, and later ones
//     go on at once; a program sees the like where CUDA loads a kernel with its first launch. Which layouts of sparse
//     tensors a kernel takes depends on the library that it is built with (KernelRule::by_kind).
//   - The kernel judges the data: LAPACK's info, which CUDA's operators read back, too; a divisor of zero.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Scalar.h>
#include <c10/macros/Macros.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "common/device_check.h"
#include "common/kernel_rule.h"
#include "common/numbers.h"
#include "common/wait_for.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/stream.h"

namespace openreg::ops {

// The dtypes of all tensors among the arguments.
template <class... Args>
DtypeSet dtypes_in(const Args&... args) {
  DtypeSet dtypes = 0;
  const auto visit = [&](const at::Tensor& tensor) { dtypes |= dtype_bit(tensor.scalar_type()); };
  (for_each_tensor(visit, args), ...);
  return dtypes;
}

// When the caller hears of a kernel's failure.
enum class Hears : uint8_t {
  kLater,           // at the next synchronisation, and the device is lost
  kFirst,           // from the call, if it is the first launch of its kind
  kAtTheCall,       // from every call; the sync debug mode may object, and it cannot be captured
  kUnlessCaptured,  // from every call, except that a capture records it
};

// What a kernel's choice of code for a dtype can depend on: the operator and its options; of each operand dtype,
// layout, number of dimensions, and whether it is contiguous, empty and on the device, or has square blocks. Two
// launches of one kind refuse the same dtypes.
class LaunchKind {
 public:
  explicit LaunchKind(const char* name);

  void add(const at::Tensor& operand);
  void add(std::string_view option);
  void add(int64_t option);
  // Kernels have code of its own for a few numbers: infinities, and small multiples of a half. All others are one kind.
  void add(double option);
  void add(const at::Scalar& option);
  void add(c10::IntArrayRef option);

  template <class T>
  void add(const std::optional<T>& option) {
    option.has_value() ? add(*option) : add(kAbsent);
  }
  template <class T>
  void add(const T& argument) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      add(static_cast<int64_t>(argument));
    } else if constexpr (std::is_floating_point_v<T>) {
      add(static_cast<double>(argument));
    } else if constexpr (std::is_convertible_v<const T&, c10::IntArrayRef>) {
      add(c10::IntArrayRef(argument));
    } else if constexpr (std::is_same_v<T, c10::OptionalArrayRef<int64_t>>) {
      argument.has_value() ? add(*argument) : add(kAbsent);
    } else {
      for_each_tensor([this](const at::Tensor& operand) { add(operand); }, argument);
    }
  }

  // Whether the caller of such a launch waits for it. Throws c10::Error where the stream is capturing and the launch
  // would have to run. Thread-safe, as is remember().
  bool has_to_wait(Hears hears, bool is_common, c10::Stream stream) const;

  // A launch of this kind has run without a failure.
  void remember() const;

 private:
  static constexpr int64_t kAbsent = INT64_MIN;

  bool has_passed() const;
  void mix(uint64_t value);

  const char* name_;
  uint64_t hash_ = 0;
  bool is_empty_ = false;  // kernels return before they look at the dtype of what has no elements
};

// Whether integers are divided by zero, or may be: the values of a tensor of the device are not known.
bool may_divide_by_zero(c10::ScalarType dtype, const at::Tensor& divisor);

// Whether an argument is a number with a fractional type, which integers may not be scaled by.
template <class T>
bool is_fraction(const T& argument) {
  if constexpr (std::is_same_v<T, at::Scalar>) {
    return !argument.isIntegral(/*includeBool=*/true);
  }
  return false;
}

// What a rule that has a verdict says; of others, `of_dtype`. Arguments are those of hears().
template <class... Args>
Hears hears_verdict(Verdict verdict, Hears of_dtype, std::optional<c10::ScalarType> dtype, const Args&... args) {
  switch (verdict) {
    case Verdict::kNone:
      return of_dtype;
    case Verdict::kAlways:
      return Hears::kAtTheCall;
    case Verdict::kIfAsked: {
      bool last = false;
      const auto visit = [&](const auto& argument) {
        if constexpr (std::is_same_v<std::decay_t<decltype(argument)>, bool>) {
          last = argument;
        }
      };
      (visit(args), ...);
      return last ? Hears::kAtTheCall : of_dtype;
    }
    case Verdict::kOfFraction: {
      const c10::ScalarType computed = dtype.value_or(first_dtype(args...).value_or(c10::ScalarType::Undefined));
      const bool is_refused = c10::isIntegralType(computed, /*includeBool=*/true) && (is_fraction(args) || ...);
      return is_refused ? Hears::kUnlessCaptured : of_dtype;
    }
    case Verdict::kOfDivisor: {
      int position = 0;
      bool is_zero = false;
      const auto visit = [&](const at::Tensor& operand) {
        is_zero |= ++position == 2 && may_divide_by_zero(dtype.value_or(operand.scalar_type()), operand);
      };
      (for_each_tensor(visit, args), ...);
      return is_zero ? Hears::kUnlessCaptured : of_dtype;
    }
  }
  return of_dtype;
}

// What the rule says for a kernel that computes in `dtype` (without one, in that of the first operand), and that
// `refuses` it as far as may_refuse() knows. Inline, as every launch asks and nearly none goes further.
template <class... Args>
C10_ALWAYS_INLINE Hears hears(const KernelRule& rule, bool refuses, std::optional<c10::ScalarType> dtype,
                              const Args&... args) {
  if constexpr ((is_number<Args> || ...)) {
    const std::optional<c10::ScalarType> computed = dtype.has_value() ? dtype : first_dtype(args...);
    if (computed.has_value() && any_overflows(*computed, args...)) {
      return Hears::kUnlessCaptured;
    }
  }
  const Hears of_dtype = refuses || rule.by_kind ? Hears::kFirst : Hears::kLater;
  return C10_LIKELY(rule.verdict == Verdict::kNone) ? of_dtype : hears_verdict(rule.verdict, of_dtype, dtype, args...);
}

// Launches what `make()` gives, on the current stream of the device. `arguments` are all the operator's, with its
// outputs; `operands`, which make() may fill, what observers are told of them (see runtime::launch()). Where the caller
// hears of a failure from the call, it waits for the kernel, and throws what that throws.
template <class Make, class... Args>
void launch_judged(const char* name, c10::Device device, Hears hears, Make&& make, const runtime::Operands* operands,
                   const Args&... arguments) {
  const c10::Stream stream = runtime::current_stream(device.index());
  const bool is_common = (dtypes_in(arguments...) & ~(kCommonDtypes | kQuantizedDtypes)) == 0;
  if (C10_LIKELY(hears == Hears::kLater && is_common)) {
    runtime::launch_made(name, stream, std::forward<Make>(make), operands);
    return;
  }
  LaunchKind kind(name);
  (kind.add(arguments), ...);
  if (!kind.has_to_wait(hears, is_common, stream)) {
    runtime::launch_made(name, stream, std::forward<Make>(make), operands);
    return;
  }
  auto task = make();
  run_and_wait(name, stream, task, operands);
  kind.remember();
}

}  // namespace openreg::ops
