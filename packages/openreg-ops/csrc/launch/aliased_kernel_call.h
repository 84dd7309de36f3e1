// SPDX-License-Identifier: BSD-3-Clause
// The launch of an operator with a meta function, PyTorch's own (structured) or ours (unstructured), and the callable
// that it enqueues. The callable owns the arguments, the dtypes that the host has determined, and the descriptors from
// which the aliases of the outputs are made. An alias is a CPU tensor over the bytes of a device tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "launch/access.h"
#include "launch/arguments.h"
#include "launch/sync_policy.h"
#include "openreg/runtime/alias.h"

namespace openreg::ops {

// The default dtype of the process at the launch, and the dtype in which the kernel computes, which the meta function
// has determined. PyTorch's kernels determine their dtype again when they run, and promote integers to the default
// dtype at that time. If the default dtype has changed since the launch, integer operands must be converted before.
class LaunchDtypes {
 public:
  explicit LaunchDtypes(std::optional<c10::ScalarType> computed)
      : computed_(computed.value_or(c10::ScalarType::Undefined)) {}

  // Returns the dtype to which integer operands are converted before the kernel is called, or Undefined if they need no
  // conversion, which is the usual case. Runs where the kernel runs: on the engine thread, or on the calling thread in
  // a dry run (launch/dry_run.h).
  c10::ScalarType for_integers() const {
    const bool changed = C10_UNLIKELY(default_ != c10::get_default_dtype_as_scalartype());
    return changed && !c10::isIntegralType(computed_, /*includeBool=*/true) ? computed_ : c10::ScalarType::Undefined;
  }

 private:
  c10::ScalarType default_ = c10::get_default_dtype_as_scalartype();
  c10::ScalarType computed_ = c10::ScalarType::Undefined;
};

// Returns an argument of a kernel, with integer tensors converted to `dtype` unless it is Undefined. Valid until the
// end of the full expression, as `holder` is.
template <class T>
T&& converted(T&& argument, c10::ScalarType /*dtype*/) {
  return std::forward<T>(argument);
}
inline const at::Tensor& converted(const at::Tensor& argument, c10::ScalarType dtype, at::Tensor&& holder = {}) {
  if (C10_LIKELY(dtype == c10::ScalarType::Undefined) || !argument.defined() ||
      !c10::isIntegralType(argument.scalar_type(), /*includeBool=*/true)) {
    return argument;
  }
  holder = argument.to(dtype);
  return holder;
}

// A callable that calls Runner()(name, kernel, outputs, args...) on aliases of the outputs and of the tensors among the
// arguments. It takes the storages of these aliases, one AliasStorages for each execution. Runner is a functor that
// calls the kernel, such as RunKernel in registration/structured.h.
template <class Runner, class Kernel, class Outputs, class... Args>
class AliasedKernelCall;

template <class Runner, class Kernel, size_t... Index, class... Args>
class AliasedKernelCall<Runner, Kernel, std::index_sequence<Index...>, Args...> {
 public:
  static constexpr size_t kOutputs = sizeof...(Index);

  AliasedKernelCall(const char* name, Kernel* kernel, LaunchDtypes dtypes, runtime::AliasBuilder& aliases,
                    const std::array<at::Tensor, kOutputs>& outputs, Args... args)
      : name_(name),
        kernel_(kernel),
        dtypes_(dtypes),
        owned_(aliases, kAccesses.data(), args...),
        outputs_{aliases.as(orAccessWrite).describe(outputs[Index])...} {}

  void operator()(runtime::AliasStorages& storages) {
    std::array<at::Tensor, kOutputs> outputs{outputs_[Index].make_tensor(storages)...};
    const c10::ScalarType dtype = dtypes_.for_integers();
    const auto run = [&]<class... T>(T&&... argument) {
      Runner()(name_, kernel_, outputs, converted(std::forward<T>(argument), dtype)...);
    };
    owned_.apply(run, storages);
  }

 private:
  static constexpr std::array<orAccess, sizeof...(Args)> kAccesses = accesses_by_type<Args...>();

  const char* name_;
  Kernel* kernel_;
  LaunchDtypes dtypes_;
  OwnedArgumentsOf<Args...> owned_;
  std::array<runtime::AliasDescriptor, kOutputs> outputs_;
};

// Launches Runner()(name, kernel, outputs, args...) on aliases, on the current stream of the device. Outputs may be
// undefined. `computed` is the dtype in which the kernel of a TensorIterator computes. `policy` determines whether the
// launch is synchronous. Errors are those of launch_with_policy().
template <class Runner, class Kernel, size_t kOutputs, class... Args>
void launch_on_aliases(const char* name, c10::Device device, SyncPolicy policy, Kernel* kernel,
                       const std::array<at::Tensor, kOutputs>& outputs, std::optional<c10::ScalarType> computed,
                       Args... args) {
  using KernelCall = AliasedKernelCall<Runner, Kernel, std::make_index_sequence<kOutputs>, Args...>;
  const auto make = [&](runtime::AliasBuilder& aliases) {
    return KernelCall(name, kernel, LaunchDtypes(computed), aliases, outputs, args...);
  };
  launch_with_policy(name, device, policy, make, args..., at::TensorList(outputs));
}

}  // namespace openreg::ops
