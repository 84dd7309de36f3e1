// SPDX-License-Identifier: BSD-3-Clause
#include "fallback/call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/_copy_from_and_resize.h>
#include <c10/core/CPUAllocator.h>

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>

#include "common/device_check.h"
#include "common/outputs.h"
#include "common/quantized.h"
#include "openreg/runtime/generator.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/stream.h"

namespace openreg::ops {

namespace {

// Operators that take some operands on the host: by their definition, or as modules keep what belongs to packed weights.
constexpr std::array<std::string_view, 10> kTakeHostOperands = {
    "aten::_index_put_impl_",
    "aten::_ctc_loss",
    "aten::_ctc_loss_backward",
    "aten::index",
    "aten::quantized_gru",
    "aten::quantized_lstm",
    "quantized::quantized_gru_cell_dynamic",
    "quantized::quantized_lstm_cell_dynamic",
    "quantized::quantized_rnn_relu_cell_dynamic",
    "quantized::quantized_rnn_tanh_cell_dynamic"};

// Keeps what a kernel warns about for the caller's thread, whose handler shows it in Python.
class WarningCollector : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { warnings_.push_back(warning); }
  void issue() const {
    for (const c10::Warning& warning : warnings_) {
      c10::warn(warning);
    }
  }

 private:
  std::vector<c10::Warning> warnings_;
};

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

// The first operand on the device decides; a factory has none and says where it makes its tensor.
c10::Device find_device(const torch::jit::Stack& stack, size_t first) {
  std::optional<c10::Device> found;
  const auto visit = [&](const at::Tensor& tensor) {
    if (!found.has_value() && tensor.device().type() == runtime::kDeviceType) {
      found = tensor.device();
    }
  };
  for (size_t i = first; i < stack.size(); ++i) {
    for_each_tensor_in(stack[i], visit);
  }
  for (size_t i = first; i < stack.size() && !found.has_value(); ++i) {
    if (stack[i].isDevice() && stack[i].toDevice().type() == runtime::kDeviceType) {
      found = stack[i].toDevice();
    }
  }
  const bool has_index = found.has_value() && found->has_index();
  const c10::DeviceIndex index = has_index ? found->index() : runtime::current_device();
  runtime::check_device_index(index);
  return {runtime::kDeviceType, index};
}

}  // namespace

c10::Device device_of_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  const std::string& name = op.schema().name();
  const size_t first = stack.size() - arguments.size();
  const c10::Device device = find_device(stack, first);
  if (std::find(kTakeHostOperands.begin(), kTakeHostOperands.end(), name) != kTakeHostOperands.end()) {
    return device;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool written = is_written(arguments[i]);
    for_each_tensor_in(stack[first + i], [&](const at::Tensor& tensor) {
      written || tensor.is_quantized() ? check_same_device(name.c_str(), device, tensor)
                                       : check_same_device_or_scalar(name.c_str(), device, tensor);
    });
  }
  return device;
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

orAccess access_of(const c10::Argument& argument) {
  if (!is_written(argument)) {
    return orAccessRead;
  }
  return argument.is_out() || argument.kwarg_only() ? orAccessWrite : orAccessReadWrite;
}

c10::DispatchKeySet cpu_keys_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  bool quantized = false;
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
    for_each_tensor_in(stack[i], [&](const at::Tensor& tensor) { quantized |= tensor.is_quantized(); });
  }
  return c10::DispatchKeySet(quantized ? c10::DispatchKey::QuantizedCPU : c10::DispatchKey::CPU);
}

FallbackCall::FallbackCall(const c10::OperatorHandle& op, torch::jit::Stack& stack)
    : op_(op),
      stack_(stack),
      first_argument_(stack.size() - op.schema().arguments().size()),
      name_(op.schema().name()),
      keys_(cpu_keys_of(op, stack)),
      device_(device_of_call(op, stack)),
      aliases_(name_.c_str()) {
  const auto& arguments = op_.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    aliases_.as(access_of(arguments[i]));
    cpu_stack_.push_back(to_cpu(stack_[first_argument_ + i], arguments[i]));
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
  at::Tensor alias = alias_of(tensor, aliases_);
  if (written) {
    // The kernel may resize it: it then gets memory of the CPU, and write_back() makes room on the device.
    c10::StorageImpl* storage = alias.storage().unsafeGetStorageImpl();
    storage->set_allocator(c10::GetCPUAllocator());
    storage->set_resizable(true);
    written_.push_back({tensor, alias, storage->data(), alias.is_quantized() ? quantizer_of(alias) : nullptr});
  }
  passed_.emplace_back(tensor, alias);
  return alias;
}

void FallbackCall::run_on_engine(c10::Stream stream) {
  std::exception_ptr failure;
  WarningCollector warnings;
  const auto run = [this, &failure, &warnings] {
    const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
    try {
      op_.redispatchBoxed(keys_, &cpu_stack_);
    } catch (...) {
      failure = std::current_exception();
    }
  };
  runtime::launch(op_.schema().name().c_str(), stream, run, operands());
  runtime::synchronize_stream(stream);
  warnings.issue();
  if (failure) {
    std::rethrow_exception(failure);
  }
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
    if (original.has_value() && alias_info->isWrite() && cpu_stack_[i].isTensor()) {
      take_over(cpu_stack_[i].toTensor(), original->toTensor());
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
  for (const auto& [given, seen, memory, quantizer] : written_) {
    if (quantizer != nullptr && quantizer_of(seen) != quantizer) {
      at::set_quantizer_(given, quantizer_on(quantizer_of(seen), device_));
    }
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

// Some kernels of PyTorch's give another tensor than the one to be written.
void FallbackCall::take_over(const at::Tensor& result, const at::Tensor& given) {
  for (const Written& written : written_) {
    if (written.given.is_same(given) && !written.seen.is_same(result)) {
      if (given.sizes() != result.sizes()) {
        given.resize_(result.sizes());
      }
      given.copy_(result);
      copied_bytes_ += result.nbytes();
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
  const c10::IntArrayRef strides = tensor.is_non_overlapping_and_dense() ? tensor.strides() : c10::IntArrayRef();
  const CurrentDevice current(device_);
  at::Tensor result = tensor.is_quantized()
                          ? make_quantized(tensor.sizes(), strides, c10::MemoryFormat::Contiguous, tensor.scalar_type(),
                                           quantizer_on(quantizer_of(tensor), device_))
                          : make_output(tensor.sizes(), strides, tensor.options().device(device_));
  if (tensor.is_quantized()) {
    integers_of(result).copy_(integers_of(tensor));
  } else {
    result.copy_(tensor);
  }
  copied_bytes_ += tensor.nbytes();
  return result;
}

}  // namespace openreg::ops
