// SPDX-License-Identifier: BSD-3-Clause
#include "host_access.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "host_tensor.h"
#include "operator_names.h"
#include "poison_check.h"
#include "sanitizer.h"

namespace openreg::sanitizer {

namespace {

// The accesses of one operator to its arguments: for each argument true if the operator writes it, and false if it only
// reads it. Empty if the operator accesses no bytes itself, because it returns a view or calls other operators.
using ArgumentWrites = std::vector<bool>;

// Operators that accept a tensor on the CPU and access no bytes of it, although their schema does not show that.
constexpr OperatorNameArray<7> kNoAccess = {"aten::set_",          "aten::resize_",     "aten::record_stream",
                                            "aten::is_pinned",     "aten::_pin_memory", "aten::resize_as_",
                                            "aten::_reshape_alias"};
// Operators without a kernel for the CPU that access bytes there. tolist() calls resolve_conj() first.
constexpr OperatorNameArray<3> kAccess = {"aten::copy_", "aten::resolve_conj", "aten::_local_scalar_dense"};

ArgumentWrites argument_writes(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  const bool is_known = contains(kAccess, name);
  const auto handle = c10::Dispatcher::singleton().findSchema({name, schema.overload_name()});
  const bool has_kernel = handle.has_value() && handle->hasKernelForDispatchKey(c10::DispatchKey::CPU);
  if (contains(kNoAccess, name) || (!has_kernel && !is_known)) {
    return {};
  }
  ArgumentWrites result;
  bool is_view = false;
  for (const c10::Argument& argument : schema.arguments()) {
    const c10::AliasInfo* const alias = argument.alias_info();
    const bool writes = alias != nullptr && alias->isWrite();
    is_view = is_view || (alias != nullptr && !writes);
    result.push_back(writes);
  }
  return is_view && !is_known ? ArgumentWrites() : result;
}

// Returns argument_writes() of an operator, which each thread computes once.
const ArgumentWrites& cached_argument_writes(const at::RecordFunction& function) {
  thread_local std::unordered_map<c10::OperatorName, ArgumentWrites> cache;
  const std::optional<c10::OperatorName> name = function.operator_name();
  if (!name.has_value()) {
    static const ArgumentWrites none;
    return none;
  }
  const auto found = cache.find(*name);
  if (found != cache.end()) {
    return found->second;
  }
  const auto schema = function.operator_schema();
  return cache.emplace(*name, schema.has_value() ? argument_writes(*schema) : ArgumentWrites()).first->second;
}

bool may_be_pinned(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_cpu() && tensor.layout() == c10::kStrided && tensor.has_storage() &&
         tensor.numel() > 0 && Sanitizer::instance().may_be_pinned(tensor.const_data_ptr());
}

template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      visit(tensor);
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      if (tensor.has_value()) {
        visit(*tensor);
      }
    }
  }
}

// Returns true if an operator has an argument that may be pinned, and no tensor on another device than the CPU. An
// operator with such a tensor is a copy to or from the device, whose task is compared when it is enqueued.
bool is_on_pinned_memory(c10::ArrayRef<const c10::IValue> arguments) {
  bool has_pinned = false;
  bool has_device = false;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      has_pinned = has_pinned || may_be_pinned(tensor);
      has_device = has_device || (tensor.defined() && !tensor.device().is_cpu());
    });
  }
  return has_pinned && !has_device;
}

void check_tensor(const char* operation, const at::Tensor& tensor, bool writes) {
  Sanitizer& sanitizer = Sanitizer::instance();
  const HostTensor host_tensor = describe_host_tensor(tensor);
  const bool is_ordered = sanitizer.host_access(operation, host_tensor, writes);
  if (is_ordered && !writes && poison_watch().is_running() && has_poison(tensor)) {
    sanitizer.poison_on_host(operation, host_tensor);
  }
}

std::unique_ptr<at::ObserverContext> on_operator_begin(const at::RecordFunction& function) {
  const c10::ArrayRef<const c10::IValue> arguments = function.inputs();
  if (!Sanitizer::instance().is_active() || !is_on_pinned_memory(arguments)) {
    return nullptr;
  }
  const ArgumentWrites& writes = cached_argument_writes(function);
  for (size_t i = 0; i < std::min(writes.size(), arguments.size()); ++i) {
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (may_be_pinned(tensor)) {
        check_tensor(function.name(), tensor, writes[i]);
      }
    });
  }
  return nullptr;
}

}  // namespace

OperatorWatch& host_access_watch() {
  static OperatorWatch watch(at::RecordFunctionCallback(&on_operator_begin).needsInputs(true));
  return watch;
}

}  // namespace openreg::sanitizer
