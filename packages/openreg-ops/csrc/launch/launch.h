// SPDX-License-Identifier: BSD-3-Clause
// Launches of operators: launch(op, device, kernel, arguments...) runs `kernel(arguments...)` on aliases of its tensors
// (CPU tensors over their bytes). The kernel runs on the current stream, after the earlier tasks of that stream. The
// layers, from top to bottom:
//
//   launch()              for functions written by hand; the types of the kernel's parameters imply its accesses
//   launch_owned()        as launch(), but a schema implies the accesses: in-place overloads, lists of tensors
//   launch_with_outputs() as launch(), but a functor calls the kernel with the outputs: operators with a meta function
//   launch_with_policy()  called by all of the above: decides whether the launch is synchronous (launch/sync_policy.h)
//   runtime::launch()     enqueues a callable; launch_raw() calls it, too, with addresses (launch/raw_operands.h)
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch/access.h"
#include "launch/arguments.h"
#include "launch/launch_dtypes.h"
#include "launch/sync_policy.h"
#include "support/device_check.h"
#include "support/outputs.h"

namespace openreg::ops {

// The name and the kernel traits of an operator, which its launches use.
struct Operator {
  const char* name;  // the dispatcher's name, such as "aten::addmm"; never freed
  KernelTraits traits = {};
};

// An optional operand, as the dispatcher passes it to a kernel.
using MaybeTensor = const std::optional<at::Tensor>&;

// A guard that makes the device of an operator's operands the current one. Throws c10::Error, with the operator's name,
// if operands are on several devices or none is on an openreg device.
class OperandDeviceGuard {
 public:
  template <class... Args>
  explicit OperandDeviceGuard(const Operator& op, const Args&... operands)
      : device_(device_of(op.name, operands...)), current_(device_) {
    check_same_device(op.name, device_, operands...);
  }

  operator c10::Device() const { return device_; }
  c10::DeviceIndex index() const { return device_.index(); }

 private:
  c10::Device device_;
  CurrentDeviceGuard current_;
};

// Returns the sync policy for a launch of the operator's kernel (launch/sync_policy.h), which computes in `dtype`, or
// in the dtype of the first operand if `dtype` has no value. Throws c10::Error as may_reject_dtype() does.
template <class... Args>
SyncPolicy sync_policy_for_dtype(std::optional<c10::ScalarType> dtype, const Operator& op, const Args&... args) {
  bool refuses = may_reject_dtype(op.name, op.traits, dtype, args...);
  if constexpr ((is_mode<Args> || ...)) {
    refuses |= may_reject_mode(op.name, op.traits, dtype, args...);
  }
  return sync_policy(op.traits, refuses, dtype, args...);
}
// Same as `sync_policy_for_dtype()`, except that the kernel computes in the dtype of the first operand.
template <class... Args>
SyncPolicy sync_policy_of(const Operator& op, const Args&... args) {
  return sync_policy_for_dtype(std::nullopt, op, args...);
}

// A kernel and the arguments that its launch owns.
template <class Kernel, class... Parameters>
struct BoundKernelCall {
  Kernel kernel;
  OwnedArgumentsOf<Parameters...> arguments;

  void operator()(runtime::AliasStorages& storages) { arguments.apply(kernel, storages); }
};

// Launches `kernel(args...)`. `accesses` contains the kernel's access to each argument. Parameters are the types of the
// kernel's parameters, for which Owned<> in launch/arguments.h defines how the launch owns each argument. A 0-dim CPU
// tensor is copied as a number. Errors are those of launch_with_policy().
template <class... Parameters, class Kernel>
void launch_owned(const Operator& op, c10::Device device, SyncPolicy policy, const orAccess* accesses, Kernel kernel,
                  const std::remove_reference_t<Parameters>&... args) {
  const auto make = [&](runtime::AliasBuilder& aliases) {
    return BoundKernelCall<Kernel, Parameters...>{kernel, {aliases, accesses, args...}};
  };
  launch_with_policy(op.name, device, policy, make, args...);
}

// Launches `kernel(args...)`. The types of the kernel's parameters determine how the launch owns each argument, and
// what the kernel writes (launch/access.h). Errors are those of launch_with_policy().
template <class Result, class... Parameters, class... Args>
void launch(const Operator& op, c10::Device device, SyncPolicy policy, Result (*kernel)(Parameters...),
            const Args&... args) {
  launch_owned<Parameters...>(op, device, policy, kAccessesByType<Parameters...>.data(), kernel, args...);
}
// Same as `launch()` with a policy, except that the operator's traits determine the policy.
template <class Result, class... Parameters, class... Args>
void launch(const Operator& op, c10::Device device, Result (*kernel)(Parameters...), const Args&... args) {
  launch(op, device, sync_policy_of(op, args...), kernel, args...);
}

// The type of an output argument, for expansions of a pack of output indices.
template <size_t>
using OutputReference = at::Tensor&;

// Launches `Runner()(op.name, kernel, outputs, args...)`. Runner is a functor that calls the kernel, such as RunKernel
// in registration/structured.h. The kernel writes the outputs, some of which may be undefined. `computed` is the dtype
// in which the kernel of a TensorIterator computes. Errors are those of launch_with_policy().
template <class Runner, class Kernel, size_t kOutputs, class... Args>
void launch_with_outputs(const Operator& op, c10::Device device, SyncPolicy policy, Kernel* kernel,
                         const std::array<at::Tensor, kOutputs>& outputs, std::optional<c10::ScalarType> computed,
                         const std::remove_reference_t<Args>&... args) {
  [&]<size_t... Index>(std::index_sequence<Index...>) {
    const auto run = [name = op.name, kernel, dtypes = LaunchDtypes(computed)](Args... operands,
                                                                               OutputReference<Index>... aliases) {
      std::array<at::Tensor, kOutputs> written{aliases...};
      const c10::ScalarType dtype = dtypes.for_integers();
      Runner()(name, kernel, written, converted(std::forward<Args>(operands), dtype)...);
    };
    launch_owned<Args..., OutputReference<Index>...>(op, device, policy,
                                                     kAccessesByType<Args..., OutputReference<Index>...>.data(), run,
                                                     args..., outputs[Index]...);
  }(std::make_index_sequence<kOutputs>());
}

// Returns a new contiguous tensor on the current device if `wanted`. Otherwise returns an undefined tensor, which means
// to the kernel that this output is not required.
inline at::Tensor output_if(bool wanted, c10::IntArrayRef sizes, const c10::TensorOptions& options) {
  return wanted ? make_output(sizes, {}, options) : at::Tensor();
}

// Returns an optional operand as PyTorch's kernels take it: an undefined tensor if it is absent.
inline at::Tensor value_or_undefined(MaybeTensor tensor) {
  return tensor.value_or(at::Tensor());
}

// Returns true if an optional operand is present and defined.
inline bool is_given(MaybeTensor tensor) {
  return tensor.has_value() && tensor->defined();
}

}  // namespace openreg::ops
