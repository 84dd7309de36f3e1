// SPDX-License-Identifier: BSD-3-Clause
#include "fallback/call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/_copy_from_and_resize.h>
#include <c10/core/CPUAllocator.h>

#include <array>

#include "common/device_check.h"
#include "common/outputs.h"
#include "openreg/runtime/generator.h"

namespace openreg::ops {

namespace {

// Operators that by their definition take some operands on the host.
constexpr std::array<const char*, 3> kTakeHostOperands = {"aten::_index_put_impl_", "aten::_ctc_loss",
                                                          "aten::_ctc_loss_backward"};

template <class Visit>
void for_each_tensor_in(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      visit(value.toTensor());
    }
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      visit(tensor);
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      if (tensor.has_value() && tensor->defined()) {
        visit(*tensor);
      }
    }
  }
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// What the kernel does with an operand.
orAccess access_of(const c10::Argument& argument) {
  if (!is_written(argument)) {
    return orAccessRead;
  }
  return argument.is_out() || argument.kwarg_only() ? orAccessWrite : orAccessReadWrite;
}

bool is_generator(const c10::Argument& argument) {
  const auto& type = argument.type();
  const auto* optional = type->castRaw<c10::OptionalType>();
  const auto kind = optional != nullptr ? optional->getElementType()->kind() : type->kind();
  return kind == c10::TypeKind::GeneratorType;
}

// A CPU generator that continues the device's generator: same state before, same numbers; and the state moves on.
at::Generator borrow_generator(const c10::IValue& value, c10::DeviceIndex index) {
  const auto given = value.isNone() ? std::nullopt : std::optional<at::Generator>(value.toGenerator());
  const runtime::PhiloxState start = runtime::generator_or_default(given, index).reserve(1);
  at::philox_engine engine(start.seed(), 0, start.offset());
  const uint64_t high = engine();
  return at::make_generator<at::CPUGeneratorImpl>((high << 32) | engine());
}

}  // namespace

FallbackCall::FallbackCall(const c10::OperatorHandle& op, torch::jit::Stack& stack)
    : op_(op),
      stack_(stack),
      first_argument_(stack.size() - op.schema().arguments().size()),
      name_(op.schema().name()),
      device_(runtime::kDeviceType, runtime::current_device()),
      aliases_(name_.c_str()) {
  find_device();
  check_devices();
  const auto& arguments = op_.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    aliases_.as(access_of(arguments[i]));
    cpu_stack_.push_back(to_cpu(stack_[first_argument_ + i], arguments[i]));
  }
}

// The first operand on the device decides; a factory has none and says where it makes its tensor.
void FallbackCall::find_device() {
  std::optional<c10::Device> found;
  const auto visit = [&](const at::Tensor& tensor) {
    if (!found.has_value() && tensor.device().type() == runtime::kDeviceType) {
      found = tensor.device();
    }
  };
  for (size_t i = first_argument_; i < stack_.size(); ++i) {
    for_each_tensor_in(stack_[i], visit);
  }
  for (size_t i = first_argument_; i < stack_.size() && !found.has_value(); ++i) {
    if (stack_[i].isDevice() && stack_[i].toDevice().type() == runtime::kDeviceType) {
      found = stack_[i].toDevice();
    }
  }
  if (found.has_value()) {
    device_ = found->has_index() ? *found : device_;
    runtime::check_device_index(device_.index());
  }
}

void FallbackCall::check_devices() const {
  for (const char* name : kTakeHostOperands) {
    if (name_ == name) {
      return;
    }
  }
  const auto& arguments = op_.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool written = is_written(arguments[i]);
    for_each_tensor_in(stack_[first_argument_ + i], [&](const at::Tensor& tensor) {
      written ? check_same_device(name_.c_str(), device_, tensor)
              : check_same_device_or_scalar(name_.c_str(), device_, tensor);
    });
  }
}

c10::IValue FallbackCall::to_cpu(const c10::IValue& value, const c10::Argument& argument) {
  const bool written = is_written(argument);
  if (is_generator(argument)) {
    return borrow_generator(value, device_.index());
  }
  if (value.isTensor()) {
    return tensor_to_cpu(value.toTensor(), written);
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(tensor_to_cpu(tensor, written));
    }
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      list.push_back(tensor.has_value() ? std::optional(tensor_to_cpu(*tensor, false)) : std::nullopt);
    }
    return list;
  }
  if (value.isDevice()) {
    return c10::Device(c10::kCPU);
  }
  return value;
}

at::Tensor FallbackCall::tensor_to_cpu(const at::Tensor& tensor, bool written) {
  if (!tensor.defined() || tensor.device().type() != runtime::kDeviceType) {
    return tensor;  // the host waits for the kernel, so a tensor of the host needs no copy
  }
  at::Tensor alias = aliases_(tensor);
  if (written) {
    // The kernel may resize it: it then gets memory of the CPU, and write_back() makes room on the device.
    c10::StorageImpl* storage = alias.storage().unsafeGetStorageImpl();
    storage->set_allocator(c10::GetCPUAllocator());
    storage->set_resizable(true);
    written_.push_back({tensor, alias, storage->data()});
  }
  passed_.emplace_back(tensor, alias);
  return alias;
}

size_t FallbackCall::finish() {
  write_back();
  const auto& schema = op_.schema();
  std::vector<c10::IValue> results;
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    const auto* alias_info = schema.returns()[i].alias_info();
    std::optional<c10::IValue> original;
    for (size_t j = 0; alias_info != nullptr && j < schema.arguments().size(); ++j) {
      const auto* argument_info = schema.arguments()[j].alias_info();
      if (argument_info != nullptr && *argument_info == *alias_info) {
        original = stack_[first_argument_ + j];  // an in-place or out= operand is returned itself
      }
    }
    results.push_back(original.has_value() ? *original : to_device(cpu_stack_[i]));
  }
  torch::jit::drop(stack_, schema.arguments().size());
  for (c10::IValue& result : results) {
    stack_.push_back(std::move(result));
  }
  return copied_bytes_;
}

void FallbackCall::write_back() {
  for (const auto& [given, seen, memory] : written_) {
    const bool moved = seen.storage().data() != memory;
    if (moved || seen.sizes() != given.sizes()) {
      given.resize_(seen.sizes());
    }
    if (seen.strides() != given.strides() && (!moved || seen.is_non_overlapping_and_dense())) {
      given.as_strided_(seen.sizes(), seen.strides());
    }
    if (moved) {
      at::_copy_from_and_resize(seen, given);
      copied_bytes_ += seen.nbytes();
    }
  }
}

c10::IValue FallbackCall::to_device(const c10::IValue& value) {
  if (value.isTensor()) {
    return tensor_to_device(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(tensor_to_device(tensor));
    }
    return list;
  }
  return value;
}

at::Tensor FallbackCall::tensor_to_device(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.device().is_cpu()) {
    return tensor;
  }
  for (const auto& [given, seen] : passed_) {
    if (tensor.is_same(seen)) {
      return given;
    }
    if (tensor.has_storage() && tensor.storage().is_alias_of(seen.storage())) {
      // The kernel returned its operand's memory in another shape; so do we.
      return given.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    }
  }
  at::Tensor result = tensor.is_non_overlapping_and_dense()
                          ? make_output(tensor.sizes(), tensor.strides(), tensor.options().device(device_))
                          : make_output(tensor.sizes(), {}, tensor.options().device(device_));
  result.copy_(tensor);
  copied_bytes_ += tensor.nbytes();
  return result;
}

}  // namespace openreg::ops
