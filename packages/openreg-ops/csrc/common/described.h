// SPDX-License-Identifier: BSD-3-Clause
// The table of described operators: one line per operator of PyTorch that has a CPU kernel but no meta function in C++.
//
// What a meta function would say is said by a *description*: a function of the operator's own arguments that checks
// them, in PyTorch's words, and gives an OutputSpec for each output. A description runs on the host, on the calling
// line; it may look at everything but the values of tensors. The kernel runs later, on the engine, where nothing warns:
// what a user should be warned of is the description's to say, too.
//
// To add an operator, write a line in the file of its family:
//
//   OPENREG_DESCRIBED(library, flip, at::cpu::flip, like_first)
//
// registers at::_ops::flip; the kernel's result lands in the output, or is copied there (results_in_place.h). Where the
// CPU has an out= kernel, take it: it writes straight into the output, and the out= form comes with it.
//
//   OPENREG_DESCRIBED_OUT(library, take, take_out, at::cpu::take_outf, describe_take)
//
// The kernel is named as C++ finds it, in at::cpu (<ATen/ops/X_cpu_dispatch.h>), in at::native, or in this file; of its
// overloads the one with the operator's signature is meant. The other macros, at the end, are for operators that exist
// only in an out= or an in-place form.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <torch/library.h>

#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/arguments.h"
#include "common/device_check.h"
#include "common/failure.h"
#include "common/output_spec.h"
#include "common/outputs.h"
#include "common/overlap.h"
#include "common/results_in_place.h"
#include "common/structured.h"

namespace openreg::ops {

// Every kernel of the table is called here, on the engine: `kernel(args..., outputs...)`, on aliases. The alias of an
// output must be left as it was found, for another run, and hold the result; its owner goes by what the host expected.
struct RunDescribed {
  using Access = AccessByType;

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
      if (outputs[i].defined()) {
        put_result(name, results[i], outputs[i]);
      }
    }
  }
};

// The same for an operator that writes into its operands.
template <class Operator>
struct RunInplace : RunDescribed {
  using Access = AccessBySchema<Operator>;
};

// Launches `kernel(args..., outputs...)` on aliases, on the current stream of the device. Outputs may be undefined.
// The caller hears of a failure as it says.
template <class Kernel, size_t kOutputs, class... Args>
void launch_described(const char* name, c10::Device device, Hears when, Kernel* kernel,
                      const std::array<at::Tensor, kOutputs>& outputs, Args... args) {
  launch_on_aliases<RunDescribed, Kernel, kOutputs, Args...>(name, device, when, kernel, outputs, std::nullopt,
                                                             args...);
}

// The same as the rule of the operator `name` says.
template <class Kernel, size_t kOutputs, class... Args>
void launch_described(const char* name, c10::Device device, Kernel* kernel,
                      const std::array<at::Tensor, kOutputs>& outputs, Args... args) {
  launch_described<Kernel, kOutputs, Args...>(name, device, hears_of(name, args...), kernel, outputs, args...);
}

// Spec names the operator: `Functional` (at::_ops), name(), kernel(), describe(). The kernel has the signature of the
// functional form or that of the out= form.
template <class Spec, class Schema, class Indices>
struct Described;

template <class Spec, class Result, class... Args, size_t... Index>
struct Described<Spec, Result(Args...), std::index_sequence<Index...>> {
  static constexpr size_t kOutputs = sizeof...(Index);
  using OutResult = std::conditional_t<kOutputs == 1, at::Tensor&, std::tuple<OutputReference<Index>...>>;
  using Specs = std::array<OutputSpec, kOutputs>;

  static Result functional(Args... args) {
    const c10::Device device = operands_device(args...);
    const CurrentDevice current(device);
    const Specs specs = describe(args...);
    std::array<at::Tensor, kOutputs> outputs{make_described(specs[Index], device)...};
    launch(device, outputs, args...);
    if constexpr (kOutputs == 1) {
      return std::move(outputs[0]);
    } else {
      return Result(std::move(outputs[Index])...);
    }
  }

  static OutResult out(Args... args, OutputReference<Index>... outputs) {
    const c10::Device device = operands_device(args..., outputs...);
    const CurrentDevice current(device);
    const Specs specs = describe(args...);
    (check_internal_overlap(outputs, specs[Index]), ...);  // resizing would hide it
    (prepare_described(outputs, specs[Index], device), ...);
    (check_overlap(outputs, specs[Index], args...), ...);
    launch(device, {outputs...}, args...);
    if constexpr (kOutputs == 1) {
      return (outputs, ...);
    } else {
      return OutResult(outputs...);
    }
  }

 private:
  template <class... Operands>
  static c10::Device operands_device(const Operands&... operands) {
    const c10::Device device = device_of(Spec::name(), operands...);
    check_same_device(Spec::name(), device, operands...);
    return device;
  }

  // A description of one output may give it as it is.
  static Specs describe(Args... args) {
    if constexpr (std::is_same_v<decltype(Spec::describe()(args...)), OutputSpec>) {
      return {Spec::describe()(args...)};
    } else {
      return Spec::describe()(args...);
    }
  }

  // The functional kernel as one that writes into outputs.
  static void write_result(Args... args, OutputReference<Index>... outputs) {
    if constexpr (kOutputs == 1) {
      const ResultsInPlace in_place({outputs...});
      ((outputs = Spec::kernel()(args...)), ...);
    } else {
      std::tie(outputs...) = Spec::kernel()(args...);
    }
  }

  static void launch(c10::Device device, const std::array<at::Tensor, kOutputs>& outputs, Args... args) {
    constexpr bool kIsFunctional = std::is_same_v<decltype(Spec::kernel()), Result (*)(Args...)>;
    if constexpr (kIsFunctional) {
      launch_described<decltype(write_result), kOutputs, Args...>(Spec::name(), device, &write_result, outputs,
                                                                  args...);
    } else {
      launch_described<std::remove_pointer_t<decltype(Spec::kernel())>, kOutputs, Args...>(
          Spec::name(), device, Spec::kernel(), outputs, args...);
    }
  }
};

template <class Spec>
using DescribedOf = Described<
    Spec, SchemaOf<typename Spec::Functional>,
    std::make_index_sequence<OutputCount<typename ResultOf<SchemaOf<typename Spec::Functional>>::type>::value>>;

// An operator with one output that exists only in the out= form, because PyTorch makes the other one from it. The
// description takes the output as well, for its dtype.
template <class Operator, class Schema = SchemaOf<Operator>>
struct DescribedOutOnly;

template <class Operator, class... Args>
struct DescribedOutOnly<Operator, at::Tensor&(Args...)> {
  template <class Spec>
  static at::Tensor& call(Args... args) {
    const c10::Device device = device_of(Operator::name, args...);
    check_same_device_or_scalar(Operator::name, device, args...);
    const CurrentDevice current(device);
    at::Tensor& out = std::get<sizeof...(Args) - 1>(std::tie(args...));
    const OutputSpec spec = Spec::describe()(args...);
    prepare_described(out, spec, device);
    check_internal_overlap(out, spec);
    launch_described<at::Tensor&(Args...), 0, Args...>(Operator::name, device, Spec::kernel(), {}, args...);
    return out;
  }
};

// An operator that writes into its first operand. The description gives nothing: it checks the arguments.
template <class Operator, SelfOverlap kSelfOverlap = SelfOverlap::kRefused, class Schema = SchemaOf<Operator>>
struct DescribedInplace;

template <class Operator, SelfOverlap kSelfOverlap, class... Args>
struct DescribedInplace<Operator, kSelfOverlap, at::Tensor&(at::Tensor&, Args...)> {
  template <class Spec>
  static at::Tensor& call(at::Tensor& self, Args... args) {
    check_same_device(Operator::name, device_of(Operator::name, self, args...), self, args...);
    Spec::describe()(self, args...);
    const CurrentDevice current(self.device());
    if constexpr (kSelfOverlap == SelfOverlap::kRefused) {
      at::assert_no_internal_overlap(self);
    }
    launch_on_aliases<RunInplace<Operator>, at::Tensor&(at::Tensor&, Args...), 0, at::Tensor&, Args...>(
        Operator::name, self.device(), hears_of(Operator::name, self, args...), Spec::kernel(), {}, std::nullopt, self,
        args...);
    return self;
  }
};

}  // namespace openreg::ops

// What the table knows of one form, at::_ops::op, whose kernel has the signature of at::_ops::kernel_form.
#define OPENREG_DESCRIBED_SPEC(op, kernel_form, kernel_function, description)  \
  struct Spec_##op {                                                           \
    using Functional [[maybe_unused]] = at::_ops::op;                          \
    using Kernel = ::openreg::ops::SchemaOf<at::_ops::kernel_form>;            \
    static Kernel* kernel() { return static_cast<Kernel*>(&kernel_function); } \
    static auto describe() { return description; }                             \
    static const char* name() { return at::_ops::op::name; }                   \
  };

// The functional form, from a functional kernel.
#define OPENREG_DESCRIBED(library, op, kernel, description)                 \
  {                                                                         \
    OPENREG_DESCRIBED_SPEC(op, op, kernel, description)                     \
    (library).impl(::openreg::ops::registered_name<at::_ops::op>().c_str(), \
                   &::openreg::ops::DescribedOf<Spec_##op>::functional);    \
  }

// The functional form and the out= form, from an out= kernel.
#define OPENREG_DESCRIBED_OUT(library, op, out_op, kernel, description)         \
  {                                                                             \
    OPENREG_DESCRIBED_SPEC(op, out_op, kernel, description)                     \
    (library).impl(::openreg::ops::registered_name<at::_ops::op>().c_str(),     \
                   &::openreg::ops::DescribedOf<Spec_##op>::functional);        \
    (library).impl(::openreg::ops::registered_name<at::_ops::out_op>().c_str(), \
                   &::openreg::ops::DescribedOf<Spec_##op>::out);               \
  }

// The out= form alone; the description takes the output as its last argument.
#define OPENREG_DESCRIBED_OUT_ONLY(library, op, kernel, description)                  \
  {                                                                                   \
    OPENREG_DESCRIBED_SPEC(op, op, kernel, description)                               \
    (library).impl(::openreg::ops::registered_name<at::_ops::op>().c_str(),           \
                   &::openreg::ops::DescribedOutOnly<at::_ops::op>::call<Spec_##op>); \
  }

// The in-place form; the description gives nothing.
#define OPENREG_DESCRIBED_INPLACE(library, op, kernel, description)                   \
  {                                                                                   \
    OPENREG_DESCRIBED_SPEC(op, op, kernel, description)                               \
    (library).impl(::openreg::ops::registered_name<at::_ops::op>().c_str(),           \
                   &::openreg::ops::DescribedInplace<at::_ops::op>::call<Spec_##op>); \
  }
