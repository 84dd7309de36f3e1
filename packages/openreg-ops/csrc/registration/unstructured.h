// SPDX-License-Identifier: BSD-3-Clause
// The short form for operators that have a CPU kernel but no meta function in C++; csrc/mechanisms/own_meta.cpp is what
// it abbreviates.
//
//   described<describe_take, op::take>(library, cpu::take_outf);
//
// What a meta function would say is said by a *description*: a function of the operator's own arguments that checks
// them, in PyTorch's words, and gives an OutputSpec for each output. A description runs on the host, on the calling
// line; it may look at everything but the values of tensors. The kernel runs later, on the engine, where nothing warns:
// what a user should be warned of is the description's to say, too. support/output_spec.h has ready ones.
//
// The kernel has the signature of one of the forms. An out= kernel writes straight into the output, and the out= form
// is declared as well; the result of a functional one is put there (support/results_in_place.h). Where the form that is
// named is out=, because PyTorch makes the other from it, the description takes the output as its last argument, for
// its dtype. Where it is in-place, the description gives nothing: it checks the arguments; `unchecked` is for those
// that have nothing to check. What a file calls stands last.
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch/launch.h"
#include "registration/registry.h"
#include "support/output_spec.h"
#include "support/results_in_place.h"

namespace openreg::ops {

// Calls `kernel(args..., outputs...)` on aliases. The alias of an output must be left as it was found, for another run,
// and hold the result; its owner goes by what the host expected.
struct RunDescribed {
  template <class Kernel, size_t kOutputs, class... Args>
  void operator()(const char* name, Kernel* kernel, std::array<at::Tensor, kOutputs>& outputs, Args&&... args) const {
    std::array<at::Tensor, kOutputs> results;
    for (size_t i = 0; i < kOutputs; ++i) {
      if (outputs[i].defined()) {
        results[i] = outputs[i].alias();  // a tensor of its own, which the kernel may resize
      }
    }
    std::apply([&](auto&... result) { kernel(std::forward<Args>(args)..., result...); }, results);
    for (size_t i = 0; i < kOutputs; ++i) {
      put_result(name, results[i], outputs[i]);
    }
  }
};

// The same for a kernel that returns its results.
struct RunFunctional {
  template <class Kernel, size_t kOutputs, class... Args>
  void operator()(const char* name, Kernel* kernel, std::array<at::Tensor, kOutputs>& outputs, Args&&... args) const {
    [&]<size_t... Index>(std::index_sequence<Index...>) {
      ResultsInPlace in_place({outputs[Index]...});
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

// An operator of this functional signature with a description, and a kernel of the signature `Kernel`.
template <class Signature, class Kernel, class Indices = std::make_index_sequence<kOutputsOf<Signature>>>
struct Described;

template <class Result, class... Args, class Kernel, size_t... Index>
struct Described<Result(Args...), Kernel, std::index_sequence<Index...>> {
  static constexpr size_t kOutputs = sizeof...(Index);
  using OutResult = OutResultOf<kOutputs>;
  using Outputs = std::array<at::Tensor, kOutputs>;
  using Specs = std::array<OutputSpec, kOutputs>;
  using Run = std::conditional_t<std::is_same_v<Kernel, Result(Args...)>, RunFunctional, RunDescribed>;

  Operator op;
  Kernel* kernel;
  Specs (*describe)(Args...);

  Result functional(Args... args) const {
    const OperandsDevice device(op, args...);
    const Specs specs = describe(args...);
    Outputs outputs{make_described(specs[Index], device)...};
    launch(device, outputs, args...);
    return Result(std::move(outputs[Index])...);
  }

  OutResult out(Args... args, OutputReference<Index>... outputs) const {
    const OperandsDevice device(op, args..., outputs...);
    const Specs specs = describe(args...);
    (check_internal_overlap(outputs, specs[Index]), ...);  // resizing would hide it
    (check_operands_keep_size(outputs, specs[Index].sizes, args...), ...);
    (prepare_described(outputs, specs[Index], device), ...);
    (check_overlap(outputs, specs[Index], args...), ...);
    const Outputs instead{
        make_instead(outputs, specs[Index], specs[Index].elsewhere && shares_storage(outputs, args...), device)...};
    launch(device, {instead[Index].defined() ? instead[Index] : outputs...}, args...);
    (put_back(outputs, instead[Index]), ...);
    return OutResult(outputs...);
  }

  // The forms as the dispatcher calls them. `state` is the operator.
  static Result enter_functional(const void* state, Args... args) {
    return static_cast<const Described*>(state)->functional(args...);
  }
  static OutResult enter_out(const void* state, Args... args, OutputReference<Index>... outputs) {
    return static_cast<const Described*>(state)->out(args..., outputs...);
  }

 private:
  static void put_back(at::Tensor& given, const at::Tensor& computed) {
    if (C10_UNLIKELY(computed.defined())) {
      given.copy_(computed);
    }
  }

  void launch(c10::Device device, const Outputs& outputs, Args... args) const {
    launch_on_aliases<Run, Kernel, kOutputs, Args...>(op.name, device, hears_of(op, args...), kernel, outputs,
                                                      std::nullopt, args...);
  }
};

// Launches `kernel(args..., outputs...)` as that of an operator with a description: it may resize what it gets as
// outputs, of which some may be undefined. For forms that are written by hand. The types of the kernel's parameters say
// how the launch owns each argument.
template <size_t kOutputs, class Result, class... Parameters, class... Args>
void launch_described(const Operator& op, c10::Device device, Result (*kernel)(Parameters...),
                      const std::array<at::Tensor, kOutputs>& outputs, const Args&... args) {
  [&]<size_t... Index>(std::index_sequence<Index...>) {
    launch_on_aliases<RunDescribed, Result(Parameters...), kOutputs,
                      std::tuple_element_t<Index, std::tuple<Parameters...>>...>(
        op.name, device, hears_of(op, args...), kernel, outputs, std::nullopt, args...);
  }(std::index_sequence_for<Args...>());
}

// An operator that exists in one form, which writes into its arguments: out= of one output, or in-place.
template <class Signature>
struct DescribedForm;
template <class Result, class... Args>
struct DescribedForm<Result(Args...)> {
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
    const CurrentDevice current(device);
    if constexpr (!kWritesFirst) {
      const OutputSpec spec = describe(args...);
      prepare_described(output, spec, device);
      check_internal_overlap(output, spec);  // an expanded tensor that was resized is none any more
    } else {
      describe(args...);
      if constexpr (std::is_same_v<decltype(output), at::Tensor&>) {
        if (!op.rule.expands) {
          at::assert_no_internal_overlap(output);
        }
      }
    }
    launch_owned<Args...>(op, device, hears_of(op, args...), accesses, kernel, args...);
    if constexpr (!std::is_void_v<Result>) {
      return output;
    }
  }

  static Result enter(const void* state, Args... args) { return (*static_cast<const DescribedForm*>(state))(args...); }
};

// A description as a plain function of the arguments of this form.
template <auto kDescribe, class Result, class... Args>
constexpr auto plain_description(Result (*)(Args...)) {
  return +[](Args... args) {
    if constexpr (std::is_same_v<decltype(kDescribe(args...)), OutputSpec>) {
      return std::array<OutputSpec, 1>{kDescribe(args...)};
    } else {
      return kDescribe(args...);
    }
  };
}
template <auto kDescribe, class Result, class... Args>
constexpr auto plain_check(Result (*)(Args...)) {
  return +[](Args... args) { return kDescribe(args...); };
}

template <class Signature>
constexpr Signature* kSignature = nullptr;

// The operator that Functional (at::_ops) names. A file that adds something to a form keeps it as a constant, and calls
// its functional() and out().
template <auto kDescribe, class Functional, class Kernel>
constexpr auto described_operator(Kernel* kernel, const KernelRule& rule = {}) {
  using Signature = SchemaOf<Functional>;
  return Described<Signature, Kernel>{
      {Functional::name, rule}, kernel, plain_description<kDescribe>(kSignature<Signature>)};
}

// The same of an operator that exists in one form, which writes into its arguments. A file calls the constant itself.
template <auto kDescribe, class Form>
constexpr auto described_form(SchemaOf<Form>* kernel, const KernelRule& rule = {}) {
  using Signature = SchemaOf<Form>;
  return DescribedForm<Signature>{
      {Form::name, rule}, kAccessesOf<Form, Signature>.data(), kernel, plain_check<kDescribe>(kSignature<Signature>)};
}

// Declares the form that is named, with a kernel of its signature.
template <auto kDescribe, class Form>
void described(torch::Library& library, SchemaOf<Form>* kernel, const KernelRule& rule = {}) {
  using Signature = SchemaOf<Form>;
  if constexpr (kIsFunctional<Signature>) {
    static const auto forever = described_operator<kDescribe, Form>(kernel, rule);
    register_entry<Form, Signature>(library, rule, &forever, &decltype(forever)::enter_functional);
  } else {
    static const auto forever = described_form<kDescribe, Form>(kernel, rule);
    register_entry<Form, Signature>(library, rule, &forever, &decltype(forever)::enter);
  }
}

// Declares the functional form and the out= form, with a kernel of the signature of the out= form.
template <auto kDescribe, class Functional>
void described(torch::Library& library, OutForm<SchemaOf<Functional>>* kernel, const KernelRule& rule = {}) {
  using Signature = SchemaOf<Functional>;
  using Out = OutForm<Signature>;
  static const auto forever = described_operator<kDescribe, Functional>(kernel, rule);
  using Operator = decltype(forever);
  register_entry<Functional, Signature>(library, rule, &forever, &Operator::enter_functional);
  register_out_entry<Functional, Out>(library, &forever, &Operator::enter_out);
}

}  // namespace openreg::ops
