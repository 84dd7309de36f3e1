// SPDX-License-Identifier: BSD-3-Clause
// When a launch is synchronous. As a rule it is not: the call returns before the kernel runs, and what the kernel
// throws becomes the error of the device, as on a GPU. So no kernel may throw for what the host can see before. Three
// rules make sure of that:
//
//   - KernelRule::checked: the host's own checks find every mistake but those in the data, which the sweep of changed
//     arguments (check `arguments` of the conformance kit) has shown. These launches are asynchronous.
//   - For every other kernel a dry run (dry_run.h) precedes the first launch of a signature (LaunchSignature). Where it
//     throws, the launch is synchronous: the kernel sees the real data, and the call throws what it throws. The same
//     holds for dtypes that a kernel may refuse (KernelRule::refused, and all that are not in common use).
//   - Where the data decide and the CPU or CUDA would throw at the call, each launch is synchronous: LAPACK's info,
//     which CUDA's operators read back, too; a divisor of zero.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Scalar.h>
#include <c10/macros/Macros.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "launch/kernel_rule.h"
#include "launch/numbers.h"
#include "launch/wait_for.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/stream.h"
#include "support/device_check.h"

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
  kLater,           // at the next synchronization, and the device is lost
  kAfterDryRun,     // from the call: a dry run precedes the first launch of a signature
  kAtTheCall,       // from every call; the sync debug mode may object, and it cannot be captured
  kUnlessCaptured,  // from every call, except that a capture records it
};

// A hash of all that a kernel's checks can depend on, but for data: the operator and its options; of each operand
// sizes, strides, dtype, layout and device, and with which other operands it shares memory.
class LaunchSignature {
 public:
  explicit LaunchSignature(const char* name);

  void add(const at::Tensor& operand);
  void add(std::string_view option);
  void add(int64_t option);
  void add(double option);
  void add(const at::Scalar& option);

  template <class T>
  void add(const std::optional<T>& option) {
    option.has_value() ? add(*option) : add(kAbsent);
  }
  template <class T>
  void add(const c10::OptionalArrayRef<T>& option) {
    option.has_value() ? add(*option) : add(kAbsent);
  }
  template <class T>
  void add(const c10::ArrayRef<T>& options) {
    add(static_cast<int64_t>(options.size()));
    for (const T& option : options) {
      add(option);
    }
  }
  template <size_t kSize>
  void add(const std::array<bool, kSize>& options) {
    add(c10::ArrayRef<bool>(options));
  }
  template <class T>
  void add(const T& argument) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      add(static_cast<int64_t>(argument));
    } else if constexpr (std::is_floating_point_v<T>) {
      add(static_cast<double>(argument));
    } else {
      for_each_tensor([this](const at::Tensor& operand) { add(operand); }, argument);
    }
  }

  // Whether a launch of this signature has passed. Thread-safe, as is remember().
  bool is_known() const;
  void remember() const;

  // Whether a dry run is of use: not of operands so large that it would take longer than waiting for the kernel, nor of
  // sparse ones, whose indices a kernel follows and which zeros would not be.
  bool allows_dry_run() const { return !has_sparse_ && bytes_ <= kMostBytes; }

 private:
  static constexpr int64_t kAbsent = INT64_MIN;
  static constexpr size_t kMostBytes = size_t{64} << 20U;

  void mix(uint64_t value);

  uint64_t hash_ = 0;
  size_t bytes_ = 0;
  bool has_sparse_ = false;
  c10::SmallVector<std::pair<const c10::StorageImpl*, int64_t>, 8> storages_;  // with the offset of the first operand
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
  const Hears of_dtype = refuses || !rule.checked ? Hears::kAfterDryRun : Hears::kLater;
  return C10_LIKELY(rule.verdict == Verdict::kNone) ? of_dtype : hears_verdict(rule.verdict, of_dtype, dtype, args...);
}

// Whether a launch is synchronous. `run` calls the kernel on aliases, for a dry run. Throws NotImplementedError where
// the stream is capturing and the launch would have to be waited for, and during a capture what a dry run throws.
bool has_to_wait(const char* name, c10::Stream stream, Hears hears, const LaunchSignature& signature,
                 c10::function_ref<void(runtime::AliasStorages&)> run);

// What an asynchronous launch holds: a task, which is a callable on the storages of one run.
template <class Task>
struct AsynchronousTask {
  Task task;

  void operator()() {
    runtime::AliasStorages storages;
    task(storages);
  }
};

// Launches the task that `make(aliases)` gives, on the current stream of the device. `arguments` are all the
// operator's, with its outputs. A synchronous launch throws what the kernel throws.
template <class Make, class... Args>
void launch_judged(const char* name, c10::Device device, Hears hears, Make&& make, const Args&... arguments) {
  using Task = std::invoke_result_t<Make, runtime::Aliases&>;
  const c10::Stream stream = runtime::current_stream(device.index());
  const bool is_common = (dtypes_in(arguments...) & ~(kCommonDtypes | kQuantizedDtypes)) == 0;
  if (C10_UNLIKELY(hears != Hears::kLater || !is_common)) {
    LaunchSignature signature(name);
    (signature.add(arguments), ...);
    const auto run = [&](runtime::AliasStorages& storages) {
      runtime::Aliases aliases(name);
      Task task = make(aliases);
      task(storages);
    };
    if (has_to_wait(name, stream, hears, signature, run)) {
      runtime::Aliases aliases(name);
      AsynchronousTask<Task> task{make(aliases)};
      run_and_wait(name, stream, task, aliases.operands());
      signature.remember();
      return;
    }
  }
  runtime::Aliases aliases(name);
  runtime::launch_made(name, stream, [&] { return AsynchronousTask<Task>{make(aliases)}; }, aliases.operands());
}

}  // namespace openreg::ops
