// SPDX-License-Identifier: BSD-3-Clause
// A template that registers operators that have a CPU kernel but no structured meta function in PyTorch.
// csrc/mechanisms/unstructured.cpp does the same by hand, as an example.
//
//   unstructured<meta_take, op::take>(library, cpu::take_outf);
//
// `meta_take` is a meta function of this backend. It takes the operator's own arguments, checks them with PyTorch's
// messages, and returns an OutputSpec (sizes, strides and dtype) for each output. A meta function runs on the host, in
// the call, and may read everything except the values of tensors. It also issues the warnings for the user, because the
// kernel runs later, on an engine, where warnings are lost. support/output_spec.h has ready-made meta functions.
//
// The kernel has the signature of one of the overloads. An out= kernel writes straight into the output, and the out=
// overload is registered as well. The result of a functional kernel is put into the output (support/output_redirect.h).
// If the named overload is out=, because PyTorch derives the functional one from it, the meta function takes the output
// as its last argument, for its dtype. If it is in-place, the meta function returns nothing and only checks the
// arguments; `unchecked` is for overloads that have nothing to check. The functions for operator files are at the end.
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch/launch.h"
#include "registration/registry.h"
#include "support/output_redirect.h"
#include "support/output_spec.h"

namespace openreg::ops {

// Calls `kernel(args..., outputs...)` on aliases (CPU tensors over the bytes of device tensors). The kernel may resize
// its outputs, but an alias must keep its layout, because a graph may execute the launch again. So the kernel gets
// other tensors over the same memory. A result that the kernel put elsewhere is copied to the alias. Throws c10::Error
// for a result of another shape than the host expected.
struct RunOutKernel {
  template <class Kernel, size_t kOutputs, class... Args>
  void operator()(const char* name, Kernel* kernel, std::array<at::Tensor, kOutputs>& outputs, Args&&... args) const {
    std::array<at::Tensor, kOutputs> results;
    for (size_t i = 0; i < kOutputs; ++i) {
      if (outputs[i].defined()) {
        results[i] = outputs[i].alias();  // a separate tensor, which the kernel may resize
      }
    }
    std::apply([&](auto&... result) { kernel(std::forward<Args>(args)..., result...); }, results);
    for (size_t i = 0; i < kOutputs; ++i) {
      put_result(name, results[i], outputs[i]);
    }
  }
};

// Same as `RunOutKernel`, except that the kernel returns its results. An OutputRedirectGuard makes the kernel allocate
// them in the memory of the outputs if possible, and copies the others there.
struct RunFunctional {
  template <class Kernel, size_t kOutputs, class... Args>
  void operator()(const char* name, Kernel* kernel, std::array<at::Tensor, kOutputs>& outputs, Args&&... args) const {
    [&]<size_t... Index>(std::index_sequence<Index...>) {
      OutputRedirectGuard in_place({outputs[Index]...});
      const auto results = as_tuple(kernel(std::forward<Args>(args)...));
      (check_result(name, std::get<Index>(results), outputs[Index]), ...);
      in_place.put({std::get<Index>(results)...});
    }(std::make_index_sequence<kOutputs>());
  }

 private:
  static std::tuple<at::Tensor> as_tuple(at::Tensor&& result) { return {std::move(result)}; }
  template <class... Results>
  static std::tuple<Results...> as_tuple(std::tuple<Results...>&& results) {
    return std::move(results);
  }
};

// An operator with this functional signature, a meta function (`describe`) and a kernel of the signature `Kernel`. Its
// functional and out= overload share one object.
template <class Signature, class Kernel, class Indices = std::make_index_sequence<kOutputsOf<Signature>>>
struct UnstructuredOp;

template <class Result, class... Args, class Kernel, size_t... Index>
struct UnstructuredOp<Result(Args...), Kernel, std::index_sequence<Index...>> {
  static constexpr size_t kOutputs = sizeof...(Index);
  using OutResult = OutResultOf<kOutputs>;
  using Outputs = std::array<at::Tensor, kOutputs>;
  using Specs = std::array<OutputSpec, kOutputs>;
  using Runner = std::conditional_t<std::is_same_v<Kernel, Result(Args...)>, RunFunctional, RunOutKernel>;

  Operator op;
  Kernel* kernel;
  Specs (*describe)(Args...);

  Result functional(Args... args) const {
    const OperandDeviceGuard device(op, args...);
    const Specs specs = describe(args...);
    Outputs outputs{allocate_output(specs[Index], device)...};
    launch(device, outputs, args...);
    return Result(std::move(outputs[Index])...);
  }

  OutResult out(Args... args, OutputReference<Index>... outputs) const {
    const OperandDeviceGuard device(op, args..., outputs...);
    const Specs specs = describe(args...);
    (check_internal_overlap(outputs, specs[Index]), ...);  // before the resize, which would end the overlap
    (check_operands_keep_size(outputs, specs[Index].sizes, args...), ...);
    (prepare_out_argument(outputs, specs[Index], device), ...);
    (check_overlap(outputs, specs[Index], args...), ...);
    const Outputs instead{
        make_instead(outputs, specs[Index], specs[Index].elsewhere && shares_storage(outputs, args...), device)...};
    launch(device, {instead[Index].defined() ? instead[Index] : outputs...}, args...);
    (put_back(outputs, instead[Index]), ...);
    return OutResult(outputs...);
  }

  // The overloads with the signatures that the dispatcher calls. `state` points to the operator.
  static Result enter_functional(const void* state, Args... args) {
    return static_cast<const UnstructuredOp*>(state)->functional(args...);
  }
  static OutResult enter_out(const void* state, Args... args, OutputReference<Index>... outputs) {
    return static_cast<const UnstructuredOp*>(state)->out(args..., outputs...);
  }

 private:
  static void put_back(at::Tensor& given, const at::Tensor& computed) {
    if (C10_UNLIKELY(computed.defined())) {
      given.copy_(computed);
    }
  }

  void launch(c10::Device device, const Outputs& outputs, Args... args) const {
    launch_on_aliases<Runner, Kernel, kOutputs, Args...>(op.name, device, sync_policy_of(op, args...), kernel, outputs,
                                                         std::nullopt, args...);
  }
};

// Launches `kernel(args..., outputs...)` as the kernel of an UnstructuredOp, for overloads that are written by hand.
// The kernel may resize its outputs, some of which may be undefined. The types of the kernel's parameters decide how
// the launch owns each argument.
template <size_t kOutputs, class Result, class... Parameters, class... Args>
void launch_out_kernel(const Operator& op, c10::Device device, Result (*kernel)(Parameters...),
                       const std::array<at::Tensor, kOutputs>& outputs, const Args&... args) {
  [&]<size_t... Index>(std::index_sequence<Index...>) {
    launch_on_aliases<RunOutKernel, Result(Parameters...), kOutputs,
                      std::tuple_element_t<Index, std::tuple<Parameters...>>...>(
        op.name, device, sync_policy_of(op, args...), kernel, outputs, std::nullopt, args...);
  }(std::index_sequence_for<Args...>());
}

// One overload of an operator that writes into its arguments: out= with one output, or in-place.
template <class Signature>
struct UnstructuredOverload;
template <class Result, class... Args>
struct UnstructuredOverload<Result(Args...)> {
  static constexpr bool kWritesFirst = kIsInplace<Result(Args...)>;
  static constexpr size_t kOutput = kWritesFirst ? 0 : sizeof...(Args) - 1;
  using Describe = std::conditional_t<kWritesFirst, void, OutputSpec>(Args...);

  Operator op;
  const orAccess* accesses;  // one for each argument
  Result (*kernel)(Args...);
  Describe* describe;

  Result operator()(Args... args) const {
    auto& output = std::get<kOutput>(std::tie(args...));  // may be a list of them
    const c10::Device device = device_of(op.name, args...);
    check_same_device_or_scalar(op.name, device, args...);
    const CurrentDeviceGuard current(device);
    if constexpr (!kWritesFirst) {
      const OutputSpec spec = describe(args...);
      prepare_out_argument(output, spec, device);
      check_internal_overlap(output, spec);  // after the resize, because it ends the overlap of an expanded tensor
    } else {
      describe(args...);
      if constexpr (std::is_same_v<decltype(output), at::Tensor&>) {
        if (!op.traits.expands) {
          at::assert_no_internal_overlap(output);
        }
      }
    }
    launch_owned<Args...>(op, device, sync_policy_of(op, args...), accesses, kernel, args...);
    if constexpr (!std::is_void_v<Result>) {
      return output;
    }
  }

  // The overload with the signature that the dispatcher calls. `state` points to the UnstructuredOverload.
  static Result enter(const void* state, Args... args) {
    return (*static_cast<const UnstructuredOverload*>(state))(args...);
  }
};

// Return a meta function as a pointer to a function of these arguments. That of plain_description(), for functional
// overloads, returns an array.
template <auto kMetaFunction, class Result, class... Args>
constexpr auto plain_description(Result (*)(Args...)) {
  return +[](Args... args) {
    if constexpr (std::is_same_v<decltype(kMetaFunction(args...)), OutputSpec>) {
      return std::array<OutputSpec, 1>{kMetaFunction(args...)};
    } else {
      return kMetaFunction(args...);
    }
  };
}
template <auto kMetaFunction, class Result, class... Args>
constexpr auto plain_check(Result (*)(Args...)) {
  return +[](Args... args) { return kMetaFunction(args...); };
}

template <class Signature>
constexpr Signature* kSignature = nullptr;

// Returns the operator that Functional (at::_ops) names. A file that extends an overload keeps it as a constant, and
// calls its functional() and out().
template <auto kMetaFunction, class Functional, class Kernel>
constexpr auto unstructured_operator(Kernel* kernel, const KernelTraits& traits = {}) {
  using Signature = SchemaOf<Functional>;
  return UnstructuredOp<Signature, Kernel>{
      {Functional::name, traits}, kernel, plain_description<kMetaFunction>(kSignature<Signature>)};
}

// Same as `unstructured_operator()`, except that it returns the one overload Op (at::_ops), which writes into its
// arguments. A file calls the constant itself.
template <auto kMetaFunction, class Op>
constexpr auto unstructured_overload(SchemaOf<Op>* kernel, const KernelTraits& traits = {}) {
  using Signature = SchemaOf<Op>;
  return UnstructuredOverload<Signature>{
      {Op::name, traits}, kAccessesOf<Op, Signature>.data(), kernel, plain_check<kMetaFunction>(kSignature<Signature>)};
}

// Registers the overload Op (at::_ops), with a kernel of its signature.
template <auto kMetaFunction, class Op>
void unstructured(torch::Library& library, SchemaOf<Op>* kernel, const KernelTraits& traits = {}) {
  using Signature = SchemaOf<Op>;
  if constexpr (kIsFunctional<Signature>) {
    static const auto forever = unstructured_operator<kMetaFunction, Op>(kernel, traits);
    register_stateful<Op, Signature>(library, traits, &forever, &decltype(forever)::enter_functional);
  } else {
    static const auto forever = unstructured_overload<kMetaFunction, Op>(kernel, traits);
    register_stateful<Op, Signature>(library, traits, &forever, &decltype(forever)::enter);
  }
}

// Registers the functional and the out= overload, with a kernel of the signature of the out= overload.
template <auto kMetaFunction, class Functional>
void unstructured(torch::Library& library, OutSignature<SchemaOf<Functional>>* kernel,
                  const KernelTraits& traits = {}) {
  using Signature = SchemaOf<Functional>;
  using Out = OutSignature<Signature>;
  static const auto forever = unstructured_operator<kMetaFunction, Functional>(kernel, traits);
  using Registered = decltype(forever);
  register_stateful<Functional, Signature>(library, traits, &forever, &Registered::enter_functional);
  register_out_entry<Functional, Out>(library, &forever, &Registered::enter_out);
}

}  // namespace openreg::ops
