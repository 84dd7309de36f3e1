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

#include "registration/overloads.h"
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

// The outputs of an operator with this functional signature, which a meta function of this backend specifies. The
// kernel has the signature of the functional or of the out= overload.
template <class Signature, class KernelSignature>
struct UnstructuredOutputs;
template <class Result, class... Args, class KernelSignature>
struct UnstructuredOutputs<Result(Args...), KernelSignature> {
  static constexpr size_t kOutputs = kOutputsOf<Result(Args...)>;
  static constexpr bool is_iterator = false;
  using Kernel = KernelSignature;
  using Runner = std::conditional_t<kIsFunctional<Kernel>, RunFunctional, RunOutKernel>;
  using Tensors = std::array<at::Tensor, kOutputs>;

  std::array<OutputSpec, kOutputs> (*describe)(Args...);  // call_meta() for the meta function

  template <auto kMetaFunction>
  static std::array<OutputSpec, kOutputs> call_meta(Args... args) {
    if constexpr (std::is_same_v<decltype(kMetaFunction(args...)), OutputSpec>) {
      return {kMetaFunction(args...)};
    } else {
      return kMetaFunction(args...);
    }
  }

  // Returns no dtype, which means that the kernel computes in the dtype of the first operand.
  std::optional<c10::ScalarType> prepare(const Operator& op, OverloadKind kind, c10::Device device, Tensors& outputs,
                                         Tensors& instead, Args... args) const {
    const std::array<OutputSpec, kOutputs> specs = describe(args...);
    if (kind == OverloadKind::kFunctional) {
      for (size_t i = 0; i < kOutputs; ++i) {
        outputs[i] = allocate_output(specs[i], device);
      }
    } else if constexpr (!kIsFunctional<Kernel>) {
      for (size_t i = 0; i < kOutputs; ++i) {
        check_same_device(op.name, device, outputs[i]);
        check_internal_overlap(outputs[i], specs[i]);  // before the resize, which would end the overlap
        check_operands_keep_size(outputs[i], specs[i].sizes, args...);
        prepare_out_argument(outputs[i], specs[i], device);
        check_overlap(outputs[i], specs[i], args...);
        const bool shares = specs[i].elsewhere && shares_storage(outputs[i], args...);
        instead[i] = make_instead(outputs[i], specs[i], shares, device);
      }
    }
    return std::nullopt;
  }

  // Does nothing, because prepare() has checked the overlaps, before it resized the outputs.
  void check(const Operator& /*op*/, OverloadKind /*kind*/, const Tensors& /*outputs*/, Args... /*args*/) const {}
};

// Launches `kernel(args..., outputs...)` as an out= kernel of unstructured(), for overloads that are written by hand.
// The kernel may resize its outputs, some of which may be undefined. The types of the kernel's parameters decide how
// the launch owns each argument.
template <size_t kOutputs, class Result, class... Parameters, class... Args>
void launch_out_kernel(const Operator& op, c10::Device device, Result (*kernel)(Parameters...),
                       const std::array<at::Tensor, kOutputs>& outputs, const Args&... args) {
  [&]<size_t... Index>(std::index_sequence<Index...>) {
    launch_with_outputs<RunOutKernel, Result(Parameters...), kOutputs,
                        std::tuple_element_t<Index, std::tuple<Parameters...>>...>(
        op, device, sync_policy_of(op, args...), kernel, outputs, std::nullopt, args...);
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
  Describe* describe;  // call_meta() for the meta function

  template <auto kMetaFunction>
  static auto call_meta(Args... args) {
    return kMetaFunction(args...);
  }

  Result operator()(Args... args) const {
    auto& output = std::get<kOutput>(std::tie(args...));  // may be a list of them
    const c10::Device device = device_of(op.name, args...);
    check_same_device_or_scalar(op.name, device, args...);
    check_same_device(op.name, device, output);  // a number on the host can be read, but not written
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
};

// Returns the operator that Functional (at::_ops) names. A file that extends an overload keeps it as a constant, and
// calls its functional() and out().
template <auto kMetaFunction, class Functional, class Kernel>
constexpr auto unstructured_operator(Kernel* kernel, const KernelTraits& traits = {}) {
  using Outputs = UnstructuredOutputs<SchemaOf<Functional>, Kernel>;
  return Overloads<SchemaOf<Functional>, Outputs>{
      {Functional::name, traits}, kernel, {&Outputs::template call_meta<kMetaFunction>}};
}

// Same as `unstructured_operator()`, except that it returns the one overload Op (at::_ops), which writes into its
// arguments. A file calls the constant itself.
template <auto kMetaFunction, class Op>
constexpr auto unstructured_overload(SchemaOf<Op>* kernel, const KernelTraits& traits = {}) {
  using Overload = UnstructuredOverload<SchemaOf<Op>>;
  return Overload{
      {Op::name, traits}, kAccessesOf<Op, SchemaOf<Op>>.data(), kernel, &Overload::template call_meta<kMetaFunction>};
}

// Registers the overload Op (at::_ops), with a kernel of its signature.
template <auto kMetaFunction, class Op>
void unstructured(torch::Library& library, SchemaOf<Op>* kernel, const KernelTraits& traits = {}) {
  if constexpr (kIsFunctional<SchemaOf<Op>>) {
    static const auto forever = unstructured_operator<kMetaFunction, Op>(kernel, traits);
    register_member<Op, &decltype(forever)::functional>(library, traits, forever);
  } else {
    static const auto forever = unstructured_overload<kMetaFunction, Op>(kernel, traits);
    register_member<Op, &decltype(forever)::operator()>(library, traits, forever);
  }
}

// Registers the functional and the out= overload, with a kernel of the signature of the out= overload.
template <auto kMetaFunction, class Functional>
void unstructured(torch::Library& library, OutSignature<SchemaOf<Functional>>* kernel,
                  const KernelTraits& traits = {}) {
  static const auto forever = unstructured_operator<kMetaFunction, Functional>(kernel, traits);
  register_overloads<Functional>(library, forever);
}

}  // namespace openreg::ops
