// SPDX-License-Identifier: BSD-3-Clause
// The structured table: one line per operator of PyTorch that has a meta function and a CPU kernel.
//
// A call runs in three steps: (1) on the host, PyTorch's own meta function (at::meta::structured_X) checks the operands
// and asks for outputs, which we allocate or check; (2) operands and outputs get aliases; (3) the CPU kernel
// (at::cpu::X_outf) is launched on the aliases. Source: the code that torchgen generates for CUDA does (1) the same
// way.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <c10/util/DimVector.h>
#include <torch/library.h>

#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/alias_task.h"
#include "common/arguments.h"
#include "common/device_check.h"
#include "common/failure.h"
#include "common/operand_dtypes.h"
#include "common/outputs.h"
#include "common/overlap.h"

namespace openreg::ops {

enum class Variant { kFunctional, kOut, kInplace };

// Runs the meta function `Base::meta` with our outputs.
template <class Base, size_t kOutputs, Variant kVariant>
class MetaCall final : public Base {
 public:
  static constexpr bool kWritesIntoOperands = kVariant != Variant::kFunctional;
  static constexpr bool kWritesIntoOut = kVariant == Variant::kOut && !std::is_base_of_v<at::TensorIteratorBase, Base>;

  std::array<at::Tensor, kOutputs> outputs;

  const at::Tensor& maybe_get_output(int64_t index) override { return outputs[static_cast<size_t>(index)]; }

  // The dtype in which the kernel computes, where that is the iterator's to settle; else it is the first operand's.
  std::optional<c10::ScalarType> computed_dtype() const {
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Base>) {
      return this->maybe_common_dtype();
    } else {
      return std::nullopt;
    }
  }

  // Puts the tensors that the kernel writes into in the place of the out= tensors, and back.
  void exchange() {
    for (size_t i = 0; i < instead_.size(); ++i) {
      if (C10_UNLIKELY(instead_[i].defined())) {
        std::swap(outputs[i], instead_[i]);
      }
    }
  }
  void copy_back() {
    for (size_t i = 0; i < instead_.size(); ++i) {
      if (C10_UNLIKELY(instead_[i].defined())) {
        outputs[i].copy_(instead_[i]);
      }
    }
  }

  // An output whose strides the kernel prescribes and one whose strides it takes as they are need no difference here.
  // Where a kernel settles the strides anew, RunKernel undoes it.
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    provide(index, sizes, strides, options);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    provide(index, sizes, strides, options);
  }

 private:
  void provide(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
    at::Tensor& output = outputs[static_cast<size_t>(index)];
    if constexpr (kVariant == Variant::kFunctional) {
      output = make_output(sizes, strides, options);
    } else if constexpr (kVariant == Variant::kOut) {
      resize_out(output, sizes, strides, options);
      if constexpr (!std::is_base_of_v<at::TensorIteratorBase, Base>) {
        if (C10_UNLIKELY(!is_laid_out(output, strides, options))) {
          instead_[static_cast<size_t>(index)] = make_output(sizes, strides, options);
        }
      }
    } else {
      check_inplace(output, sizes, options);
    }
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Base>) {
      // After the output exists, because the iterator asks for it.
      at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options);
    }
  }

  // An out= tensor of other strides than a new output would have gets its values from one. Many kernels write one
  // element after the other, and would write beyond it; those of an iterator do not. Nothing can be copied to expanded
  // tensors.
  std::array<at::Tensor, kWritesIntoOut ? kOutputs : 0> instead_;
};

// What a meta function takes where the operator takes something else.
template <class T>
const T& meta_argument(const T& argument) {
  return argument;
}
inline at::OptionalTensorRef meta_argument(const std::optional<at::Tensor>& argument) {
  return argument.has_value() ? at::OptionalTensorRef(*argument) : at::OptionalTensorRef();
}
inline at::OptionalScalarRef meta_argument(const std::optional<at::Scalar>& argument) {
  return argument.has_value() ? at::OptionalScalarRef(*argument) : at::OptionalScalarRef();
}

// Calls `kernel(args..., outputs...)`. A few kernels give their output other strides, or leave it to be conjugated; the
// tensor that it is an alias of stays as it is, so the values are put in their places, and the alias is as before for
// another run.
struct RunKernel {
  using Access = AccessByType;

  template <class Kernel, size_t kOutputs, class... Args>
  void operator()(const char* name, Kernel* kernel, std::array<at::Tensor, kOutputs>& outputs, Args&&... args) const {
    std::array<c10::DimVector, kOutputs> sizes;
    std::array<c10::DimVector, kOutputs> strides;
    std::array<bool, kOutputs> conjugated;
    for (size_t i = 0; i < kOutputs; ++i) {
      sizes[i] = outputs[i].sizes();
      strides[i] = outputs[i].strides();
      conjugated[i] = outputs[i].is_conj();
    }
    std::apply([&](auto&... output) { kernel(std::forward<Args>(args)..., output...); }, outputs);
    for (size_t i = 0; i < kOutputs; ++i) {
      TORCH_CHECK(outputs[i].sizes() == sizes[i], name, ": the kernel gave its output the shape ", outputs[i].sizes(),
                  " where the host expected ", sizes[i], "; please report this");
      if (outputs[i].strides() != strides[i] || outputs[i].is_conj() != conjugated[i]) {
        const at::Tensor computed = outputs[i].clone();
        outputs[i].unsafeGetTensorImpl()->set_sizes_and_strides(sizes[i], strides[i]);
        outputs[i]._set_conj(conjugated[i]);
        outputs[i].copy_(computed);
      }
    }
  }
};

// The name under which the dispatcher knows an operator.
template <class Operator>
std::string registered_name() {
  const std::string overload = Operator::overload_name;
  return overload.empty() ? std::string(Operator::name) : std::string(Operator::name) + "." + overload;
}

template <size_t>
using OutputReference = at::Tensor&;

// Whether Spec brings a kernel of our own: bool Spec::launch(device, args..., outputs...) launches it, or gives false
// for operands that it does not serve, which then go to the CPU kernel.
template <class Spec, class = void>
struct HasOwnKernel : std::false_type {};
template <class Spec>
struct HasOwnKernel<Spec, std::void_t<decltype(&Spec::launch)>> : std::true_type {};

// An operator whose kernel would warn, on the engine, where nothing does: kWarn() does so on the calling line.
template <class Spec, void (*kWarn)(), class Signature = typename Spec::Kernel>
struct WarnsAtCall;
template <class Spec, void (*kWarn)(), class Result, class... Args>
struct WarnsAtCall<Spec, kWarn, Result(Args...)> : Spec {
  static bool launch(c10::Device /*device*/, Args... /*args*/) {
    kWarn();
    return false;
  }
};

template <class Spec, class Schema, class Indices>
struct Structured;

// Spec names the operator: `Meta` (the meta class), `Kernel` (type of the CPU kernel), kernel(), name(). Args are the
// functional form's; Index counts the outputs.
template <class Spec, class Result, class... Args, size_t... Index>
struct Structured<Spec, Result(Args...), std::index_sequence<Index...>> {
  static constexpr size_t kOutputs = sizeof...(Index);
  using OutResult = std::conditional_t<kOutputs == 1, at::Tensor&, std::tuple<OutputReference<Index>...>>;

  static Result functional(Args... args) {
    MetaCall<typename Spec::Meta, kOutputs, Variant::kFunctional> call;
    run(call, args...);
    if constexpr (kOutputs == 1) {
      return std::move(call.outputs[0]);
    } else {
      return Result(std::move(call.outputs[Index])...);
    }
  }

  static OutResult out(Args... args, OutputReference<Index>... outputs) {
    MetaCall<typename Spec::Meta, kOutputs, Variant::kOut> call;
    call.outputs = {outputs...};
    run(call, args...);
    if constexpr (kOutputs == 1) {
      return (outputs, ...);
    } else {
      return OutResult(outputs...);
    }
  }

  template <class Self, class... Rest>
  static at::Tensor& inplace_from(at::Tensor& self, Rest... rest) {
    MetaCall<typename Spec::Meta, kOutputs, Variant::kInplace> call;
    call.outputs = {self};
    run(call, self, rest...);
    return self;
  }

 private:
  static const KernelRule& rule() {
    static const KernelRule& found = kernel_rule(registered_name<typename Spec::Functional>());
    return found;
  }

  static Hears hears(const char* name, std::optional<c10::ScalarType> computed, Args... args) {
    bool refuses = may_refuse(name, rule(), computed, args...);
    if constexpr ((is_mode<Args> || ...)) {
      static const std::string op = registered_name<typename Spec::Functional>();
      static const bool has_modes = has_mode_rules(op);
      refuses |= has_modes && may_refuse_in_mode(name, op, computed, args...);
    }
    return ops::hears(rule(), refuses, computed, args...);
  }

  template <class Call>
  static void run(Call& call, Args... args) {
    const char* name = Spec::name();
    const c10::Device device = device_of(name, args..., call.outputs[Index]...);
    if constexpr (!std::is_base_of_v<at::TensorIteratorBase, typename Spec::Meta>) {
      check_same_device(name, device, args...);  // a TensorIterator checks by itself, and takes scalars on the CPU
    }
    const CurrentDevice current(device);
    call.meta(meta_argument(args)...);
    const Hears when = hears(name, call.computed_dtype(), args...);
    if constexpr (Call::kWritesIntoOperands && !std::is_base_of_v<at::TensorIteratorBase, typename Spec::Meta>) {
      static const OverlapRule rule = overlap_rule(name);
      if (rule.refuses()) {
        (check_overlap_rule(rule, call.outputs[Index], args...), ...);
      }
    }
    if constexpr (HasOwnKernel<Spec>::value) {
      if (when == Hears::kLater && Spec::launch(device, args..., call.outputs[Index]...)) {
        return;
      }
    }
    if constexpr (Call::kWritesIntoOut) {
      call.exchange();
    }
    launch_on_aliases<RunKernel, typename Spec::Kernel, kOutputs, Args...>(
        name, device, when, Spec::kernel(), call.outputs, call.computed_dtype(), args...);
    if constexpr (Call::kWritesIntoOut) {
      call.exchange();
      call.copy_back();
    }
  }
};

template <class Spec, class Schema>
struct Inplace;
template <class Spec, class Result, class Self, class... Rest>
struct Inplace<Spec, Result(Self, Rest...)> {
  template <class Implementation>
  static at::Tensor& call(at::Tensor& self, Rest... rest) {
    return Implementation::template inplace_from<Self, Rest...>(self, rest...);
  }
};

template <class Result>
struct OutputCount : std::integral_constant<size_t, 1> {};
template <class... Outputs>
struct OutputCount<std::tuple<Outputs...>> : std::integral_constant<size_t, sizeof...(Outputs)> {};
template <class Schema>
struct ResultOf;
template <class Result, class... Args>
struct ResultOf<Result(Args...)> {
  using type = Result;
};

// The operator's schema without symbolic integers: this backend works on real sizes.
template <class Operator>
using SchemaOf = typename c10::fn_remove_symint<typename Operator::schema>::type;

// The implementation for an operator that Spec describes.
template <class Spec>
using StructuredOf = Structured<
    Spec, SchemaOf<typename Spec::Functional>,
    std::make_index_sequence<OutputCount<typename ResultOf<SchemaOf<typename Spec::Functional>>::type>::value>>;

// Registers the functional and the out form. By address, here and in the other tables, not by TORCH_FN: operators of
// one signature then share PyTorch's code for boxed calls.
template <class Spec>
void register_structured(torch::Library& library) {
  using Implementation = StructuredOf<Spec>;
  library.impl(registered_name<typename Spec::Functional>().c_str(), &Implementation::functional);
  library.impl(registered_name<typename Spec::Out>().c_str(), &Implementation::out);
}

// Registers the in-place form as well.
template <class Spec, class InplaceOperator>
void register_structured(torch::Library& library) {
  register_structured<Spec>(library);
  using InplaceForm = Inplace<Spec, SchemaOf<InplaceOperator>>;
  library.impl(registered_name<InplaceOperator>().c_str(), &InplaceForm::template call<StructuredOf<Spec>>);
}

}  // namespace openreg::ops

// The next two make a line of the table. They take the names of the operator's forms in at::_ops, and its base name in
// at::cpu, and need the headers <ATen/ops/BASE_{ops,meta,cpu_dispatch}.h>.
#define OPENREG_STRUCTURED_SPEC(functional, out, base)                              \
  struct Spec_##functional {                                                        \
    using Functional = at::_ops::functional;                                        \
    using Out = at::_ops::out;                                                      \
    using Meta [[maybe_unused]] = at::meta::structured_##functional;                \
    using Kernel = ::openreg::ops::SchemaOf<Out>;                                   \
    static Kernel* kernel() { return static_cast<Kernel*>(&at::cpu::base##_outf); } \
    static const char* name() { return Functional::name; }                          \
  };

// OPENREG_STRUCTURED(library, mm, mm_out, mm)
#define OPENREG_STRUCTURED(library, functional, out, base)           \
  {                                                                  \
    OPENREG_STRUCTURED_SPEC(functional, out, base)                   \
    ::openreg::ops::register_structured<Spec_##functional>(library); \
  }

// OPENREG_STRUCTURED_INPLACE(library, add_Tensor, add_out, add__Tensor, add)
#define OPENREG_STRUCTURED_INPLACE(library, functional, out, inplace, base)             \
  {                                                                                     \
    OPENREG_STRUCTURED_SPEC(functional, out, base)                                      \
    ::openreg::ops::register_structured<Spec_##functional, at::_ops::inplace>(library); \
  }
