// SPDX-License-Identifier: BSD-3-Clause
// How declarations reach PyTorch's dispatcher: every form by the name that at::_ops has for it, once, with the
// signature that its schema asks for. Declarations stand in PyTorch's own blocks, TORCH_LIBRARY_IMPL(aten, PrivateUse1,
// library), which run while the module is loaded: after openreg_ops/__init__.py has compared the build.
//
// The short forms of a declaration, one header each; all launch by launch.h:
//   structured.h  PyTorch's meta function checks the operands and asks for outputs   (csrc/mechanisms/structured.cpp)
//   described.h   a function of ours does, for operators that have no meta function  (csrc/mechanisms/own_meta.cpp)
//   listwise.h    lists of tensors, in one launch                                    (csrc/mechanisms/own_meta.cpp, per
//   list) function.h    a function written by hand                                         (csrc/minimal) layout.h
//   PyTorch's function for the CPU serves tensors of other layouts as it is rehearsed.h   the first call of a kind
//   tells what comes out: quantised tensors
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <torch/library.h>

#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch/kernel_rule.h"

namespace at::_ops {}
namespace at::cpu {}
namespace at::meta {}

namespace openreg::ops {

namespace op = at::_ops;
namespace cpu = at::cpu;
namespace meta = at::meta;

// The operator's signature in C++ without symbolic integers: this backend works on real sizes.
template <class Operator>
using SchemaOf = typename c10::fn_remove_symint<typename Operator::schema>::type;

template <class Signature>
constexpr size_t kOutputsOf = 0;
template <class Result, class... Args>
constexpr size_t kOutputsOf<Result(Args...)> = 1;
template <class... Outputs, class... Args>
constexpr size_t kOutputsOf<std::tuple<Outputs...>(Args...)> = sizeof...(Outputs);

template <size_t>
using OutputReference = at::Tensor&;

// What an out= form of so many outputs gives.
template <class Indices>
struct OutResult;
template <size_t... Index>
struct OutResult<std::index_sequence<Index...>> {
  using type = std::conditional_t<sizeof...(Index) == 1, at::Tensor&, std::tuple<OutputReference<Index>...>>;
};
template <size_t kOutputs>
using OutResultOf = typename OutResult<std::make_index_sequence<kOutputs>>::type;

template <class Signature, class Indices = std::make_index_sequence<kOutputsOf<Signature>>>
struct OutFormOf;
template <class Result, class... Args, size_t... Index>
struct OutFormOf<Result(Args...), std::index_sequence<Index...>> {
  using type = OutResultOf<sizeof...(Index)>(Args..., OutputReference<Index>...);
};
template <class Signature>
using OutForm = typename OutFormOf<Signature>::type;

// Whether a signature is that of a form that gives new tensors, and of one that writes into its first argument.
template <class Signature>
constexpr bool kIsFunctional = false;
template <class Result, class... Args>
constexpr bool kIsFunctional<Result(Args...)> = !std::is_reference_v<Result> && !std::is_void_v<Result>;
template <class... Outputs, class... Args>
constexpr bool kIsFunctional<std::tuple<Outputs...>(Args...)> = !(std::is_reference_v<Outputs> || ...);

template <class Signature>
constexpr bool kIsInplace = false;
template <class Result, class First, class... Args>
constexpr bool kIsInplace<Result(First, Args...)> = std::is_void_v<Result> || std::is_same_v<First, at::Tensor&>;

// A function with a state, as the dispatcher calls it. All operators of one signature share PyTorch's code for boxed
// calls, which is long. The state lives for ever.
template <class Signature>
struct Entry;
template <class Result, class... Args>
struct Entry<Result(Args...)> {
  using Call = Result(const void*, Args...);
  const void* state;
  Call* call;
  Result operator()(Args... args) const { return call(state, std::forward<Args>(args)...); }
};

// What is declared while one lives is for tensors of this key: SparsePrivateUse1, say; and boxed functions are of this
// library of operators. Without one, for strided tensors and of "aten". An operator has one declaration for each.
// Stands first in a block of TORCH_LIBRARY_IMPL for that key and library.
class DeclaresFor {
 public:
  explicit DeclaresFor(c10::DispatchKey key, const char* library = "aten");
  ~DeclaresFor();

  DeclaresFor(const DeclaresFor&) = delete;
  DeclaresFor& operator=(const DeclaresFor&) = delete;
};

// Registers one form of an operator. A form that was declared before, or that PyTorch does not have, is a mistake that
// require_sound_declarations() reports: nothing may be thrown while a library loads.
void register_form(torch::Library& library, const c10::OperatorName& form, const KernelRule& rule,
                   torch::CppFunction&& function);

// The same for a boxed function, by a name as "add.out".
void register_boxed(torch::Library& library, const char* name, torch::CppFunction&& function);
template <auto* kFunction>
void boxed(torch::Library& library, c10::ArrayRef<const char*> names) {
  for (const char* name : names) {
    register_boxed(library, name, torch::CppFunction::makeFromBoxedFunction<kFunction>());
  }
}

// The same for the out= form of the operator whose functional form this is: PyTorch has one overload that takes the
// same arguments and then outputs.
void register_out_form(torch::Library& library, const c10::OperatorName& functional, const KernelRule& rule,
                       torch::CppFunction&& function);

// Not inlined, as the code that makes a CppFunction is long and alike for all operators of a signature.
using Register = void(torch::Library&, const c10::OperatorName&, const KernelRule&, torch::CppFunction&&);
template <class Signature>
C10_NOINLINE void register_entry_as(torch::Library& library, Register* enter, const char* name, const char* overload,
                                    const KernelRule& rule, const void* state, typename Entry<Signature>::Call* call) {
  enter(library, {name, overload}, rule, torch::CppFunction(Entry<Signature>{state, call}));
}

// The same for a function with a state.
template <class Form, class Signature>
void register_entry(torch::Library& library, const KernelRule& rule, const void* state,
                    typename Entry<Signature>::Call* call) {
  register_entry_as<Signature>(library, &register_form, Form::name, Form::overload_name, rule, state, call);
}
template <class Functional, class Signature>
void register_out_entry(torch::Library& library, const void* state, typename Entry<Signature>::Call* call) {
  register_entry_as<Signature>(library, &register_out_form, Functional::name, Functional::overload_name, {}, state,
                               call);
}

// Throws c10::Error that names the operator if a declaration was wrong. To be called when the module is initialised.
void require_sound_declarations();

// What declarations have said of kernels: the rule by the form's name, without the namespace of aten; for tensors of
// another key than strided ones the key follows: "add.out@SparsePrivateUse1". A form that follows from another has none
// of its own.
const std::map<std::string, KernelRule>& declared_rules();

}  // namespace openreg::ops
