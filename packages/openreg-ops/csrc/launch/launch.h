// SPDX-License-Identifier: BSD-3-Clause
// From an operator to the device: launch(op, device, kernel, arguments...) runs `kernel(arguments...)` on aliases of
// its tensors, on the current stream, when the work before has run. From above to below:
//   launch()             an operator that is written by hand; its kernel's types say what it writes
//   launch_owned()       the same where a schema says it: forms in place, lists of tensors
//   launch_on_aliases()  an operator whose outputs the kernel must leave as they are laid out (launch/alias_task.h)
//   launch_judged()      all of these: asks whose a failure would be, waits if it is the caller's (launch/failure.h)
//   runtime::launch()    enqueues a callable; launch_raw() as well, with addresses (launch/raw_operands.h)
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch/access.h"
#include "launch/alias_task.h"
#include "launch/arguments.h"
#include "launch/failure.h"
#include "support/device_check.h"
#include "support/outputs.h"

namespace openreg::ops {

// An operator as its launches know it.
struct Operator {
  const char* name;  // as the dispatcher has it: "aten::addmm". Lives for ever
  KernelRule rule = {};
};

using MaybeTensor = const std::optional<at::Tensor>&;

// The device of an operator's operands, made the current one while this lives. Throws c10::Error that names the
// operator where operands are on several devices, or none is on an openreg device.
class OperandsDevice {
 public:
  template <class... Operands>
  explicit OperandsDevice(const Operator& op, const Operands&... operands)
      : device_(device_of(op.name, operands...)), current_(device_) {
    check_same_device(op.name, device_, operands...);
  }

  operator c10::Device() const { return device_; }
  c10::DeviceIndex index() const { return device_.index(); }

 private:
  c10::Device device_;
  CurrentDevice current_;
};

// When the caller hears of a failure of the operator's kernel (launch/failure.h), which computes in the dtype of the
// first operand.
template <class... Args>
Hears hears_of(const Operator& op, const Args&... args) {
  return hears(op.rule, may_refuse(op.name, op.rule, std::nullopt, args...), std::nullopt, args...);
}

// What such a launch holds.
template <class Kernel, class... Parameters>
struct OwnedCall {
  Kernel kernel;
  OwnedArgumentsOf<Parameters...> arguments;

  void operator()(runtime::AliasStorages& storages) { arguments.apply(kernel, storages); }
};

// Launches `kernel(args...)`, which does with each argument what `accesses` says; the launch owns them in the forms of
// launch/arguments.h for Parameters. A 0-dim tensor on the CPU is taken as a number.
template <class... Parameters, class Kernel>
void launch_owned(const Operator& op, c10::Device device, Hears when, const orAccess* accesses, Kernel kernel,
                  const std::remove_reference_t<Parameters>&... args) {
  const auto make = [&](runtime::Aliases& aliases) {
    return OwnedCall<Kernel, Parameters...>{kernel, {aliases, accesses, args...}};
  };
  launch_judged(op.name, device, when, make, args...);
}

// Launches `kernel(args...)`. The types of the kernel's parameters say how the launch owns each argument and what the
// kernel writes (launch/access.h); `when`, when the caller hears of its failure.
template <class Result, class... Parameters, class... Args>
void launch(const Operator& op, c10::Device device, Hears when, Result (*kernel)(Parameters...), const Args&... args) {
  constexpr std::array<orAccess, sizeof...(Parameters)> kAccesses = accesses_by_type<Parameters...>();
  launch_owned<Parameters...>(op, device, when, kAccesses.data(), kernel, args...);
}
// The same where the operator's rule says when.
template <class Result, class... Parameters, class... Args>
void launch(const Operator& op, c10::Device device, Result (*kernel)(Parameters...), const Args&... args) {
  launch(op, device, hears_of(op, args...), kernel, args...);
}

// A new tensor on the current device if it is wanted, else an undefined one, which kernels leave alone.
inline at::Tensor output_if(bool wanted, c10::IntArrayRef sizes, const c10::TensorOptions& options) {
  return wanted ? make_output(sizes, {}, options) : at::Tensor();
}

// An optional operand as kernels of PyTorch take it: undefined where it is absent.
inline at::Tensor value_or_undefined(MaybeTensor tensor) {
  return tensor.value_or(at::Tensor());
}

inline bool is_given(MaybeTensor tensor) {
  return tensor.has_value() && tensor->defined();
}

}  // namespace openreg::ops
