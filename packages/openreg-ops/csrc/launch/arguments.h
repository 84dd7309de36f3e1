// SPDX-License-Identifier: BSD-3-Clause
// The types in which a launch owns the arguments of an operator. A kernel runs after the call has returned, when the
// caller's arrays and tensors may be gone. So references become values, and tensors become descriptors of aliases (CPU
// tensors over the bytes of device tensors).
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/macros/Macros.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "launch/operand_descriptor.h"
#include "openreg/runtime/alias.h"
#include "support/device_check.h"

namespace openreg::ops {

// Owned<T> owns an argument of type T. The host makes it from (value, aliases): runtime::AliasBuilder makes the
// descriptors of one launch. Each execution of the kernel calls get(storages) once, which returns a T:
// runtime::AliasStorages holds the storages of the aliases of this execution. The engine thread executes the kernel; in
// a dry run (a call of the kernel on zero-filled stand-ins for its checks alone, dry_run.h) the calling thread does.
//
// A tensor argument has an OperandDescriptor, which describes operands of any layout, sparse and quantized ones too.
// Optional tensors and lists have a runtime::AliasDescriptor per tensor, which describes only strided tensors without a
// quantizer.

// Owns everything that contains no tensor and no reference by value: numbers, enums, Scalars, dtypes, optionals of
// them, and arrays of bool.
template <class T>
struct Owned {
  using Decayed = std::remove_cv_t<std::remove_reference_t<T>>;
  Owned(const Decayed& value, runtime::AliasBuilder& /*aliases*/) : held(value) {}
  const Decayed& get(runtime::AliasStorages& /*storages*/) const { return held; }
  Decayed held;
};

template <>
struct Owned<const at::Tensor&> {
  Owned(const at::Tensor& value, runtime::AliasBuilder& aliases) : descriptor(value, aliases) {}
  const at::Tensor& get(runtime::AliasStorages& storages) { return descriptor.make_tensor(storages); }
  OperandDescriptor descriptor;
};

template <>
struct Owned<at::Tensor&> {
  Owned(const at::Tensor& value, runtime::AliasBuilder& aliases) : descriptor(value, aliases) {}
  at::Tensor& get(runtime::AliasStorages& storages) { return descriptor.make_tensor(storages); }
  OperandDescriptor descriptor;
};

// Owns an output that may be absent: the kernel writes into it if it is there.
template <>
struct Owned<std::optional<at::Tensor>&> {
  Owned(const std::optional<at::Tensor>& value, runtime::AliasBuilder& aliases)
      : descriptor(value.has_value() ? aliases.describe(*value) : runtime::AliasDescriptor()),
        held(value.has_value()) {}
  std::optional<at::Tensor>& get(runtime::AliasStorages& storages) {
    if (held) {
      made = descriptor.make_tensor(storages);
    }
    return made;
  }
  runtime::AliasDescriptor descriptor;
  bool held;
  std::optional<at::Tensor> made;
};

template <>
struct Owned<const std::optional<at::Tensor>&> {
  Owned(const std::optional<at::Tensor>& value, runtime::AliasBuilder& aliases) {
    if (value.has_value()) {
      descriptor.emplace(aliases.describe(*value));
    }
  }
  const std::optional<at::Tensor>& get(runtime::AliasStorages& storages) {
    if (descriptor.has_value()) {
      held = descriptor->make_tensor(storages);
    }
    return held;
  }
  std::optional<runtime::AliasDescriptor> descriptor;
  std::optional<at::Tensor> held;
};

// Returns the descriptors of a list of tensors.
template <class List>
std::vector<runtime::AliasDescriptor> descriptors_of(const List& list, runtime::AliasBuilder& aliases) {
  std::vector<runtime::AliasDescriptor> descriptors;
  descriptors.reserve(list.size());
  for (const at::Tensor& tensor : list) {
    descriptors.push_back(aliases.describe(tensor));
  }
  return descriptors;
}

// Replaces `made` by the aliases of all descriptors, in order.
inline void make_all(std::vector<runtime::AliasDescriptor>& descriptors, std::vector<at::Tensor>& made,
                     runtime::AliasStorages& storages) {
  made.clear();
  made.reserve(descriptors.size());
  for (runtime::AliasDescriptor& descriptor : descriptors) {
    made.push_back(descriptor.make_tensor(storages));
  }
}

template <>
struct Owned<at::TensorList> {
  Owned(at::TensorList value, runtime::AliasBuilder& aliases) : descriptors(descriptors_of(value, aliases)) {}
  at::TensorList get(runtime::AliasStorages& storages) {
    make_all(descriptors, held, storages);
    return held;
  }
  std::vector<runtime::AliasDescriptor> descriptors;
  std::vector<at::Tensor> held;
};

// A list of tensors that the kernel writes. This type marks them as outputs (access_by_type()). Its get() returns an
// at::TensorList, which the kernel takes.
struct OutputList {
  at::TensorList tensors;
};

template <class Visit>
void for_each_tensor(Visit&& visit, const OutputList& outputs) {
  for_each_tensor(visit, outputs.tensors);
}

template <>
struct Owned<OutputList> : Owned<at::TensorList> {
  Owned(const OutputList& value, runtime::AliasBuilder& aliases) : Owned<at::TensorList>(value.tensors, aliases) {}
};

template <>
struct Owned<const at::ITensorListRef&> {
  Owned(const at::ITensorListRef& value, runtime::AliasBuilder& aliases)
      : descriptors(descriptors_of(value, aliases)) {}
  at::ITensorListRef get(runtime::AliasStorages& storages) {
    make_all(descriptors, held, storages);
    return at::ITensorListRef(held);
  }
  std::vector<runtime::AliasDescriptor> descriptors;
  std::vector<at::Tensor> held;
};

template <>
struct Owned<const c10::List<std::optional<at::Tensor>>&> {
  using OptionalTensors = c10::List<std::optional<at::Tensor>>;
  Owned(const OptionalTensors& value, runtime::AliasBuilder& aliases) {
    descriptors.reserve(value.size());
    for (const std::optional<at::Tensor> tensor : value) {
      descriptors.push_back(aliases.describe(tensor.has_value() ? *tensor : at::Tensor()));
    }
  }
  const OptionalTensors& get(runtime::AliasStorages& storages) {
    held.clear();
    for (runtime::AliasDescriptor& descriptor : descriptors) {
      const at::Tensor& tensor = descriptor.make_tensor(storages);
      held.push_back(tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt);
    }
    return held;
  }
  std::vector<runtime::AliasDescriptor> descriptors;
  OptionalTensors held;
};

template <class Element>
struct Owned<c10::ArrayRef<Element>> {
  Owned(c10::ArrayRef<Element> value, runtime::AliasBuilder& /*aliases*/) : held(value.begin(), value.end()) {}
  c10::ArrayRef<Element> get(runtime::AliasStorages& /*storages*/) const { return held; }
  c10::SmallVector<Element, 6> held;
};

template <>
struct Owned<at::OptionalIntArrayRef> {
  Owned(at::OptionalIntArrayRef value, runtime::AliasBuilder& /*aliases*/) {
    if (value.has_value()) {
      held.emplace(value->begin(), value->end());
    }
  }
  at::OptionalIntArrayRef get(runtime::AliasStorages& /*storages*/) const {
    return held.has_value() ? at::OptionalIntArrayRef(c10::IntArrayRef(*held)) : std::nullopt;
  }
  std::optional<c10::SmallVector<int64_t, 6>> held;
};

template <>
struct Owned<std::optional<c10::ArrayRef<double>>> {
  Owned(std::optional<c10::ArrayRef<double>> value, runtime::AliasBuilder& /*aliases*/) {
    if (value.has_value()) {
      held.emplace(value->begin(), value->end());
    }
  }
  std::optional<c10::ArrayRef<double>> get(runtime::AliasStorages& /*storages*/) const {
    return held.has_value() ? std::optional(c10::ArrayRef<double>(*held)) : std::nullopt;
  }
  std::optional<std::vector<double>> held;
};

template <>
struct Owned<std::string_view> {
  Owned(std::string_view value, runtime::AliasBuilder& /*aliases*/) : held(value) {}
  std::string_view get(runtime::AliasStorages& /*storages*/) const { return held; }
  std::string held;
};

template <>
struct Owned<std::optional<std::string_view>> {
  Owned(std::optional<std::string_view> value, runtime::AliasBuilder& /*aliases*/) {
    if (value.has_value()) {
      held.emplace(*value);
    }
  }
  std::optional<std::string_view> get(runtime::AliasStorages& /*storages*/) const {
    return held.has_value() ? std::optional<std::string_view>(*held) : std::nullopt;
  }
  std::optional<std::string> held;
};

// The arguments that a launch owns. It is not a std::tuple, because each argument is constructed in place.
template <class Indices, class... Args>
class OwnedArguments;

template <size_t kIndex, class T>
struct OwnedArgument {
  Owned<T> owned;
};

template <size_t... Index, class... Args>
class OwnedArguments<std::index_sequence<Index...>, Args...> : OwnedArgument<Index, Args>... {
 public:
  // `accesses` contains the access of the kernel to each argument. Not inlined, because the code is long, and
  // launch_with_policy() contains three calls of it.
  C10_NOINLINE OwnedArguments(runtime::AliasBuilder& aliases, [[maybe_unused]] const orAccess* accesses,
                              const std::remove_reference_t<Args>&... args)
      : OwnedArgument<Index, Args>{Owned<Args>(args, aliases.as(accesses[Index]))}... {}

  // Returns `function(arguments...)`, with aliases in `storages` as tensors. Runs on the thread that executes the
  // kernel.
  template <class Function>
  decltype(auto) apply(Function&& function, runtime::AliasStorages& storages) {
    return function(static_cast<OwnedArgument<Index, Args>&>(*this).owned.get(storages)...);
  }
};

template <class... Args>
using OwnedArgumentsOf = OwnedArguments<std::index_sequence_for<Args...>, Args...>;

}  // namespace openreg::ops
