// SPDX-License-Identifier: BSD-3-Clause
// A template that registers operators on lists of tensors (torch._foreach_*), with PyTorch's composite functions for
// them.
//
//   foreach_ops<op::_foreach_exp, op::_foreach_exp_>(library, composite::_foreach_exp, composite::_foreach_exp_);
//
// If all tensors of a list are dense, on one device and of one floating-point dtype, one launch for the whole list runs
// the composite function on the engine, as its kernel. Otherwise it runs on the host, with one launch per tensor, and
// the operators inside determine dtypes and reject wrong arguments.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "launch/launch.h"
#include "registration/registry.h"

namespace at::compositeexplicitautograd {}

namespace openreg::ops {

namespace composite = at::compositeexplicitautograd;

// Returns true if one launch can process the whole list: it is not empty, and its tensors are dense, on one device and
// of one floating-point dtype.
bool is_uniform(at::TensorList list);

// Return true if another argument does not change the shapes and dtypes of the results for a uniform list, and the
// operators inside do not reject it by its type: some reject a boolean number, such as the `alpha` of add.
bool fits(at::TensorList list, at::TensorList other);
bool fits(at::TensorList list, const at::Tensor& number);
bool fits(at::TensorList list, const at::Scalar& number);
bool fits(at::TensorList list, at::ArrayRef<at::Scalar> numbers);
bool fits(at::TensorList list, bool option);

// Returns true if a tensor of a list, into which an operator writes, shares a part of its elements with the tensor at
// its place in another list. The operators inside reject that.
bool overlaps_partly(at::TensorList written, at::TensorList read);
template <class T>
bool overlaps_partly(at::TensorList /*written*/, const T& /*no_list*/) {
  return false;
}

// One overload of an operator on lists. It returns a list of tensors like its first operand, or writes into the tensors
// of that operand.
template <class Signature>
struct ForeachOp;
template <class Result, class... Args>
struct ForeachOp<Result(at::TensorList, Args...)> {
  using Composite = Result(at::TensorList, Args...);

  Operator op;
  const orAccess* accesses;
  Composite* composite;
  void (*check)(at::TensorList, Args...);  // throws c10::Error for operands that the operator rejects; may be null

  Result operator()(at::TensorList self, Args... args) const {
    const c10::Device device = device_of(op.name, self, args...);
    const CurrentDeviceGuard current(device);
    if (check != nullptr) {
      check(self, args...);
    }
    if (!is_uniform(self) || !(fits(self, args) && ...)) {
      return composite(self, args...);
    }
    if constexpr (std::is_void_v<Result>) {
      if ((overlaps_partly(self, args) || ...)) {
        return composite(self, args...);
      }
    }
    const SyncPolicy policy = sync_policy_of(op, self, args...);
    if constexpr (std::is_void_v<Result>) {
      launch_owned<at::TensorList, Args...>(op, device, policy, accesses, composite, self, args...);
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
      launch_owned<OutputList, at::TensorList, Args...>(op, device, policy,
                                                        kAccessesByType<OutputList, at::TensorList, Args...>.data(),
                                                        kernel, OutputList{outputs}, self, args...);
      return outputs;
    }
  }
};

// Registers overloads, each with the composite function of its signature: the one that returns lists and the in-place
// one. `kCheck` takes the operands and throws c10::Error for those that the operators reject.
template <auto kCheck, class... Ops>
void foreach_ops(torch::Library& library, SchemaOf<Ops>*... composites) {
  const auto declare = [&]<class Op>(Op /*overload*/, SchemaOf<Op>* composite) {
    using Registered = ForeachOp<SchemaOf<Op>>;
    static const Registered forever{
        {Op::name, {.checked = true}}, kAccessesOf<Op, SchemaOf<Op>>.data(), composite, kCheck};
    register_member<Op, &Registered::operator()>(library, {}, forever);
  };
  (declare(Ops(), composites), ...);
}
template <class... Ops>
void foreach_ops(torch::Library& library, SchemaOf<Ops>*... composites) {
  foreach_ops<nullptr, Ops...>(library, composites...);
}

}  // namespace openreg::ops
