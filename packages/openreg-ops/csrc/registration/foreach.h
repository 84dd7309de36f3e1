// SPDX-License-Identifier: BSD-3-Clause
// The short form for operators on lists of tensors (torch._foreach_*), by PyTorch's composite functions.
//
//   listwise<op::_foreach_exp, op::_foreach_exp_>(library, composite::_foreach_exp, composite::_foreach_exp_);
//
// Where all tensors of a list are dense, on one device and of one floating-point dtype, the composite function runs on
// the engine: one launch for the whole list. Else it runs on the host, one launch per tensor, and finds the dtypes and
// the mistakes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "launch/launch.h"
#include "registration/registry.h"

namespace at::compositeexplicitautograd {}

namespace openreg::ops {

namespace composite = at::compositeexplicitautograd;

// Whether one launch can work on a whole list.
bool is_uniform(at::TensorList list);

// Whether a further argument leaves shapes and dtypes of a uniform list as they are.
bool fits(at::TensorList list, at::TensorList other);
bool fits(at::TensorList list, const at::Tensor& number);
bool fits(at::TensorList list, const at::Scalar& number);
bool fits(at::TensorList list, at::ArrayRef<at::Scalar> numbers);
bool fits(at::TensorList list, bool option);

// Gives a list of tensors like its first operand, or writes into the tensors of that.
template <class Signature>
struct Listwise;
template <class Result, class... Args>
struct Listwise<Result(at::TensorList, Args...)> {
  using Composite = Result(at::TensorList, Args...);

  Operator op;
  const orAccess* accesses;
  Composite* composite;
  void (*check)(at::TensorList, Args...);  // throws for operands that the operator does not take; may be null

  static Result enter(const void* state, at::TensorList self, Args... args) {
    const auto& [op, accesses, composite, check] = *static_cast<const Listwise*>(state);
    const c10::Device device = device_of(op.name, self, args...);
    const CurrentDevice current(device);
    if (check != nullptr) {
      check(self, args...);
    }
    if (!is_uniform(self) || !(fits(self, args) && ...)) {
      return composite(self, args...);
    }
    const Hears when = hears_of(op, self, args...);
    if constexpr (std::is_void_v<Result>) {
      launch_owned<at::TensorList, Args...>(op, device, when, accesses, composite, self, args...);
    } else {
      Result outputs;
      outputs.reserve(self.size());
      for (const at::Tensor& tensor : self) {
        outputs.push_back(make_output(tensor.sizes(), tensor.strides(), tensor.options()));
      }
      const auto kernel = [composite = composite](at::TensorList results, at::TensorList operands, auto&&... rest) {
        const Result computed = composite(operands, rest...);
        for (size_t i = 0; i < computed.size(); ++i) {
          results[i].copy_(computed[i]);
        }
      };
      constexpr auto kAccesses = accesses_by_type<OutputList, at::TensorList, Args...>();
      launch_owned<OutputList, at::TensorList, Args...>(op, device, when, kAccesses.data(), kernel, OutputList{outputs},
                                                        self, args...);
      return outputs;
    }
  }
};

// Declares operators, each with the composite function of its signature: the one that gives lists and the one in place.
// All take what `kCheck`, which has their operands, does not throw for.
template <auto kCheck, class... Forms>
void listwise(torch::Library& library, SchemaOf<Forms>*... composites) {
  const auto declare = [&]<class Form>(Form /*form*/, SchemaOf<Form>* composite) {
    using Schema = SchemaOf<Form>;
    static const Listwise<Schema> forever{
        {Form::name, {.checked = true}}, kAccessesOf<Form, Schema>.data(), composite, kCheck};
    register_entry<Form, Schema>(library, {}, &forever, &Listwise<Schema>::enter);
  };
  (declare(Forms(), composites), ...);
}
template <class... Forms>
void listwise(torch::Library& library, SchemaOf<Forms>*... composites) {
  listwise<nullptr, Forms...>(library, composites...);
}

}  // namespace openreg::ops
