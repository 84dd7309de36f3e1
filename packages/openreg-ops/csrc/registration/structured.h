// SPDX-License-Identifier: BSD-3-Clause
// A template that registers operators that have a structured meta function and a CPU kernel.
// csrc/mechanisms/structured.cpp does the same by hand, as an example.
//
//   structured<meta::structured_hypot, op::hypot, op::hypot_>(library, cpu::hypot_outf, kFloats);
//
// registers the functional overload, the out= overload, and the in-place overload if it is named. In a call of each
// (overloads.h), PyTorch's own meta function checks the operands and requests outputs, which MetaOutputs allocates or
// checks. Source: the code that torchgen generates for CUDA does that in this way. The functions for operator files are
// at the end.
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

#include "registration/overloads.h"

namespace openreg::ops {

// The outputs of one call, which the meta function requests. It supplies them to a MetaCall, which derives from
// PyTorch's class for the meta function.
class MetaOutputs {
 public:
  // Throws c10::Error if `output` is also an operand, and `sizes` are not its sizes.
  using CheckSizes = c10::function_ref<void(const at::Tensor& output, c10::IntArrayRef sizes)>;

  // `outputs` are undefined, or the tensors of the caller. `instead` has as many undefined tensors.
  MetaOutputs(OverloadKind kind, at::Tensor* outputs, at::Tensor* instead, CheckSizes check_sizes)
      : kind_(kind), outputs_(outputs), instead_(instead), check_sizes_(check_sizes) {}

  const at::Tensor& get(int64_t index) const { return outputs_[index]; }

  // Allocates an output, or checks the caller's tensor and resizes it. Called for set_output_strided() and for
  // set_output_raw_strided() alike, because RunKernel below restores strides that a kernel changes. `is_iterator`: the
  // meta function is that of a TensorIterator.
  void provide(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options,
               bool is_iterator);

 private:
  OverloadKind kind_;
  at::Tensor* outputs_;
  // Replacements for out= tensors whose strides differ from those of a new output. Results are copied from there,
  // because many kernels write contiguously and would write out of bounds. Kernels of an iterator do not. Expanded
  // tensors get no replacement, because nothing can be copied to them.
  at::Tensor* instead_;
  CheckSizes check_sizes_;
};

// An object of PyTorch's class for a meta function, `Base`, that takes its outputs from MetaOutputs.
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
      // After provide(), because the iterator calls maybe_get_output().
      at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options);
    }
  }

 private:
  MetaOutputs& outputs_;
};

// Returns an argument in the type that a meta function takes, where the operator takes another one.
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

// A test for the most frequent operands of an elementwise operator: contiguous tensors of one shape and floating dtype,
// and numbers. For these, PyTorch's meta function would choose an output like them and their dtype. It is skipped
// because it is the longest part of such a call.
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

// Calls `kernel(args..., outputs...)` on aliases. A few kernels change the strides of their output or set its conjugate
// bit, but the device tensor keeps its layout. Then the values are copied to their places in that layout. The layout of
// the alias is restored, because a graph may execute the launch again.
struct RunKernel {
  template <class Kernel, size_t kOutputs, class... Args>
  void operator()(const char* name, Kernel* kernel, std::array<at::Tensor, kOutputs>& outputs, Args&&... args) const {
    std::array<OutputLayout, kOutputs> layouts;
    for (size_t i = 0; i < kOutputs; ++i) {
      layouts[i] = {c10::DimVector(outputs[i].sizes()), c10::DimVector(outputs[i].strides()), outputs[i].is_conj()};
    }
    std::apply([&](auto&... output) { kernel(std::forward<Args>(args)..., output...); }, outputs);
    for (size_t i = 0; i < kOutputs; ++i) {
      restore(name, outputs[i], layouts[i]);
    }
  }

 private:
  struct OutputLayout {
    c10::DimVector sizes;
    c10::DimVector strides;
    bool is_conj;
  };
  static void restore(const char* name, at::Tensor& output, const OutputLayout& layout);
};

// The outputs of a structured operator with this functional signature, which PyTorch's meta function requests.
template <class Signature>
struct StructuredOutputs;
template <class Result, class... Args>
struct StructuredOutputs<Result(Args...)> {
  using Kernel = OutSignature<Result(Args...)>;
  using Runner = RunKernel;
  using Tensors = std::array<at::Tensor, kOutputsOf<Result(Args...)>>;

  std::optional<c10::ScalarType> (*meta)(MetaOutputs&, Args...);  // call_meta() for the class of the meta function
  bool is_iterator;

  // Runs the meta function of the class Meta. Returns the dtype in which the kernel computes if an iterator determines
  // it. Otherwise that is the dtype of the first operand, and the result is empty.
  template <class Meta>
  static std::optional<c10::ScalarType> call_meta(MetaOutputs& outputs, Args... args) {
    MetaCall<Meta> call(outputs);
    call.meta(meta_argument(args)...);
    if constexpr (MetaCall<Meta>::kIsIterator) {
      return call.maybe_common_dtype();
    } else {
      return std::nullopt;
    }
  }

  // Returns the dtype in which the kernel computes, as call_meta() does.
  std::optional<c10::ScalarType> prepare(const Operator& op, OverloadKind kind, c10::Device /*device*/,
                                         Tensors& outputs, Tensors& instead, Args... args) const {
    if (op.traits.elementwise && kind == OverloadKind::kFunctional) {
      const ElementwiseOperands operands(args...);
      if (operands.are_alike()) {
        outputs[0] = operands.make_output();
        return operands.dtype();
      }
    }
    const auto check_sizes = [&](const at::Tensor& output, c10::IntArrayRef sizes) {
      check_operands_keep_size(output, sizes, args...);
    };
    MetaOutputs wanted(kind, outputs.data(), instead.data(), check_sizes);
    return meta(wanted, args...);
  }

  // Throws c10::Error for an overlap of an output that the kernel rejects and the meta function does not.
  void check(const Operator& op, OverloadKind kind, const Tensors& outputs, Args... args) const {
    if (kind != OverloadKind::kFunctional && op.traits.overlap.rejects() && !is_iterator) {
      for (const at::Tensor& output : outputs) {
        check_overlap_rule(op.traits.overlap, output, args...);
      }
    }
  }
};

// The type of the operator that Functional (at::_ops) names.
template <class Functional>
using Structured = Overloads<SchemaOf<Functional>, StructuredOutputs<SchemaOf<Functional>>>;

// Returns the operator that Functional (at::_ops) names, with the meta function of the class Meta. A file that extends
// an overload keeps the operator as a constant, and calls its functional(), out() and inplace().
template <class Meta, class Functional>
auto structured_operator(OutSignature<SchemaOf<Functional>>* kernel, const KernelTraits& traits = {},
                         const typename Structured<Functional>::Hooks& hooks = {}) {
  using Outputs = StructuredOutputs<SchemaOf<Functional>>;
  constexpr bool kIsIterator = MetaCall<Meta>::kIsIterator;
  KernelTraits with_iterator = traits;
  with_iterator.checked |= kIsIterator;  // its kernel takes the iterator, which has checked the operands, unchanged
  return Structured<Functional>{
      {Functional::name, with_iterator}, kernel, {&Outputs::template call_meta<Meta>, kIsIterator}, hooks};
}

// Registers the overloads of an operator by its meta function and kernel.
template <class Meta, class Functional, class... Inplace>
void structured(torch::Library& library, OutSignature<SchemaOf<Functional>>* kernel, const KernelTraits& traits = {},
                const typename Structured<Functional>::Hooks& hooks = {}) {
  static const auto forever = structured_operator<Meta, Functional>(kernel, traits, hooks);
  register_overloads<Functional, Inplace...>(library, forever);
}

}  // namespace openreg::ops
