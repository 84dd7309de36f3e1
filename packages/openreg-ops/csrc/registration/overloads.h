// SPDX-License-Identifier: BSD-3-Clause
// The overloads of an operator: functional, out= and in-place. Their outputs are new tensors, tensors of the caller, or
// the first operand. A call of each is otherwise the same (run() below): it makes the operands' device current, checks
// the operands, prepares the outputs, and launches the kernel.
//
// Operators differ in how outputs are prepared: PyTorch's meta function requests them (structured.h), or a meta
// function of this backend specifies them (unstructured.h). Each of these headers has a class for that, with these
// members:
//
//   Kernel       the signature of the kernel
//   Runner       a functor that calls the kernel on aliases (CPU tensors over the bytes of device tensors)
//   is_iterator  true if a TensorIterator checks the operands' devices
//   prepare()    allocates the outputs, or checks and resizes those that are there already
//   check()      throws what the kernel would throw after its own warnings (Hooks::check_outputs issues those)
#pragma once

#include <array>
#include <optional>
#include <type_traits>
#include <utility>

#include "launch/launch.h"
#include "registration/registry.h"

namespace openreg::ops {

// The overload that is called. It determines whether an output is new, an out= tensor or an operand.
enum class OverloadKind { kFunctional, kOut, kInplace };

// An operator with this functional signature. Its overloads share one object. Index numbers the outputs.
template <class Signature, class Outputs, class Indices = std::make_index_sequence<kOutputsOf<Signature>>>
struct Overloads;

template <class Result, class... Args, class Outputs, size_t... Index>
struct Overloads<Result(Args...), Outputs, std::index_sequence<Index...>> {
  static constexpr size_t kOutputs = sizeof...(Index);
  using OutResult = OutResultOf<kOutputs>;
  using Kernel = typename Outputs::Kernel;
  using Tensors = std::array<at::Tensor, kOutputs>;

  // Optional additions of an operator. Each may be null.
  struct Hooks {
    // Runs in the call, before the meta function, for checks and warnings that the meta function lacks.
    void (*check)(Args...) = nullptr;
    // Runs after the meta function, for outputs that the kernel would reject.
    void (*check_outputs)(Args..., OutputReference<Index>...) = nullptr;
    // Launches another kernel and returns true. Returns false for operands that this kernel does not support, for which
    // `kernel` is launched.
    bool (*launch_own)(c10::Device, Args..., OutputReference<Index>...) = nullptr;
  };

  Operator op;
  Kernel* kernel;
  Outputs source;  // prepares the outputs
  Hooks hooks = {};

  Result functional(Args... args) const {
    Tensors outputs;
    run(OverloadKind::kFunctional, outputs, args...);
    return Result(std::move(outputs[Index])...);
  }

  // Requires that the kernel writes into its outputs. One that returns them cannot write into the caller's tensors.
  OutResult out(Args... args, OutputReference<Index>... given) const
    requires(!kIsFunctional<Kernel>)
  {
    Tensors outputs{given...};
    run(OverloadKind::kOut, outputs, args...);
    return OutResult(given...);
  }

  // Requires that the operator has one output, which is the first operand. `rest` are the other arguments.
  template <class... Rest>
  at::Tensor& inplace(at::Tensor& self, Rest... rest) const {
    Tensors outputs{self};
    run(OverloadKind::kInplace, outputs, self, rest...);
    return self;
  }

 private:
  void run(OverloadKind kind, Tensors& outputs, Args... args) const {
    const c10::Device device = device_of(op.name, args..., outputs[Index]...);
    if (!source.is_iterator) {  // a TensorIterator checks by itself, and accepts scalars on the CPU
      check_same_device(op.name, device, args...);
    }
    const CurrentDeviceGuard current(device);
    if (hooks.check != nullptr) {
      hooks.check(args...);
    }
    Tensors instead;  // the kernel writes into those that prepare() defines, and the results are copied to the outputs
    const std::optional<c10::ScalarType> computed = source.prepare(op, kind, device, outputs, instead, args...);
    if (hooks.check_outputs != nullptr) {
      hooks.check_outputs(args..., outputs[Index]...);
    }
    source.check(op, kind, outputs, args...);
    const SyncPolicy policy = sync_policy_for_dtype(computed, op, args...);
    if (hooks.launch_own != nullptr && policy == SyncPolicy::kAsync &&
        hooks.launch_own(device, args..., outputs[Index]...)) {
      return;
    }
    for (size_t i = 0; i < kOutputs; ++i) {
      if (C10_UNLIKELY(instead[i].defined())) {
        std::swap(outputs[i], instead[i]);
      }
    }
    launch_with_outputs<typename Outputs::Runner, Kernel, kOutputs, Args...>(op, device, policy, kernel, outputs,
                                                                             computed, args...);
    for (size_t i = 0; i < kOutputs; ++i) {
      if (C10_UNLIKELY(instead[i].defined())) {
        instead[i].copy_(outputs[i]);
      }
    }
  }
};

// Registers the functional overload of an operator, the out= overload, and the in-place overload if it is named.
// `forever` must never be destroyed.
template <class Functional, class... Inplace, class Signature, class Outputs>
void register_overloads(torch::Library& library, const Overloads<Signature, Outputs>& forever) {
  using Registered = Overloads<Signature, Outputs>;
  register_member<Functional, &Registered::functional>(library, forever.op.traits, forever);
  register_member<Functional, &Registered::out>(library, {}, forever, &register_out_overload);
  [[maybe_unused]] const auto add_inplace = [&]<class Op, class... Rest>(Op /*overload*/,
                                                                         at::Tensor& (*)(at::Tensor&, Rest...)) {
    static_assert(std::is_same_v<Signature, at::Tensor(const at::Tensor&, Rest...)>,
                  "not the in-place form of this operator");
    register_member<Op, &Registered::template inplace<Rest...>>(library, {}, forever);
  };
  (add_inplace(Inplace(), static_cast<SchemaOf<Inplace>*>(nullptr)), ...);
}

}  // namespace openreg::ops
