// SPDX-License-Identifier: BSD-3-Clause
// Launching operators whose outputs exist before the launch: in-place forms, lists of tensors, fused optimisers.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include "common/arguments.h"
#include "common/device_check.h"
#include "common/outputs.h"
#include "common/structured.h"
#include "openreg/runtime/launch.h"

namespace openreg::ops {

// Launches `kernel(args...)` on aliases of its tensors, on the current stream of their device. A 0-dim tensor on the
// CPU is taken as a number.
template <class Kernel, class... Args>
void launch_kernel(const char* name, c10::Device device, Kernel kernel, Args... args) {
  runtime::Aliases aliases(name);
  std::tuple<Owned<Args>...> owned{Owned<Args>(args, aliases)...};
  runtime::launch(name, device.index(), [kernel, owned = std::move(owned)]() mutable {
    std::apply([&](auto&... argument) { kernel(argument.get()...); }, owned);
  });
}

// An operator that writes into its operands and returns the first one or nothing. Its CPU kernel has the same
// signature.
template <class Operator, class Schema = SchemaOf<Operator>>
struct InplaceLaunch;

template <class Operator, class Result, class... Args>
struct InplaceLaunch<Operator, Result(Args...)> {
  template <Result (*kKernel)(Args...)>
  static Result call(Args... args) {
    const c10::Device device = device_of(Operator::name, args...);
    check_same_device_or_scalar(Operator::name, device, args...);
    const CurrentDevice current(device);
    launch_kernel<Result (*)(Args...), Args...>(Operator::name, device, kKernel, args...);
    if constexpr (!std::is_void_v<Result>) {
      return std::get<0>(std::tuple<Args...>(args...));
    }
  }
};

// An operator on lists that gives a list of tensors like its first operand. Where their dtypes may differ, for the
// operands are not all of one floating-point dtype, PyTorch's composite form runs, one launch per tensor.
template <class Operator, class Schema = SchemaOf<Operator>>
struct ListLaunch;

template <class Operator, class... Args>
struct ListLaunch<Operator, std::vector<at::Tensor>(at::TensorList, Args...)> {
  template <std::vector<at::Tensor> (*kComposite)(at::TensorList, Args...)>
  static std::vector<at::Tensor> call(at::TensorList self, Args... args) {
    const c10::Device device = device_of(Operator::name, self, args...);
    const CurrentDevice current(device);
    if (!one_floating_dtype(self, args...)) {
      return kComposite(self, args...);
    }
    check_same_device_or_scalar(Operator::name, device, self, args...);
    std::vector<at::Tensor> outputs;
    outputs.reserve(self.size());
    for (const at::Tensor& tensor : self) {
      outputs.push_back(make_output_like(tensor));
    }
    const auto kernel = [](at::TensorList results, at::TensorList operands, auto&&... rest) {
      const std::vector<at::Tensor> computed = kComposite(operands, rest...);
      for (size_t i = 0; i < computed.size(); ++i) {
        results[i].copy_(computed[i]);
      }
    };
    launch_kernel<decltype(kernel), at::TensorList, at::TensorList, Args...>(Operator::name, device, kernel, outputs,
                                                                             self, args...);
    return outputs;
  }

 private:
  static bool one_floating_dtype(at::TensorList self, const Args&... args) {
    bool same = !self.empty() && at::isFloatingType(self[0].scalar_type());
    const auto visit = [&](const at::Tensor& tensor) { same = same && tensor.scalar_type() == self[0].scalar_type(); };
    for_each_tensor(visit, self);
    (for_each_tensor(visit, args), ...);
    return same;
  }
};

}  // namespace openreg::ops

// OPENREG_INPLACE(library, fill__Scalar, at::cpu::fill_): registers at::_ops::fill__Scalar with that CPU kernel.
#define OPENREG_INPLACE(library, op, kernel)                              \
  (library).impl(::openreg::ops::registered_name<at::_ops::op>().c_str(), \
                 TORCH_FN((::openreg::ops::InplaceLaunch<at::_ops::op>::call<kernel>)))

// The same for an operator on lists that returns a list.
#define OPENREG_LIST(library, op, composite)                              \
  (library).impl(::openreg::ops::registered_name<at::_ops::op>().c_str(), \
                 TORCH_FN((::openreg::ops::ListLaunch<at::_ops::op>::call<composite>)))
