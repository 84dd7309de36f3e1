// SPDX-License-Identifier: BSD-3-Clause
// The forms in which a launch owns the arguments of an operator. A kernel runs after the call returned, when the
// caller's arrays and tensors may be gone: references become values, tensors become aliases.
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "openreg/runtime/alias.h"

namespace openreg::ops {

// Owned<T> holds what an operator takes as T. Built from (value, aliases); get() gives a T back, any number of times.

// Numbers, enums, Scalars, dtypes, and optionals of them own themselves.
template <class T>
struct Owned {
  using Value = std::remove_cv_t<std::remove_reference_t<T>>;
  Owned(const Value& value, runtime::Aliases& /*aliases*/) : held(value) {}
  const Value& get() const { return held; }
  Value held;
};

template <>
struct Owned<const at::Tensor&> {
  Owned(const at::Tensor& value, runtime::Aliases& aliases) : held(aliases(value)) {}
  const at::Tensor& get() const { return held; }
  at::Tensor held;
};

template <>
struct Owned<at::Tensor&> {
  Owned(const at::Tensor& value, runtime::Aliases& aliases) : held(aliases(value)) {}
  at::Tensor& get() { return held; }
  at::Tensor held;
};

template <>
struct Owned<const std::optional<at::Tensor>&> {
  Owned(const std::optional<at::Tensor>& value, runtime::Aliases& aliases) {
    if (value.has_value()) {
      held = aliases(*value);
    }
  }
  const std::optional<at::Tensor>& get() const { return held; }
  std::optional<at::Tensor> held;
};

template <>
struct Owned<at::TensorList> {
  Owned(at::TensorList value, runtime::Aliases& aliases) {
    held.reserve(value.size());
    for (const at::Tensor& tensor : value) {
      held.push_back(aliases(tensor));
    }
  }
  at::TensorList get() const { return held; }
  std::vector<at::Tensor> held;
};

template <>
struct Owned<const at::ITensorListRef&> {
  Owned(const at::ITensorListRef& value, runtime::Aliases& aliases) {
    held.reserve(value.size());
    for (const at::Tensor& tensor : value) {
      held.push_back(aliases(tensor));
    }
  }
  at::ITensorListRef get() const { return at::ITensorListRef(held); }
  std::vector<at::Tensor> held;
};

template <>
struct Owned<const c10::List<std::optional<at::Tensor>>&> {
  using List = c10::List<std::optional<at::Tensor>>;
  Owned(const List& value, runtime::Aliases& aliases) {
    held.reserve(value.size());
    for (const std::optional<at::Tensor> tensor : value) {
      held.push_back(tensor.has_value() ? std::optional<at::Tensor>(aliases(*tensor)) : std::nullopt);
    }
  }
  const List& get() const { return held; }
  List held;
};

template <class Element>
struct Owned<c10::ArrayRef<Element>> {
  Owned(c10::ArrayRef<Element> value, runtime::Aliases& /*aliases*/) : held(value.begin(), value.end()) {}
  c10::ArrayRef<Element> get() const { return held; }
  c10::SmallVector<Element, 6> held;
};

template <>
struct Owned<at::OptionalIntArrayRef> {
  Owned(at::OptionalIntArrayRef value, runtime::Aliases& /*aliases*/) {
    if (value.has_value()) {
      held.emplace(value->begin(), value->end());
    }
  }
  at::OptionalIntArrayRef get() const {
    return held.has_value() ? at::OptionalIntArrayRef(c10::IntArrayRef(*held)) : std::nullopt;
  }
  std::optional<c10::SmallVector<int64_t, 6>> held;
};

template <>
struct Owned<std::optional<c10::ArrayRef<double>>> {
  Owned(std::optional<c10::ArrayRef<double>> value, runtime::Aliases& /*aliases*/) {
    if (value.has_value()) {
      held.emplace(value->begin(), value->end());
    }
  }
  std::optional<c10::ArrayRef<double>> get() const {
    return held.has_value() ? std::optional(c10::ArrayRef<double>(*held)) : std::nullopt;
  }
  std::optional<std::vector<double>> held;
};

template <>
struct Owned<std::string_view> {
  Owned(std::string_view value, runtime::Aliases& /*aliases*/) : held(value) {}
  std::string_view get() const { return held; }
  std::string held;
};

template <>
struct Owned<std::optional<std::string_view>> {
  Owned(std::optional<std::string_view> value, runtime::Aliases& /*aliases*/) {
    if (value.has_value()) {
      held.emplace(*value);
    }
  }
  std::optional<std::string_view> get() const {
    return held.has_value() ? std::optional<std::string_view>(*held) : std::nullopt;
  }
  std::optional<std::string> held;
};

}  // namespace openreg::ops
