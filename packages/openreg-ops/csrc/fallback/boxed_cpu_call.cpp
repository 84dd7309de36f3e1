// SPDX-License-Identifier: BSD-3-Clause
#include "fallback/boxed_cpu_call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/ops/_copy_from_and_resize.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "launch/run_and_wait.h"
#include "openreg/runtime/generator.h"
#include "openreg/runtime/stream.h"
#include "support/device_check.h"
#include "support/outputs.h"
#include "support/quantized.h"

namespace openreg::ops {

namespace {

// Operators that take some operands on the host: by their definition, or because modules keep tensors that belong to
// packed weights there.
constexpr std::array<std::string_view, 10> kTakeHostOperands = {"aten::_index_put_impl_",
                                                                "aten::_ctc_loss",
                                                                "aten::_ctc_loss_backward",
                                                                "aten::index",
                                                                "aten::quantized_gru",
                                                                "aten::quantized_lstm",
                                                                "quantized::quantized_gru_cell_dynamic",
                                                                "quantized::quantized_lstm_cell_dynamic",
                                                                "quantized::quantized_rnn_relu_cell_dynamic",
                                                                "quantized::quantized_rnn_tanh_cell_dynamic"};

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool is_generator(const c10::Argument& argument) {
  const auto& type = argument.type();
  const auto* optional = type->castRaw<c10::OptionalType>();
  const auto kind = optional != nullptr ? optional->getElementType()->kind() : type->kind();
  return kind == c10::TypeKind::GeneratorType;
}

// Allows the kernel to resize an operand that it writes. A resized alias has CPU memory; write_back() then resizes the
// operand on the device.
void make_resizable(const at::Tensor& alias) {
  if (is_sparse(alias)) {
    for (const at::Tensor& component : sparse_components(alias)) {
      make_resizable(component);
    }
  } else if (alias.defined()) {
    c10::StorageImpl* storage = alias.storage().unsafeGetStorageImpl();
    storage->set_allocator(c10::GetCPUAllocator());
    storage->set_resizable(true);
  }
}

// Throws c10::Error if the components of a sparse result are inconsistent, as later kernels would follow its indices.
// Some of PyTorch's kernels return such results: sums of batches in CSR, products in CSC.
void refuse_invalid_results(const torch::jit::Stack& results) {
  for (const c10::IValue& result : results) {
    for_each_tensor_in(result, [](const at::Tensor& tensor) {
      if (is_sparse(tensor)) {
        try {
          check_sparse_invariants(SparseShape(tensor), sparse_components(tensor));
        } catch (c10::Error& error) {
          error.add_context(
              "PyTorch's kernel for the CPU gave an invalid result; convert the operands to another layout");
          throw;
        }
      }
    });
  }
}

// A handler that collects the warnings of a kernel. Its destructor passes them to the handler of the calling thread,
// which shows them in Python.
class WarningCollector final : public c10::WarningHandler {
 public:
  ~WarningCollector() override {
    for (const c10::Warning& warning : warnings_) {
      c10::warn(warning);
    }
  }
  void process(const c10::Warning& warning) override { warnings_.push_back(warning); }

 private:
  std::vector<c10::Warning> warnings_;
};

// Returns a CPU generator that is seeded from the device's generator, so that equal states yield equal numbers.
// Advances the device's generator.
at::Generator borrow_generator(const c10::IValue& value, c10::DeviceIndex index) {
  const auto given = value.isNone() ? std::nullopt : std::optional<at::Generator>(value.toGenerator());
  const runtime::PhiloxState start = runtime::generator_or_default(given, index).reserve(1);
  at::philox_engine engine(start.seed(), 0, start.offset());
  const uint64_t high = engine();
  return at::make_generator<at::CPUGeneratorImpl>((high << 32) | engine());
}

}  // namespace

c10::Device device_of_call(const torch::jit::Stack& stack, size_t count) {
  std::optional<c10::Device> found;
  const auto visit = [&](const at::Tensor& tensor) {
    if (!found.has_value() && tensor.device().type() == runtime::kDeviceType) {
      found = tensor.device();
    }
  };
  const size_t first = stack.size() - count;
  for (size_t i = first; i < stack.size(); ++i) {
    for_each_tensor_in(stack[i], visit);
  }
  for (size_t i = first; i < stack.size() && !found.has_value(); ++i) {
    if (stack[i].isDevice() && stack[i].toDevice().type() == runtime::kDeviceType) {
      found = stack[i].toDevice();
    }
  }
  const c10::Device current(runtime::kDeviceType, runtime::current_device());
  if (!found.has_value() || !found->has_index()) {
    return current;
  }
  runtime::check_device_index(found->index());
  return *found;
}

orAccess access_of(const c10::Argument& argument) {
  if (!is_written(argument)) {
    return orAccessRead;
  }
  return argument.is_out() || argument.kwarg_only() ? orAccessWrite : orAccessReadWrite;
}

void check_devices_of_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack, c10::Device device) {
  const std::string& name = op.schema().name();
  if (std::find(kTakeHostOperands.begin(), kTakeHostOperands.end(), name) != kTakeHostOperands.end()) {
    return;
  }
  const auto& arguments = op.schema().arguments();
  const size_t first = stack.size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool written = is_written(arguments[i]);
    for_each_tensor_in(stack[first + i], [&](const at::Tensor& tensor) {
      if (written || tensor.is_quantized()) {
        check_same_device(name.c_str(), device, tensor);
      } else {
        check_same_device_or_scalar(name.c_str(), device, tensor);
      }
    });
  }
}

c10::DispatchKey cpu_key_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  bool quantized = false;
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
    for_each_tensor_in(stack[i], [&](const at::Tensor& tensor) { quantized |= tensor.is_quantized(); });
  }
  return quantized ? c10::DispatchKey::QuantizedCPU : c10::DispatchKey::CPU;
}

BoxedCpuCall::BoxedCpuCall(const c10::OperatorHandle& op, torch::jit::Stack& stack, c10::Device device)
    : op_(op),
      stack_(stack),
      first_argument_(stack.size() - op.schema().arguments().size()),
      device_(device),
      aliases_(op.schema().name().c_str()) {
  check_devices_of_call(op, stack, device_);
  const auto& arguments = op_.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    aliases_.as(access_of(arguments[i]));
    cpu_stack_.push_back(to_cpu(stack_[first_argument_ + i], arguments[i]));
  }
}

void BoxedCpuCall::run_on_engine(c10::DispatchKey key) {
  WarningCollector warnings;
  const auto run = [&] {
    const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
    for (const at::Tensor& sparse : read_sparse_) {
      check_sparse_invariants(SparseShape(sparse), sparse_components(sparse));
    }
    op_.redispatchBoxed(c10::DispatchKeySet(key), &cpu_stack_);
    refuse_invalid_results(cpu_stack_);
  };
  run_and_wait(op_.schema().name().c_str(), runtime::current_stream(device_.index()), run, operands());
}

c10::IValue BoxedCpuCall::to_cpu(const c10::IValue& value, const c10::Argument& argument) {
  if (is_generator(argument)) {
    return borrow_generator(value, device_.index());
  }
  if (value.isDevice()) {
    return c10::Device(c10::kCPU);
  }
  const orAccess access = access_of(argument);
  return with_tensors(value, [&](const at::Tensor& tensor) { return tensor_to_cpu(tensor, access); });
}

at::Tensor BoxedCpuCall::tensor_to_cpu(const at::Tensor& tensor, orAccess access) {
  if (!tensor.defined() || tensor.device().type() != runtime::kDeviceType) {
    return tensor;  // a host tensor needs no copy, because the host blocks until the kernel is complete
  }
  at::Tensor alias = is_sparse(tensor) ? sparse_to_cpu(tensor, access) : alias_of(tensor);
  if (access != orAccessRead) {
    make_resizable(alias);
    written_.push_back({tensor, alias, is_sparse(tensor) ? nullptr : alias.storage().data(),
                        alias.is_quantized() ? quantizer_of(alias) : nullptr});
  }
  return alias;
}

// Returns one alias for an operand that the caller passes twice, because kernels compare their output with operands.
at::Tensor BoxedCpuCall::sparse_to_cpu(const at::Tensor& sparse, orAccess access) {
  for (const Passed& passed : passed_) {
    if (passed.given.is_same(sparse)) {
      return passed.seen;
    }
  }
  SparseComponents aliases;
  const SparseComponents components =
      access == orAccessRead ? contiguous_components_of(sparse) : sparse_components(sparse);
  for (size_t i = 0; i < components.size(); ++i) {
    aliases[i] = components[i].defined() ? alias_of(components[i]) : at::Tensor();
  }
  at::Tensor seen = assemble(SparseShape(sparse), aliases);
  passed_.push_back({sparse, seen, nullptr});
  if (access != orAccessWrite) {
    read_sparse_.push_back(seen);
  }
  return seen;
}

at::Tensor BoxedCpuCall::alias_of(const at::Tensor& tensor) {
  at::Tensor alias = tensor.is_quantized() ? quantized_alias(tensor, aliases_) : aliases_(tensor);
  passed_.push_back({tensor, alias, alias.storage().data()});
  return alias;
}

size_t BoxedCpuCall::finish() {
  for (const Passed& written : written_) {
    write_back(written);
  }
  const auto& schema = op_.schema();
  const auto to_device = [this](const at::Tensor& tensor) { return tensor_to_device(tensor); };
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
      copy_result_into_operand(cpu_stack_[i].toTensor(), original->toTensor());
    }
    results.push_back(original.has_value() ? *original : with_tensors(cpu_stack_[i], to_device));
  }
  torch::jit::drop(stack_, schema.arguments().size());
  for (c10::IValue& result : results) {
    stack_.push_back(std::move(result));
  }
  return copied_bytes_;
}

void BoxedCpuCall::write_back(const Passed& written) {
  const auto& [given, seen, memory, quantizer] = written;
  if (is_sparse(given)) {
    assign(given, SparseShape(seen), components_to_device(seen));
    return;
  }
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

// Some kernels of PyTorch return another tensor than the one that they had to write.
void BoxedCpuCall::copy_result_into_operand(const at::Tensor& result, const at::Tensor& operand) {
  for (const Passed& written : written_) {
    if (written.given.is_same(operand) && !written.seen.is_same(result)) {
      if (operand.sizes() != result.sizes()) {
        operand.resize_(result.sizes());
      }
      operand.copy_(result);
      copied_bytes_ += result.nbytes();
    }
  }
}

at::Tensor BoxedCpuCall::tensor_to_device(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.device().is_cpu()) {
    return tensor;
  }
  if (is_sparse(tensor)) {
    return sparse_to_device(tensor);
  }
  for (const auto& [given, seen, memory, quantizer] : passed_) {
    if (is_sparse(seen) || !tensor.has_storage() || tensor.storage().data() != memory) {
      continue;
    }
    if (tensor.is_same(seen)) {
      return given;
    }
    if (tensor.storage().is_alias_of(seen.storage())) {
      // The kernel returned its operand's memory in another shape, so the result is such a view of the device tensor.
      return given.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    }
  }
  const c10::IntArrayRef strides = tensor.is_non_overlapping_and_dense() ? tensor.strides() : c10::IntArrayRef();
  copied_bytes_ += tensor.nbytes();
  if (tensor.is_quantized()) {
    at::Tensor result = make_quantized(tensor.sizes(), strides, c10::MemoryFormat::Contiguous, tensor.scalar_type(),
                                       quantizer_on(quantizer_of(tensor), device_));
    integers_of(result).copy_(integers_of(tensor));
    return result;
  }
  at::Tensor result = make_output(tensor.sizes(), strides, tensor.options().device(device_));
  result.copy_(tensor);
  return result;
}

at::Tensor BoxedCpuCall::sparse_to_device(const at::Tensor& sparse) {
  for (const Passed& passed : passed_) {
    if (sparse.is_same(passed.seen)) {
      return passed.given;
    }
  }
  return assemble(SparseShape(sparse), components_to_device(sparse));
}

SparseComponents BoxedCpuCall::components_to_device(const at::Tensor& sparse) {
  SparseComponents components = sparse_components(sparse);
  for (at::Tensor& component : components) {
    component = tensor_to_device(component);
  }
  return components;
}

}  // namespace openreg::ops
