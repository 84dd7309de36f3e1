// SPDX-License-Identifier: BSD-3-Clause
#include "host_access.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "poison_check.h"
#include "sanitizer.h"

namespace openreg::sanitizer {

namespace {

// What an operator does with the bytes of its arguments.
enum class Use : uint8_t { kNone, kRead, kWrite };

// The uses of the arguments of one operator; empty if it accesses no bytes itself.
using Uses = std::vector<Use>;

// Operators that accept a tensor on the CPU and access no bytes of it, although nothing in their schema tells it.
constexpr std::array<std::string_view, 7> kNoAccess = {
    "aten::set_",        "aten::resize_",    "aten::record_stream", "aten::is_pinned",
    "aten::_pin_memory", "aten::resize_as_", "aten::_reshape_alias"};
// Operators without a kernel for the CPU that access bytes there. tolist() calls resolve_conj() first.
constexpr std::array<std::string_view, 3> kAccess = {"aten::copy_", "aten::resolve_conj", "aten::_local_scalar_dense"};

Uses uses_of(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  const auto is_in = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  const auto handle = c10::Dispatcher::singleton().findSchema({name, schema.overload_name()});
  const bool has_kernel = handle.has_value() && handle->hasKernelForDispatchKey(c10::DispatchKey::CPU);
  if (is_in(kNoAccess) || (!has_kernel && !is_in(kAccess))) {
    return {};
  }
  Uses uses;
  bool is_view = false;
  for (const c10::Argument& argument : schema.arguments()) {
    const c10::AliasInfo* const alias = argument.alias_info();
    const bool writes = alias != nullptr && alias->isWrite();
    is_view = is_view || (alias != nullptr && !writes);
    uses.push_back(writes ? Use::kWrite : Use::kRead);
  }
  return is_view && !is_in(kAccess) ? Uses() : uses;
}

// Returns the uses of the arguments of an operator, which are computed once for each thread. Thread-safe.
const Uses& cached_uses(const at::RecordFunction& function) {
  thread_local std::unordered_map<c10::OperatorName, Uses> cache;
  const std::optional<c10::OperatorName> name = function.operator_name();
  if (!name.has_value()) {
    static const Uses none;
    return none;
  }
  const auto found = cache.find(*name);
  if (found != cache.end()) {
    return found->second;
  }
  const auto schema = function.operator_schema();
  return cache.emplace(*name, schema.has_value() ? uses_of(*schema) : Uses()).first->second;
}

bool is_pinned_candidate(const at::Tensor& tensor) {
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
  }
}

void check(const at::RecordFunction& function) {
  const c10::ArrayRef<const c10::IValue> inputs = function.inputs();
  // An operator with a tensor elsewhere is no work of the host: a copy, whose task is compared when it is enqueued.
  bool is_candidate = false;
  bool is_elsewhere = false;
  for (const c10::IValue& input : inputs) {
    for_each_tensor(input, [&](const at::Tensor& tensor) {
      is_candidate = is_candidate || is_pinned_candidate(tensor);
      is_elsewhere = is_elsewhere || (tensor.defined() && !tensor.device().is_cpu());
    });
  }
  if (!is_candidate || is_elsewhere) {
    return;
  }
  const Uses& uses = cached_uses(function);
  for (size_t i = 0; i < std::min(uses.size(), inputs.size()); ++i) {
    for_each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      if (!is_pinned_candidate(tensor)) {
        return;
      }
      int64_t last = 0;
      for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
        last += (tensor.size(dim) - 1) * tensor.stride(dim);
      }
      const size_t size = static_cast<size_t>(last + 1) * tensor.element_size();
      Sanitizer& sanitizer = Sanitizer::instance();
      const Layout layout{tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec()};
      const bool is_write = uses[i] == Use::kWrite;
      const bool is_ordered = sanitizer.host_access(function.name(), tensor.const_data_ptr(), size, layout, is_write);
      if (is_ordered && !is_write && is_watching_poison() && has_poison(tensor)) {
        sanitizer.poison_on_host(function.name(), tensor.const_data_ptr(), size, layout);
      }
    });
  }
}

std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& function) {
  if (Sanitizer::instance().is_active()) {
    check(function);
  }
  return nullptr;
}

std::mutex& mutex() {
  static std::mutex value;
  return value;
}

at::CallbackHandle& handle() {
  static at::CallbackHandle value = at::INVALID_CALLBACK_HANDLE;
  return value;
}

}  // namespace

void watch_host() {
  const std::lock_guard<std::mutex> lock(mutex());
  if (handle() == at::INVALID_CALLBACK_HANDLE) {
    handle() = at::addGlobalCallback(
        at::RecordFunctionCallback(&on_operator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
}

void stop_watching_host() {
  const std::lock_guard<std::mutex> lock(mutex());
  if (handle() != at::INVALID_CALLBACK_HANDLE) {
    at::removeCallback(handle());
    handle() = at::INVALID_CALLBACK_HANDLE;
  }
}

}  // namespace openreg::sanitizer
