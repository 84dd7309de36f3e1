// SPDX-License-Identifier: BSD-3-Clause
// An adapter that runs a CPU kernel in another dtype, for dtypes that a GPU supports and the CPU's kernel lacks.
// Example of a registration:
//
//   structured<meta::structured_avg_pool3d, op::avg_pool3d>(library, computed_in<reduced_as_float,
//   cpu::avg_pool3d_outf>)
//
// The conversions are part of the kernel: the thread that executes it converts, so they add no cost to an asynchronous
// launch.
#pragma once

#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "openreg/runtime/torch_versions.h"

namespace openreg::ops {

// Return the dtype that replaces one that a kernel lacks. They return all other dtypes unchanged, because the kernel
// supports them or they are dtypes of indices.
inline c10::ScalarType reduced_as_float(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
      return c10::ScalarType::Float;
    case c10::ScalarType::ComplexHalf:
#if OPENREG_TORCH_AT_LEAST(14)
    case c10::ScalarType::BComplex32:
#endif
      return c10::ScalarType::ComplexFloat;
    default:
      return dtype;
  }
}
inline c10::ScalarType integer_as_double(c10::ScalarType dtype) {
  return c10::isIntegralType(dtype, /*includeBool=*/false) ? c10::ScalarType::Double : dtype;
}

// Returns an operand in the dtype in which a formula is computed: float for half and bfloat16, because sums of these
// would lose too much. Kernels call it.
inline at::Tensor wide(const at::Tensor& tensor) {
  return tensor.to(at::toOpMathType(tensor.scalar_type()));
}

// An argument of a kernel, converted to the dtype in which the kernel computes. Valid during the call. write_back()
// copies to the caller's tensor what the kernel has written.
template <class T>
struct Converted {
  using Decayed = std::remove_cv_t<std::remove_reference_t<T>>;
  template <class Compute>
  Converted(const Decayed& value, Compute /*compute*/) : held(value) {}
  const Decayed& get() const { return held; }
  void write_back() const {}
  const Decayed& held;
};

template <>
struct Converted<const at::Tensor&> {
  template <class Compute>
  Converted(const at::Tensor& value, Compute compute)
      : held(value.defined() ? value.to(compute(value.scalar_type())) : value) {}
  const at::Tensor& get() const { return held; }
  void write_back() const {}
  at::Tensor held;
};

template <>
struct Converted<const std::optional<at::Tensor>&> {
  template <class Compute>
  Converted(const std::optional<at::Tensor>& value, Compute compute)
      : held(value.has_value() && value->defined() ? std::optional(value->to(compute(value->scalar_type()))) : value) {}
  const std::optional<at::Tensor>& get() const { return held; }
  void write_back() const {}
  std::optional<at::Tensor> held;
};

template <>
struct Converted<at::Tensor&> {
  template <class Compute>
  Converted(at::Tensor& value, Compute compute)
      : original(value), held(value.defined() ? value.to(compute(value.scalar_type())) : value) {}
  at::Tensor& get() { return held; }
  void write_back() const {
    if (!held.is_same(original)) {
      original.copy_(held);
    }
  }
  at::Tensor& original;
  at::Tensor held;
};

// An adapter with the signature of kKernel. It calls kKernel on operands whose dtypes `kCompute` has replaced. kKernel
// must write into its output arguments; the adapter ignores kKernel's return value and returns the caller's output
// tensors.
template <c10::ScalarType (*kCompute)(c10::ScalarType), auto kKernel, class Kernel = decltype(kKernel)>
struct ComputedIn;

template <c10::ScalarType (*kCompute)(c10::ScalarType), auto kKernel, class Result, class... Args>
struct ComputedIn<kCompute, kKernel, Result (*)(Args...)> {
  static Result call(Args... args) {
    std::tuple<Converted<Args>...> converted{Converted<Args>(args, kCompute)...};
    std::apply(
        [](auto&... argument) {
          kKernel(argument.get()...);
          (argument.write_back(), ...);
        },
        converted);
    return returned(args...);
  }

 private:
  // Returns the outputs, which are the last arguments, as kernels do.
  static Result returned(Args... args) {
    if constexpr (std::is_same_v<Result, at::Tensor&>) {
      return std::get<sizeof...(Args) - 1>(std::tie(args...));
    } else if constexpr (!std::is_void_v<Result>) {
      return last_of(std::tie(args...), std::make_index_sequence<std::tuple_size_v<Result>>());
    }
  }
  template <size_t... Index>
  static Result last_of(const std::tuple<std::add_lvalue_reference_t<Args>...>& all, std::index_sequence<Index...>) {
    return Result(std::get<sizeof...(Args) - sizeof...(Index) + Index>(all)...);
  }
};

// The adapted kernel as an argument of a registration, such as computed_in<reduced_as_float, cpu::avg_pool3d_outf>.
template <auto kCompute, auto kKernel>
constexpr auto computed_in = &ComputedIn<kCompute, kKernel>::call;

}  // namespace openreg::ops
