// SPDX-License-Identifier: BSD-3-Clause
// The choice between synchronous and asynchronous launch. Asynchronous is the default: the call returns before the
// kernel runs, and the kernel's exception becomes the device's sticky error, as on a GPU. So no kernel may throw for an
// error that the host can detect. The kernel and its arguments determine the policy:
//
//   - KernelTraits::checked: the host's own checks find all errors except those in the data, as the conformance kit's
//     check `arguments` shows, which repeats calls with one wrong or unusual argument. These launches are asynchronous,
//     except in the cases below.
//   - Every other kernel has a dry run, a call of the kernel on zero-filled stand-ins on the calling thread
//     (dry_run.h), before a launch whose signature (LaunchSignature) has not passed yet. If the dry run throws, the
//     launch is synchronous: the kernel reads the real data, and the call rethrows its exception. A checked kernel is
//     treated like this, too, if an operand has a dtype that the kernel may reject: one in KernelTraits::refused, or
//     one in neither kCommonDtypes (those that most kernels support) nor kQuantizedDtypes. Launches with sparse
//     operands or with more than 64 MiB of operands have no dry run. Until their signature has passed they are
//     synchronous, or throw in a capture.
//   - Kernels whose errors only the data show, and for which the CPU or CUDA would throw at the call
//     (KernelTraits::data_check): launches that may have such an error are synchronous. Examples are LAPACK's error
//     code `info`, which CUDA's operators read back, too, and a zero divisor.
//   - A launch with a scalar argument that overflows the dtype is synchronous (any_overflows()).
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

#include "launch/kernel_traits.h"
#include "launch/run_and_wait.h"
#include "launch/scalar_range.h"
#include "openreg/runtime/alias.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/stream.h"
#include "support/device_check.h"

namespace openreg::ops {

// Returns the dtypes of all tensors among the arguments.
template <class... Args>
DtypeSet dtypes_in(const Args&... args) {
  DtypeSet dtypes = 0;
  const auto visit = [&](const at::Tensor& tensor) { dtypes |= dtype_bit(tensor.scalar_type()); };
  (for_each_tensor(visit, args), ...);
  return dtypes;
}

// The condition under which a launch is synchronous, so that the call throws the kernel's exception.
enum class SyncPolicy : uint8_t {
  kAsync,                // never, if all dtypes are in kCommonDtypes or kQuantizedDtypes; otherwise as kAfterDryRun
  kAfterDryRun,          // until the signature has passed, if the dry run throws or there is none (see above)
  kSync,                 // always; the sync debug mode may warn or throw, and a capture throws
  kSyncUnlessCapturing,  // always, except in a capture, where it is as kAfterDryRun
};

// A hash of everything on which a kernel's checks can depend, except data. It contains the operator and its options,
// except those in a struct of this package, such as RnnShape, which the function that fills the struct checks, and for
// each operand sizes, strides, dtype, layout, device, lazy bits (conjugate and negative), and the operands with which
// it shares memory. An operand that is absent, such as None in a list of indices, counts as well.
class LaunchSignature {
 public:
  // `name` is that of the operator.
  explicit LaunchSignature(const char* name);

  // Each overload of add() adds an argument to the hash: an operand, an option or a list of these.
  void add(const at::Tensor& operand);
  void add(std::string_view option);
  void add(int64_t option);
  void add(double option);
  void add(const at::Scalar& option);

  template <class T>
  void add(const std::optional<T>& option) {
    if (option.has_value()) {
      add(*option);
    } else {
      add(kAbsent);
    }
  }
  template <class T>
  void add(const c10::OptionalArrayRef<T>& option) {
    if (option.has_value()) {
      add(*option);
    } else {
      add(kAbsent);
    }
  }
  void add(const c10::List<std::optional<at::Tensor>>& operands) {
    add(static_cast<int64_t>(operands.size()));
    for (const std::optional<at::Tensor> operand : operands) {
      add(operand);
    }
  }
  void add(const at::ITensorListRef& operands) {
    add(static_cast<int64_t>(operands.size()));
    for (const at::Tensor& operand : operands) {
      add(operand);
    }
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

  // is_known() returns true after remember() for this signature. A launch calls remember() after a dry run or a
  // synchronous launch that did not throw. The process forgets all signatures when it knows 65536. Thread-safe.
  bool is_known() const;
  void remember() const;

  // Returns true if a dry run is useful. It is useless for operands so large that it would take longer than a
  // synchronous launch, and for sparse operands, because a kernel follows their indices, which zeros do not represent.
  bool allows_dry_run() const { return !has_sparse_ && bytes_ <= kMostBytes; }

 private:
  static constexpr int64_t kAbsent = INT64_MIN;
  static constexpr size_t kMostBytes = size_t{64} << 20U;

  void mix(uint64_t value);

  uint64_t hash_ = 0;
  size_t bytes_ = 0;
  bool has_sparse_ = false;
  // The storages of the operands, each with the storage offset of the first operand that uses it.
  c10::SmallVector<std::pair<const c10::StorageImpl*, int64_t>, 8> storages_;
};

// Returns true if an integer division by `divisor` in `dtype` may be one by zero. A tensor on the device counts as
// possibly zero, because the host does not read its values. A number on the host is compared with zero.
bool may_divide_by_zero(c10::ScalarType dtype, const at::Tensor& divisor);

// Returns true if an argument is a Scalar of floating-point or complex type, which must not scale integers.
template <class T>
bool is_fraction(const T& argument) {
  if constexpr (std::is_same_v<T, at::Scalar>) {
    return !argument.isIntegral(/*includeBool=*/true);
  }
  return false;
}

// Returns the sync policy for a kernel with a data check, or `of_dtype`, the policy without that check, if the check
// needs no synchronous launch. Other arguments are those of sync_policy().
template <class... Args>
SyncPolicy sync_policy_for_check(DataCheck data_check, SyncPolicy of_dtype, std::optional<c10::ScalarType> dtype,
                                 const Args&... args) {
  switch (data_check) {
    case DataCheck::kNone:
      return of_dtype;
    case DataCheck::kAlways:
      return SyncPolicy::kSync;
    case DataCheck::kIfCheckErrors: {
      bool last = false;
      const auto visit = [&](const auto& argument) {
        if constexpr (std::is_same_v<std::decay_t<decltype(argument)>, bool>) {
          last = argument;
        }
      };
      (visit(args), ...);
      return last ? SyncPolicy::kSync : of_dtype;
    }
    case DataCheck::kFractionalScale: {
      const c10::ScalarType computed = dtype.value_or(first_dtype(args...).value_or(c10::ScalarType::Undefined));
      const bool is_refused = c10::isIntegralType(computed, /*includeBool=*/true) && (is_fraction(args) || ...);
      return is_refused ? SyncPolicy::kSyncUnlessCapturing : of_dtype;
    }
    case DataCheck::kZeroDivisor: {
      int position = 0;
      bool is_zero = false;
      const auto visit = [&](const at::Tensor& operand) {
        is_zero |= ++position == 2 && may_divide_by_zero(dtype.value_or(operand.scalar_type()), operand);
      };
      (for_each_tensor(visit, args), ...);
      return is_zero ? SyncPolicy::kSyncUnlessCapturing : of_dtype;
    }
  }
  return of_dtype;
}

// Returns the sync policy for a kernel that computes in `dtype`, or in the dtype of the first operand if `dtype` has no
// value. `refuses` is the result of may_reject_dtype(). Inline, because every launch calls it, and nearly all calls
// return early.
template <class... Args>
C10_ALWAYS_INLINE SyncPolicy sync_policy(const KernelTraits& traits, bool refuses, std::optional<c10::ScalarType> dtype,
                                         const Args&... args) {
  if constexpr ((is_number<Args> || ...)) {
    const std::optional<c10::ScalarType> computed = dtype.has_value() ? dtype : first_dtype(args...);
    if (computed.has_value() && any_overflows(*computed, args...)) {
      return SyncPolicy::kSyncUnlessCapturing;
    }
  }
  const SyncPolicy of_dtype = refuses || !traits.checked ? SyncPolicy::kAfterDryRun : SyncPolicy::kAsync;
  return C10_LIKELY(traits.data_check == DataCheck::kNone)
             ? of_dtype
             : sync_policy_for_check(traits.data_check, of_dtype, dtype, args...);
}

// Returns true if a launch is synchronous. Makes the dry run that the policy requires. `run` calls the kernel on the
// tensors of the AliasStorages that it gets, which are stand-ins in a dry run. Throws c10::Error if the stream is
// capturing and the launch would have to be synchronous, or if the dry run throws during a capture. Throws c10::Error
// if the policy is kSync and the sync debug mode (torch.openreg.set_sync_debug_mode()) forbids it.
bool has_to_wait(const char* name, c10::Stream stream, SyncPolicy policy, const LaunchSignature& signature,
                 c10::function_ref<void(runtime::AliasStorages&)> run);

// The callable that a launch enqueues. It calls `call` with new storages in each execution; a graph executes it once
// per replay.
template <class KernelCall>
struct EnqueuedCall {
  KernelCall call;

  void operator()() {
    runtime::AliasStorages storages;
    call(storages);
  }
};

// Launches the callable that `make(aliases)` returns, on the current stream of the device. `aliases` makes descriptors
// of aliases at the launch. The callable makes the aliases from them in each execution; the AliasStorages that it gets
// contain their bytes. `arguments` are all arguments of the operator, with its outputs. A synchronous launch blocks and
// throws the kernel's exception. Throws the errors of has_to_wait() and runtime::launch().
template <class Make, class... Args>
void launch_with_policy(const char* name, c10::Device device, SyncPolicy policy, Make&& make,
                        const Args&... arguments) {
  using KernelCall = std::invoke_result_t<Make, runtime::AliasBuilder&>;
  const c10::Stream stream = runtime::current_stream(device.index());
  const bool is_common = (dtypes_in(arguments...) & ~(kCommonDtypes | kQuantizedDtypes)) == 0;
  if (C10_UNLIKELY(policy != SyncPolicy::kAsync || !is_common)) {
    LaunchSignature signature(name);
    (signature.add(arguments), ...);
    const auto run = [&](runtime::AliasStorages& storages) {
      runtime::AliasBuilder aliases(name);
      KernelCall call = make(aliases);
      call(storages);
    };
    if (has_to_wait(name, stream, policy, signature, run)) {
      runtime::AliasBuilder aliases(name);
      EnqueuedCall<KernelCall> call{make(aliases)};
      run_and_wait(name, stream, call, aliases.operands());
      signature.remember();
      return;
    }
  }
  runtime::AliasBuilder aliases(name);
  runtime::launch_emplace(name, stream, [&] { return EnqueuedCall<KernelCall>{make(aliases)}; }, aliases.operands());
}

}  // namespace openreg::ops
