// SPDX-License-Identifier: BSD-3-Clause
// The registration of kernels with PyTorch's dispatcher: each overload once, by its name in at::_ops, with the
// signature of its schema. Registrations stand in PyTorch's own blocks, TORCH_LIBRARY_IMPL(aten, PrivateUse1, library).
// These run while the module loads, after openreg_ops/__init__.py has checked that it was built for the loaded runtime.
//
// Short forms are templates that register an operator in one line. Each has a header; the first four launch through
// launch/launch.h:
//
//   header          operators                                                 the same by hand (in csrc/)
//   structured.h    PyTorch has a structured meta function for them           mechanisms/structured.cpp
//   unstructured.h  PyTorch has none; the meta function is ours               mechanisms/unstructured.cpp
//   foreach.h       on lists of tensors, in one launch                        mechanisms/unstructured.cpp, per list
//   function.h      written by hand                                           minimal/
//   non_strided.h   on other layouts, by PyTorch's functions for the CPU      none; it calls fallback/boxed_cpu_call.h
//   cached_meta.h   on quantized tensors; a first call caches the metadata    none; it calls fallback/boxed_cpu_call.h
//
// overloads.h has the call of an operator that structured.h and unstructured.h share.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <torch/library.h>

#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch/kernel_traits.h"
#include "launch/launch.h"

namespace at::_ops {}
namespace at::cpu {}
namespace at::meta {}

namespace openreg::ops {

namespace op = at::_ops;
namespace cpu = at::cpu;
namespace meta = at::meta;

// The operator's signature in C++ without symbolic integers, because this backend works on concrete sizes.
template <class Op>
using SchemaOf = typename c10::fn_remove_symint<typename Op::schema>::type;

// The number of tensors that an operator with this functional signature returns.
template <class Signature>
constexpr size_t kOutputsOf = 0;
template <class Result, class... Args>
constexpr size_t kOutputsOf<Result(Args...)> = 1;
template <class... Outputs, class... Args>
constexpr size_t kOutputsOf<std::tuple<Outputs...>(Args...)> = sizeof...(Outputs);

// The type that an out= overload with this number of outputs returns.
template <class Indices>
struct OutResultTrait;
template <size_t... Index>
struct OutResultTrait<std::index_sequence<Index...>> {
  using type = std::conditional_t<sizeof...(Index) == 1, at::Tensor&, std::tuple<OutputReference<Index>...>>;
};
template <size_t kOutputs>
using OutResultOf = typename OutResultTrait<std::make_index_sequence<kOutputs>>::type;

// The signature of the out= overload that belongs to a functional one: the arguments, then the outputs.
template <class Signature, class Indices = std::make_index_sequence<kOutputsOf<Signature>>>
struct OutSignatureTrait;
template <class Result, class... Args, size_t... Index>
struct OutSignatureTrait<Result(Args...), std::index_sequence<Index...>> {
  using type = OutResultOf<sizeof...(Index)>(Args..., OutputReference<Index>...);
};
template <class Signature>
using OutSignature = typename OutSignatureTrait<Signature>::type;

// True if an overload of this signature returns new tensors (kIsFunctional) or writes into its first argument
// (kIsInplace).
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

// A functor for the dispatcher: a pointer to an object, and a function that takes it as its first argument. All
// operators of one signature share this type, because PyTorch's code for boxed calls is long and is instantiated for
// each type. The object is never destroyed.
template <class Signature>
struct StatefulKernel;
template <class Result, class... Args>
struct StatefulKernel<Result(Args...)> {
  const void* object;
  Result (*call)(const void*, Args...);
  Result operator()(Args... args) const { return call(object, std::forward<Args>(args)...); }
};

// A guard that sets the key and the library of registrations: they are for tensors of `key`, such as SparsePrivateUse1,
// and boxed functions belong to `library`. Without a guard, registrations are for strided tensors and "aten". An
// overload has one registration for each key. The guard stands first in a block of TORCH_LIBRARY_IMPL for that key and
// library; guards do not nest.
class RegistrationKeyGuard {
 public:
  explicit RegistrationKeyGuard(c10::DispatchKey key, const char* library = "aten");
  ~RegistrationKeyGuard();

  RegistrationKeyGuard(const RegistrationKeyGuard&) = delete;
  RegistrationKeyGuard& operator=(const RegistrationKeyGuard&) = delete;
};

// Registers one overload of an operator. An overload that is registered already, or that PyTorch does not have, is a
// mistake that check_registrations() reports, because nothing may be thrown while a library loads.
void register_overload(torch::Library& library, const c10::OperatorName& overload, const KernelTraits& traits,
                       torch::CppFunction&& function);

// Same as `register_overload()`, except that the function is boxed, and `name` is operator and overload without the
// namespace, such as "add.out".
void register_boxed(torch::Library& library, const char* name, torch::CppFunction&& function);
// Registers the boxed function `kFunction` for each of these names.
template <auto* kFunction>
void boxed(torch::Library& library, c10::ArrayRef<const char*> names) {
  for (const char* name : names) {
    register_boxed(library, name, torch::CppFunction::makeFromBoxedFunction<kFunction>());
  }
}

// Same as `register_overload()`, except that it registers the out= overload that belongs to `functional`. This is the
// only overload that takes the same arguments and then outputs.
void register_out_overload(torch::Library& library, const c10::OperatorName& functional, const KernelTraits& traits,
                           torch::CppFunction&& function);

// The type of register_overload() and register_out_overload().
using Register = void(torch::Library&, const c10::OperatorName&, const KernelTraits&, torch::CppFunction&&);
// Calls `enter` with the kernel. Not inlined, because the code that makes a CppFunction is long and identical for all
// operators of a signature.
template <class Signature>
C10_NOINLINE void register_stateful(torch::Library& library, Register* enter, const char* name, const char* overload,
                                    const KernelTraits& traits, const StatefulKernel<Signature>& kernel) {
  enter(library, {name, overload}, traits, torch::CppFunction(kernel));
}

// Returns the kernel that calls kMember, a const member function of `object`.
template <auto kMember, class T, class Result, class... Args>
StatefulKernel<Result(Args...)> kernel_of_member(const T& object, Result (T::* /*member*/)(Args...) const) {
  return {&object, [](const void* state, Args... args) -> Result {
            return (static_cast<const T*>(state)->*kMember)(std::forward<Args>(args)...);
          }};
}

// Same as `register_overload()`, or the other function that `enter` is, except that the kernel is kMember, a const
// member function of `object`, which must never be destroyed.
template <class Op, auto kMember, class T>
void register_member(torch::Library& library, const KernelTraits& traits, const T& object,
                     Register* enter = &register_overload) {
  register_stateful(library, enter, Op::name, Op::overload_name, traits, kernel_of_member<kMember>(object, kMember));
}

// Throws c10::Error, with the operator, if a registration was wrong. Call it when the module is initialized.
void check_registrations();

// Returns the traits of all registered kernels, by the overload's name without the namespace aten. For tensors that are
// not strided, the dispatch key follows the name: "add.out@SparsePrivateUse1". Overloads of foreach_ops() have default
// traits, as have out= and in-place overloads that are registered together with a functional one.
const std::map<std::string, KernelTraits>& registered_traits();

}  // namespace openreg::ops
