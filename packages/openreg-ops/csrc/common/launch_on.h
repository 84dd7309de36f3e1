// SPDX-License-Identifier: BSD-3-Clause
// Launching operators whose outputs exist before the launch: in-place forms, lists of tensors, fused optimisers.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/access.h"
#include "common/arguments.h"
#include "common/device_check.h"
#include "common/failure.h"
#include "common/outputs.h"
#include "common/overlap.h"
#include "common/structured.h"

namespace openreg::ops {

// Launches `kernel(args...)` on aliases of its tensors, on the current stream of their device. A 0-dim tensor on the
// CPU is taken as a number. The caller hears of a failure as it says. Access tells what the kernel does with each
// argument (see access.h).
template <class Access, class Kernel, class... Args>
void launch_with_access(const char* name, c10::Device device, Hears when, Kernel kernel, Args... args) {
  runtime::Aliases aliases(name);
  const auto make = [&] {
    return [kernel, owned = own<Access, Args...>(aliases, args...)]() mutable {
      runtime::AliasStorages storages;
      std::apply([&](auto&... argument) { kernel(argument.get(storages)...); }, owned);
    };
  };
  launch_judged(name, device, when, make, aliases.operands(), args...);
}

// The same for a kernel whose parameters say by their types what it writes.
template <class Kernel, class... Args>
void launch_kernel(const char* name, c10::Device device, Hears when, Kernel kernel, Args... args) {
  launch_with_access<AccessByType, Kernel, Args...>(name, device, when, kernel, args...);
}

// The same as the rule of the operator `name` says.
template <class Kernel, class... Args>
void launch_kernel(const char* name, c10::Device device, Kernel kernel, Args... args) {
  launch_kernel<Kernel, Args...>(name, device, hears_of(name, args...), kernel, args...);
}

// An operator that writes into its operands and returns the first one or nothing. Its CPU kernel has the same
// signature.
template <class Operator, class Schema = SchemaOf<Operator>>
struct InplaceLaunch;

template <class Operator, class Result, class First, class... Args>
struct InplaceLaunch<Operator, Result(First, Args...)> {
  template <Result (*kKernel)(First, Args...), SelfOverlap kSelfOverlap = SelfOverlap::kRefused>
  static Result call(First first, Args... args) {
    const c10::Device device = device_of(Operator::name, first, args...);
    check_same_device_or_scalar(Operator::name, device, first, args...);
    if constexpr (std::is_same_v<First, at::Tensor&> && kSelfOverlap == SelfOverlap::kRefused) {
      at::assert_no_internal_overlap(first);
    }
    const CurrentDevice current(device);
    launch_with_access<AccessBySchema<Operator>, Result (*)(First, Args...), First, Args...>(
        Operator::name, device, hears_of(Operator::name, first, args...), kKernel, first, args...);
    if constexpr (!std::is_void_v<Result>) {
      return first;
    }
  }
};

// Whether one launch can work on a whole list: all its tensors are dense, on one device, of one floating-point dtype.
inline bool is_uniform(at::TensorList list) {
  if (list.empty() || !at::isFloatingType(list[0].scalar_type())) {
    return false;
  }
  return std::all_of(list.begin(), list.end(), [&](const at::Tensor& tensor) {
    return tensor.device() == list[0].device() && tensor.scalar_type() == list[0].scalar_type() &&
           tensor.is_non_overlapping_and_dense();
  });
}

// Whether a further argument leaves shapes and dtypes of a uniform list as they are.
inline bool fits(at::TensorList list, at::TensorList other) {
  const auto alike = [](const at::Tensor& a, const at::Tensor& b) {
    return a.device() == b.device() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
  };
  return std::equal(list.begin(), list.end(), other.begin(), other.end(), alike);
}
inline bool fits(at::TensorList list, const at::Tensor& number) {
  return number.dim() == 0 && number.scalar_type() == list[0].scalar_type() &&
         (number.device().is_cpu() || number.device() == list[0].device());
}
inline bool fits(at::TensorList /*list*/, const at::Scalar& number) {
  return !number.isComplex();
}
inline bool fits(at::TensorList list, at::ArrayRef<at::Scalar> numbers) {
  return numbers.size() == list.size() &&
         std::none_of(numbers.begin(), numbers.end(), [](const at::Scalar& number) { return number.isComplex(); });
}
inline bool fits(at::TensorList /*list*/, bool /*option*/) {
  return true;
}

// An operator on lists, in one launch where the lists are uniform; else PyTorch's composite form runs on the host, one
// launch per tensor, and finds the dtypes and the mistakes.
template <class Operator, class Schema = SchemaOf<Operator>>
struct ListLaunch;

// Gives a list of tensors like its first operand.
template <class Operator, class... Args>
struct ListLaunch<Operator, std::vector<at::Tensor>(at::TensorList, Args...)> {
  template <std::vector<at::Tensor> (*kComposite)(at::TensorList, Args...)>
  static std::vector<at::Tensor> call(at::TensorList self, Args... args) {
    const c10::Device device = device_of(Operator::name, self, args...);
    const CurrentDevice current(device);
    if (!is_uniform(self) || !(fits(self, args) && ...)) {
      return kComposite(self, args...);
    }
    std::vector<at::Tensor> outputs;
    outputs.reserve(self.size());
    for (const at::Tensor& tensor : self) {
      outputs.push_back(make_output(tensor.sizes(), tensor.strides(), tensor.options()));
    }
    const auto kernel = [](at::TensorList results, at::TensorList operands, auto&&... rest) {
      const std::vector<at::Tensor> computed = kComposite(operands, rest...);
      for (size_t i = 0; i < computed.size(); ++i) {
        results[i].copy_(computed[i]);
      }
    };
    launch_kernel<decltype(kernel), OutputList, at::TensorList, Args...>(Operator::name, device, kernel,
                                                                         OutputList{outputs}, self, args...);
    return outputs;
  }
};

// Writes into the tensors of its first operand.
template <class Operator, class... Args>
struct ListLaunch<Operator, void(at::TensorList, Args...)> {
  template <void (*kComposite)(at::TensorList, Args...)>
  static void call(at::TensorList self, Args... args) {
    const c10::Device device = device_of(Operator::name, self, args...);
    const CurrentDevice current(device);
    if (!is_uniform(self) || !(fits(self, args) && ...)) {
      kComposite(self, args...);
      return;
    }
    launch_with_access<AccessBySchema<Operator>, void (*)(at::TensorList, Args...), at::TensorList, Args...>(
        Operator::name, device, hears_of(Operator::name, self, args...), kComposite, self, args...);
  }
};

}  // namespace openreg::ops

// OPENREG_INPLACE(library, fill__Scalar, at::cpu::fill_): registers at::_ops::fill__Scalar with that CPU kernel.
#define OPENREG_INPLACE(library, op, kernel)                              \
  (library).impl(::openreg::ops::registered_name<at::_ops::op>().c_str(), \
                 &::openreg::ops::InplaceLaunch<at::_ops::op>::call<kernel>)

// The same for an operator on lists of tensors, with PyTorch's composite form.
#define OPENREG_LIST(library, op, composite)                              \
  (library).impl(::openreg::ops::registered_name<at::_ops::op>().c_str(), \
                 &::openreg::ops::ListLaunch<at::_ops::op>::call<composite>)
