// SPDX-License-Identifier: BSD-3-Clause
// The short form for operators that have a structured meta function and a CPU kernel; csrc/mechanisms/structured.cpp is
// what it abbreviates.
//
//   structured<meta::structured_hypot, op::hypot, op::hypot_>(library, cpu::hypot_outf, kFloats);
//
// declares the functional form, the out= form, and where it is named the in-place form. A call runs in three steps: (1)
// on the host, PyTorch's own meta function checks the operands and asks for outputs, which we allocate or check; (2)
// operands and outputs get aliases; (3) the CPU kernel is launched on the aliases. Source: the code that torchgen
// generates for CUDA does (1) the same way. What a file calls stands last.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/FunctionRef.h>

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch/launch.h"
#include "registration/registry.h"

namespace openreg::ops {

// The outputs of one call, which the meta function asks for.
class MetaOutputs {
 public:
  enum class Form { kFunctional, kOut, kInplace };

  // Throws c10::Error where an output that is an operand, too, would get these sizes and has others.
  using CheckSizes = c10::function_ref<void(const at::Tensor& output, c10::IntArrayRef sizes)>;

  // `outputs` are new and undefined, or what the caller gave. `instead` are as many.
  MetaOutputs(Form form, at::Tensor* outputs, at::Tensor* instead, CheckSizes check_sizes)
      : form_(form), outputs_(outputs), instead_(instead), check_sizes_(check_sizes) {}

  const at::Tensor& get(int64_t index) const { return outputs_[index]; }

  // Makes an output, or checks the given one and gives it the size. An output whose strides the kernel prescribes and
  // one whose strides it takes as they are need no difference here: where a kernel settles the strides anew, RunKernel
  // undoes it.
  void provide(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options,
               bool is_iterator);

 private:
  Form form_;
  at::Tensor* outputs_;
  // An out= tensor of other strides than a new output would have gets its values from one. Many kernels write one
  // element after the other, and would write beyond it; those of an iterator do not. Nothing can be copied to expanded
  // tensors.
  at::Tensor* instead_;
  CheckSizes check_sizes_;
};

// `Base` is PyTorch's class of the meta function.
template <class Base>
class MetaCall final : public Base {
 public:
  static constexpr bool kIsIterator = std::is_base_of_v<at::TensorIteratorBase, Base>;

  explicit MetaCall(MetaOutputs& outputs) : outputs_(outputs) {}

  const at::Tensor& maybe_get_output(int64_t index) override { return outputs_.get(index); }
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    set_output_raw_strided(index, sizes, strides, options);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    outputs_.provide(index, sizes, strides, options, kIsIterator);
    if constexpr (kIsIterator) {
      // After the output exists, because the iterator asks for it.
      at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options);
    }
  }

 private:
  MetaOutputs& outputs_;
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

// Runs the meta function and gives the dtype in which the kernel computes, where that is an iterator's to settle; else
// it is the first operand's.
template <class Base, class... Args>
std::optional<c10::ScalarType> call_meta(MetaOutputs& outputs, Args... args) {
  MetaCall<Base> call(outputs);
  call.meta(meta_argument(args)...);
  if constexpr (MetaCall<Base>::kIsIterator) {
    return call.maybe_common_dtype();
  } else {
    return std::nullopt;
  }
}

// The commonest operands of an operator that works element by element: contiguous tensors of one shape and floating
// dtype, and numbers. For these PyTorch's meta function, which is the longest part of such a call, would settle on an
// output like them and on their dtype.
class ElementwiseOperands {
 public:
  template <class... Args>
  explicit ElementwiseOperands(const Args&... args) {
    (look(args), ...);
  }

  bool are_alike() const { return alike_ && first_ != nullptr; }
  c10::ScalarType dtype() const { return first_->scalar_type(); }
  at::Tensor make_output() const { return ops::make_output(first_->sizes(), {}, at::TensorOptions().dtype(dtype())); }

 private:
  void look(const at::Tensor& tensor) {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (first_ == nullptr) {
      first_ = &tensor;
      alike_ = tensor.defined() && tensor.device().type() == runtime::kDeviceType &&
               (dtype_bit(tensor.scalar_type()) & kFloating) != 0 && is_plain(impl);
    } else if (alike_ && !(impl.is_wrapped_number() && !tensor.is_complex())) {
      alike_ = tensor.device() == first_->device() && tensor.dtype() == first_->dtype() &&
               tensor.sizes() == first_->sizes() && is_plain(impl);
    }
  }
  void look(const at::Scalar& number) { alike_ = alike_ && !number.isBoolean() && !number.isComplex(); }
  template <class T>
  void look(const T& /*option*/) {}
  template <class T>
  void look(const std::optional<T>& option) {
    alike_ = alike_ && !option.has_value();
  }

  static bool is_plain(const c10::TensorImpl& tensor) {
    return tensor.is_contiguous() && !tensor.is_wrapped_number() && tensor.layout() == c10::kStrided;
  }

  const at::Tensor* first_ = nullptr;
  bool alike_ = true;
};

// Calls `kernel(args..., outputs...)`. A few kernels give their output other strides, or leave it to be conjugated; the
// tensor that it is an alias of stays as it is, so the values are put in their places, and the alias is as before for
// another run.
struct RunKernel {
  template <class Kernel, size_t kOutputs, class... Args>
  void operator()(const char* name, Kernel* kernel, std::array<at::Tensor, kOutputs>& outputs, Args&&... args) const {
    std::array<Layout, kOutputs> layouts;
    for (size_t i = 0; i < kOutputs; ++i) {
      layouts[i] = {c10::DimVector(outputs[i].sizes()), c10::DimVector(outputs[i].strides()), outputs[i].is_conj()};
    }
    std::apply([&](auto&... output) { kernel(std::forward<Args>(args)..., output...); }, outputs);
    for (size_t i = 0; i < kOutputs; ++i) {
      restore(name, outputs[i], layouts[i]);
    }
  }

 private:
  struct Layout {
    c10::DimVector sizes;
    c10::DimVector strides;
    bool is_conj;
  };
  static void restore(const char* name, at::Tensor& output, const Layout& layout);
};

// A structured operator of this functional signature: what the forms share. Index counts the outputs.
template <class Signature, class Indices = std::make_index_sequence<kOutputsOf<Signature>>>
struct Structured;

template <class Result, class... Args, size_t... Index>
struct Structured<Result(Args...), std::index_sequence<Index...>> {
  static constexpr size_t kOutputs = sizeof...(Index);
  using OutResult = OutResultOf<kOutputs>;
  using Kernel = OutResult(Args..., OutputReference<Index>...);
  using Outputs = std::array<at::Tensor, kOutputs>;

  // What an operator may add.
  struct Hooks {
    // Called on the calling line, before the meta function: what that does not check, or warn of.
    void (*check)(Args...) = nullptr;
    // The same after it, for what the kernel would refuse of the outputs.
    void (*check_outputs)(Args..., OutputReference<Index>...) = nullptr;
    // Launches another kernel, or gives false for operands that it does not serve, which then go to `kernel`.
    bool (*launch_own)(c10::Device, Args..., OutputReference<Index>...) = nullptr;
  };

  const char* name;
  std::optional<c10::ScalarType> (*meta)(MetaOutputs&, Args...);
  bool is_iterator;
  Kernel* kernel;
  KernelRule rule;
  Hooks hooks;

  Result functional(Args... args) const {
    Outputs outputs;
    run(MetaOutputs::Form::kFunctional, outputs, args...);
    return Result(std::move(outputs[Index])...);
  }

  OutResult out(Args... args, OutputReference<Index>... given) const {
    Outputs outputs{given...};
    run(MetaOutputs::Form::kOut, outputs, args...);
    return OutResult(given...);
  }

  // Of one output, which is the first operand. `rest` are the further arguments.
  template <class... Rest>
  at::Tensor& inplace(at::Tensor& self, Rest... rest) const {
    Outputs outputs{self};
    run(MetaOutputs::Form::kInplace, outputs, self, rest...);
    return self;
  }

  // The forms as the dispatcher calls them. `state` is the operator.
  static Result enter_functional(const void* state, Args... args) {
    return static_cast<const Structured*>(state)->functional(args...);
  }
  static OutResult enter_out(const void* state, Args... args, OutputReference<Index>... given) {
    return static_cast<const Structured*>(state)->out(args..., given...);
  }
  template <class... Rest>
  static at::Tensor& enter_inplace(const void* state, at::Tensor& self, Rest... rest) {
    return static_cast<const Structured*>(state)->inplace(self, rest...);
  }

 private:
  void run(MetaOutputs::Form form, Outputs& outputs, Args... args) const {
    const c10::Device device = device_of(name, args..., outputs[Index]...);
    if (!is_iterator) {
      check_same_device(name, device, args...);  // a TensorIterator checks by itself, and takes scalars on the CPU
    }
    const CurrentDevice current(device);
    if (hooks.check != nullptr) {
      hooks.check(args...);
    }
    Outputs instead;
    const std::optional<c10::ScalarType> computed = make_outputs(form, outputs, instead, args...);
    if (hooks.check_outputs != nullptr) {
      hooks.check_outputs(args..., outputs[Index]...);
    }
    bool refuses = may_refuse(name, rule, computed, args...);
    if constexpr ((is_mode<Args> || ...)) {
      refuses |= may_refuse_mode(name, rule, computed, args...);
    }
    const Hears when = hears(rule, refuses, computed, args...);
    if (form != MetaOutputs::Form::kFunctional && rule.overlap.refuses() && !is_iterator) {
      (check_overlap_rule(rule.overlap, outputs[Index], args...), ...);
    }
    if (hooks.launch_own != nullptr && when == Hears::kLater && hooks.launch_own(device, args..., outputs[Index]...)) {
      return;
    }
    (exchange(outputs[Index], instead[Index]), ...);
    launch_on_aliases<RunKernel, Kernel, kOutputs, Args...>(name, device, when, kernel, outputs, computed, args...);
    (put_back(instead[Index], outputs[Index]), ...);
  }

  // Gives the dtype in which the kernel computes, as call_meta() does.
  std::optional<c10::ScalarType> make_outputs(MetaOutputs::Form form, Outputs& outputs, Outputs& instead,
                                              Args... args) const {
    if (rule.elementwise && form == MetaOutputs::Form::kFunctional) {
      const ElementwiseOperands operands(args...);
      if (operands.are_alike()) {
        outputs[0] = operands.make_output();
        return operands.dtype();
      }
    }
    const auto check_sizes = [&](const at::Tensor& output, c10::IntArrayRef sizes) {
      check_operands_keep_size(output, sizes, args...);
    };
    MetaOutputs wanted(form, outputs.data(), instead.data(), check_sizes);
    return meta(wanted, args...);
  }

  static void exchange(at::Tensor& output, at::Tensor& instead) {
    if (C10_UNLIKELY(instead.defined())) {
      std::swap(output, instead);
    }
  }
  static void put_back(at::Tensor& given, const at::Tensor& computed) {
    if (C10_UNLIKELY(given.defined())) {
      given.copy_(computed);
    }
  }
};

// The operator that Functional (at::_ops) names, with the meta function of the class Meta. A file that adds something
// to a form keeps it as a constant, and calls its functional(), out() and inplace().
template <class Meta, class Functional>
auto structured_operator(typename Structured<SchemaOf<Functional>>::Kernel* kernel, const KernelRule& rule = {},
                         const typename Structured<SchemaOf<Functional>>::Hooks& hooks = {}) {
  constexpr bool kIsIterator = std::is_base_of_v<at::TensorIteratorBase, Meta>;
  KernelRule with_iterator = rule;
  with_iterator.checked |= kIsIterator;  // its kernel takes the iterator, which has checked the operands, as it is
  return [&]<class Result, class... Args>(Result (*)(Args...)) {
    return Structured<Result(Args...)>{
        Functional::name, &call_meta<Meta, Args...>, kIsIterator, kernel, with_iterator, hooks};
  }(static_cast<SchemaOf<Functional>*>(nullptr));
}

// Declares the forms of an operator that lives for ever.
template <class Functional, class... Inplace, class Signature>
void structured(torch::Library& library, const Structured<Signature>& forever) {
  using Operator = Structured<Signature>;
  using Out = typename Operator::Kernel;
  register_entry<Functional, Signature>(library, forever.rule, &forever, &Operator::enter_functional);
  register_out_entry<Functional, Out>(library, &forever, &Operator::enter_out);
  [[maybe_unused]] const auto add_inplace = [&]<class Form, class... Rest>(Form /*form*/,
                                                                           at::Tensor& (*)(at::Tensor&, Rest...)) {
    static_assert(std::is_same_v<Signature, at::Tensor(const at::Tensor&, Rest...)>,
                  "not the in-place form of this operator");
    register_entry<Form, SchemaOf<Form>>(library, {}, &forever, &Operator::template enter_inplace<Rest...>);
  };
  (add_inplace(Inplace(), static_cast<SchemaOf<Inplace>*>(nullptr)), ...);
}

// Declares an operator.
template <class Meta, class Functional, class... Inplace>
void structured(torch::Library& library, typename Structured<SchemaOf<Functional>>::Kernel* kernel,
                const KernelRule& rule = {}, const typename Structured<SchemaOf<Functional>>::Hooks& hooks = {}) {
  static const auto forever = structured_operator<Meta, Functional>(kernel, rule, hooks);
  structured<Functional, Inplace...>(library, forever);
}

}  // namespace openreg::ops
