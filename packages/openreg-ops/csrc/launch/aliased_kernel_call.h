// SPDX-License-Identifier: BSD-3-Clause
// What the launch of a structured or described operator holds, and its launching: the kernel, its arguments in owning
// forms, the records of the outputs' aliases, and the dtypes that were settled on the host.
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
#include "launch/failure.h"
#include "openreg/runtime/alias.h"

namespace openreg::ops {

// The default dtype of the process at the launch, and the dtype in which the meta function settled that the kernel
// computes. The kernel settles it anew when it runs; integers whose place floating-point numbers of the default dtype
// take have to be those of the launch.
class LaunchDtypes {
 public:
  explicit LaunchDtypes(std::optional<c10::ScalarType> computed)
      : computed_(computed.value_or(c10::ScalarType::Undefined)) {}

  // On the engine, the dtype that integers are converted to first; Undefined in nearly every case, where they are not.
  c10::ScalarType for_integers() const {
    const bool changed = C10_UNLIKELY(default_ != c10::get_default_dtype_as_scalartype());
    return changed && !c10::isIntegralType(computed_, /*includeBool=*/true) ? computed_ : c10::ScalarType::Undefined;
  }

 private:
  c10::ScalarType default_ = c10::get_default_dtype_as_scalartype();
  c10::ScalarType computed_ = c10::ScalarType::Undefined;
};

// An argument of a kernel, an integer tensor in another dtype; `holder` lives as long as the call.
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

// What a launch holds: calls Run()(name, kernel, outputs, args...) on aliases, in the storages of one run.
template <class Run, class Kernel, class Outputs, class... Args>
class AliasTask;

template <class Run, class Kernel, size_t... Index, class... Args>
class AliasTask<Run, Kernel, std::index_sequence<Index...>, Args...> {
 public:
  static constexpr size_t kOutputs = sizeof...(Index);

  AliasTask(const char* name, Kernel* kernel, LaunchDtypes dtypes, runtime::Aliases& aliases,
            const std::array<at::Tensor, kOutputs>& outputs, Args... args)
      : name_(name),
        kernel_(kernel),
        dtypes_(dtypes),
        owned_(aliases, kAccesses.data(), args...),
        outputs_{aliases.as(orAccessWrite).record(outputs[Index])...} {}

  void operator()(runtime::AliasStorages& storages) {
    std::array<at::Tensor, kOutputs> outputs{outputs_[Index].open(storages)...};
    const c10::ScalarType dtype = dtypes_.for_integers();
    const auto run = [&]<class... T>(T&&... argument) {
      Run()(name_, kernel_, outputs, converted(std::forward<T>(argument), dtype)...);
    };
    owned_.apply(run, storages);
  }

 private:
  static constexpr std::array<orAccess, sizeof...(Args)> kAccesses = accesses_by_type<Args...>();

  const char* name_;
  Kernel* kernel_;
  LaunchDtypes dtypes_;
  OwnedArgumentsOf<Args...> owned_;
  std::array<runtime::AliasRecord, kOutputs> outputs_;
};

// Launches Run()(name, kernel, outputs, args...) on aliases, on the current stream of the device. Outputs may be
// undefined. `computed` is the dtype in which an iterator's kernel computes. A failure of the kernel is the device's or
// the caller's as launch_judged() tells.
template <class Run, class Kernel, size_t kOutputs, class... Args>
void launch_on_aliases(const char* name, c10::Device device, Hears when, Kernel* kernel,
                       const std::array<at::Tensor, kOutputs>& outputs, std::optional<c10::ScalarType> computed,
                       Args... args) {
  using Task = AliasTask<Run, Kernel, std::make_index_sequence<kOutputs>, Args...>;
  const auto make = [&](runtime::Aliases& aliases) {
    return Task(name, kernel, LaunchDtypes(computed), aliases, outputs, args...);
  };
  launch_judged(name, device, when, make, args..., at::TensorList(outputs));
}

}  // namespace openreg::ops
