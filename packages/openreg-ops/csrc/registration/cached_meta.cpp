// SPDX-License-Identifier: BSD-3-Clause
#include "registration/cached_meta.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fallback/boxed_cpu_call.h"
#include "launch/operand_descriptor.h"
#include "launch/run_and_wait.h"
#include "openreg/runtime/capture.h"
#include "openreg/runtime/launch.h"
#include "openreg/runtime/stream.h"
#include "registration/registry.h"
#include "support/device_check.h"
#include "support/host_objects.h"
#include "support/outputs.h"
#include "support/quantized.h"

namespace openreg::ops {

namespace {

using torch::jit::Stack;

// The parameters of a quantizer that the host can read without synchronizing.
struct QuantizerNumbers {
  c10::QScheme scheme = kUnknownScheme;
  double scale = 0;
  int64_t zero_point = 0;  // or the axis

  bool operator==(const QuantizerNumbers& other) const {
    return scheme == other.scheme && scale == other.scale && zero_point == other.zero_point;
  }
};

QuantizerNumbers numbers_of(const at::Tensor& quantized) {
  const at::QuantizerPtr quantizer = quantizer_of(quantized);
  if (const auto* per_tensor = dynamic_cast<const at::PerTensorAffineQuantizer*>(quantizer.get())) {
    return {per_tensor->qscheme(), per_tensor->scale(), per_tensor->zero_point()};
  }
  if (const auto* per_channel = dynamic_cast<const at::PerChannelAffineQuantizer*>(quantizer.get())) {
    return {per_channel->qscheme(), 0, per_channel->axis()};
  }
  return {};
}

// The metadata of one result of the operator.
struct OutputMeta {
  size_t operand = 0;  // the argument that is the result, for `is_operand`
  bool is_operand = false;
  c10::DimVector sizes;
  c10::DimVector strides;
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // Undefined: the result was undefined
  QuantizerNumbers quantizer;
};

// The metadata of all results of a first call.
using OutputMetas = std::vector<OutputMeta>;

// Returns true if an index is a mask, which selects as many elements as it has ones.
bool is_mask(const c10::IValue& index) {
  return index.isTensor() && index.toTensor().defined() &&
         (index.toTensor().scalar_type() == at::kBool || index.toTensor().scalar_type() == at::kByte);
}

// The key of a call in the cache, as bytes.
class CallKey {
 public:
  CallKey(const c10::OperatorHandle& op, const Stack& stack) {
    add(op.schema().name());
    add(op.schema().overload_name());
    add(static_cast<int>(at::globalContext().qEngine()));
    add(at::globalContext().deterministicAlgorithms());
    for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
      add(stack[i]);
    }
    finish();
  }

  const std::string& bytes() const { return bytes_; }
  // Returns true if the outputs may depend on data or state that the key does not contain.
  bool is_open() const { return is_open_; }

 private:
  template <class T>
  void add(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void add(const std::string& text) {
    add(text.size());
    bytes_.append(text);
  }
  void add(c10::IntArrayRef numbers) {
    add(numbers.size());
    bytes_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t));
  }
  void add(const at::Tensor& tensor);
  void add(const c10::IValue& value);
  void finish();

  std::string bytes_;
  std::vector<const at::Tensor*> tensors_;
  bool is_open_ = false;
};

void CallKey::add(const at::Tensor& tensor) {
  add(tensor.defined());
  if (!tensor.defined()) {
    return;
  }
  tensors_.push_back(&tensor);
  add(tensor.scalar_type());
  add(tensor.device().is_cpu());
  add(tensor.sizes());
  add(tensor.strides());
  if (tensor.is_quantized()) {
    const QuantizerNumbers numbers = numbers_of(tensor);
    add(numbers.scheme);
    add(numbers.scale);
    add(numbers.zero_point);
  }
}

// Adds which operands share memory, because kernels reject some of those calls.
void CallKey::finish() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (tensors_[i]->is_alias_of(*tensors_[j])) {
        add(i);
        add(j);
        add(tensors_[i]->storage_offset() - tensors_[j]->storage_offset());
      }
    }
  }
}

void CallKey::add(const c10::IValue& value) {
  enum class Tag : uint8_t { kNone, kTensor, kInt, kBool, kDouble, kString, kObject, kList };
  if (value.isNone()) {
    add(Tag::kNone);
  } else if (value.isTensor()) {
    add(Tag::kTensor);
    add(value.toTensor());
  } else if (value.isInt()) {
    add(Tag::kInt);
    add(value.toInt());
  } else if (value.isBool()) {
    add(Tag::kBool);
    add(value.toBool());
  } else if (value.isDouble()) {
    add(Tag::kDouble);
    add(value.toDouble());
  } else if (value.isString()) {
    add(Tag::kString);
    add(value.toStringRef());
  } else if (value.isCustomClass()) {
    add(Tag::kObject);
    add(hold_on_host(value)->number);
  } else if (value.isList()) {
    add(Tag::kList);
    add(value.toListRef().size());
    for (const c10::IValue& each : value.toListRef()) {
      add(each);
      is_open_ |= value.isOptionalTensorList() && is_mask(each);
    }
  } else {
    is_open_ = true;  // a generator, for example, whose state advances
  }
}

// The metadata that first calls of the process found. Thread-safe.
class OutputMetaCache {
 public:
  static OutputMetaCache& instance() {
    static auto* const cache = new OutputMetaCache;  // outlives threads that launch while the process exits
    return *cache;
  }

  // Returns null if there was no first call with this key.
  std::shared_ptr<const OutputMetas> find(const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = metas_.find(key);
    return found == metas_.end() ? nullptr : found->second;
  }

  void remember(const std::string& key, OutputMetas metas) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (metas_.size() >= kMostKeys) {
      metas_.clear();  // drops sizes and packed weights that are no longer in use
    }
    metas_[key] = std::make_shared<const OutputMetas>(std::move(metas));
  }

 private:
  static constexpr size_t kMostKeys = 65536;

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const OutputMetas>> metas_;
};

// One argument that a launch owns: a tensor or a list of tensors, a host object or a list of them, or a plain value.
class OwnedValue {
 public:
  OwnedValue(const c10::IValue& value, runtime::AliasBuilder& aliases);

  c10::IValue open(runtime::AliasStorages& storages);

 private:
  struct OwnedOperand {
    at::Tensor on_host;  // undefined if the operand is on the device
    OperandDescriptor on_device;
  };

  void own(const at::Tensor& tensor, runtime::AliasBuilder& aliases);

  c10::IValue value_;  // without its tensors and objects
  std::vector<OwnedOperand> operands_;
  std::vector<std::shared_ptr<const HostObject>> objects_;
};

OwnedValue::OwnedValue(const c10::IValue& value, runtime::AliasBuilder& aliases) {
  if (value.isCustomClass()) {
    objects_.push_back(hold_on_host(value));
  } else if (value.isList() && !value.toListRef().empty() && value.toListRef()[0].isCustomClass()) {
    for (const c10::IValue& each : value.toListRef()) {
      objects_.push_back(hold_on_host(each));
    }
    value_ = c10::impl::GenericList(value.toList().elementType());
  } else {
    value_ = with_tensors(value, [&](const at::Tensor& tensor) {
      own(tensor, aliases);
      return at::Tensor();
    });
  }
}

void OwnedValue::own(const at::Tensor& tensor, runtime::AliasBuilder& aliases) {
  // The launch owns a copy of a host tensor, because the tensor may change, or have a Python object.
  const bool is_on_host = tensor.defined() && tensor.device().is_cpu() && tensor.dim() > 0;
  operands_.push_back({is_on_host ? tensor.clone() : at::Tensor(), {is_on_host ? at::Tensor() : tensor, aliases}});
}

c10::IValue OwnedValue::open(runtime::AliasStorages& storages) {
  if (objects_.empty()) {
    auto next = operands_.begin();
    return with_tensors(value_, [&](const at::Tensor& /*absent*/) {
      OwnedOperand& operand = *next++;
      return operand.on_host.defined() ? operand.on_host : operand.on_device.make_tensor(storages);
    });
  }
  if (!value_.isList()) {
    return objects_[0]->value;
  }
  c10::impl::GenericList list(value_.toList().elementType());
  for (const auto& object : objects_) {
    list.push_back(object->value);
  }
  return list;
}

bool is_same_geometry(const at::Tensor& tensor, const OutputMeta& expected) {
  return tensor.sizes() == expected.sizes && tensor.scalar_type() == expected.dtype &&
         (!tensor.is_quantized() || numbers_of(tensor) == expected.quantizer);
}

// The callable that a launch from the cache holds.
struct CachedCall {
  c10::OperatorHandle op;
  c10::DispatchKey key;
  std::shared_ptr<const OutputMetas> metas;
  std::vector<OwnedValue> arguments;
  std::vector<OperandDescriptor> outputs;  // one for each result that is not an operand

  void operator()() {
    runtime::AliasStorages storages;
    Stack operands;
    for (OwnedValue& argument : arguments) {
      operands.push_back(argument.open(storages));
    }
    Stack results = operands;
    op.redispatchBoxed(c10::DispatchKeySet(key), &results);
    size_t next = 0;
    for (size_t i = 0; i < metas->size(); ++i) {
      const OutputMeta& expected = (*metas)[i];
      if (expected.dtype == c10::ScalarType::Undefined) {
        continue;
      }
      const at::Tensor& result = results[i].toTensor();
      TORCH_CHECK(result.defined() && is_same_geometry(result, expected), op.operator_name(),
                  ": the kernel gave another result than for the same sizes, dtypes and options before; please report "
                  "this");
      const at::Tensor output =
          expected.is_operand ? operands[expected.operand].toTensor() : outputs[next++].make_tensor(storages);
      if (!output.is_same(result)) {  // some kernels return another tensor than the operand that they had to write
        output.copy_(result);
      }
    }
  }
};

at::Tensor make_result(const OutputMeta& result) {
  if (result.quantizer.scheme == c10::kPerTensorAffine) {
    return make_quantized(
        result.sizes, result.strides, c10::MemoryFormat::Contiguous, result.dtype,
        at::make_per_tensor_affine_quantizer(result.quantizer.scale, result.quantizer.zero_point, result.dtype));
  }
  return make_output(result.sizes, result.strides, c10::TensorOptions().dtype(result.dtype));
}

void launch_cached(const c10::OperatorHandle& op, Stack* stack, c10::Stream stream,
                   const std::shared_ptr<const OutputMetas>& metas) {
  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  std::vector<c10::IValue> results;
  std::vector<at::Tensor> made;
  for (const OutputMeta& expected : *metas) {
    if (expected.is_operand) {
      results.push_back((*stack)[first + expected.operand]);
    } else if (expected.dtype == c10::ScalarType::Undefined) {
      results.emplace_back(at::Tensor());
    } else {
      made.push_back(make_result(expected));
      results.emplace_back(made.back());
    }
  }
  const char* const name = op.schema().name().c_str();
  runtime::AliasBuilder aliases(name);
  const auto make = [&] {
    CachedCall call{op, cpu_key_of(op, *stack), metas, {}, {}};
    call.arguments.reserve(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      call.arguments.emplace_back((*stack)[first + i], aliases.as(access_of(arguments[i])));
    }
    for (const at::Tensor& output : made) {
      call.outputs.emplace_back(output, aliases.as(orAccessWrite));
    }
    return call;
  };
  runtime::launch_emplace(name, stream, make, aliases.operands());
  torch::jit::drop(*stack, arguments.size());
  for (c10::IValue& result : results) {
    stack->push_back(std::move(result));
  }
}

// Returns the metadata of the results for later calls with this key, or nothing if their outputs cannot be allocated.
std::optional<OutputMetas> metas_of(const c10::OperatorHandle& op, const Stack& given, const Stack& results) {
  const auto& arguments = op.schema().arguments();
  OutputMetas metas;
  for (const c10::IValue& value : results) {
    if (!value.isTensor()) {
      return std::nullopt;
    }
    const at::Tensor& tensor = value.toTensor();
    OutputMeta result;
    bool is_view = false;  // of an operand, or one of several in a list
    for (size_t i = 0; i < arguments.size() && tensor.defined() && !result.is_operand; ++i) {
      result.is_operand = given[i].isTensor() && given[i].toTensor().is_same(tensor);
      result.operand = i;
      for_each_tensor_in(given[i], [&](const at::Tensor& operand) { is_view |= operand.is_alias_of(tensor); });
    }
    if (tensor.defined()) {
      result.sizes = c10::DimVector(tensor.sizes());
      result.strides = c10::DimVector(tensor.strides());
      result.dtype = tensor.scalar_type();
      result.quantizer = tensor.is_quantized() ? numbers_of(tensor) : QuantizerNumbers();
    }
    const bool can_be_made =
        !is_view && !is_below_byte(result.dtype) &&
        (!tensor.defined() || (tensor.is_non_overlapping_and_dense() &&
                               (!tensor.is_quantized() || result.quantizer.scheme == c10::kPerTensorAffine)));
    if (!result.is_operand && !can_be_made) {
      return std::nullopt;
    }
    metas.push_back(std::move(result));
  }
  return metas;
}

// Runs the kernel synchronously, copies its results to the device, and caches their metadata. Throws c10::Error if the
// stream is capturing or the sync debug mode forbids synchronizing.
void launch_first(const c10::OperatorHandle& op, Stack* stack, c10::Stream stream, const CallKey& key) {
  const char* const name = op.schema().name().c_str();
  TORCH_CHECK_NOT_IMPLEMENTED(
      !runtime::is_capturing(stream), name,
      " cannot be captured yet: only its kernel determines the shapes of its results, and a capturing stream of ",
      stream.device(), " records work without running it. Run it once before the capture");
  check_sync_allowed(name, stream);
  const Stack given = torch::jit::last(*stack, op.schema().arguments().size()).vec();
  BoxedCpuCall call(op, *stack, stream.device());
  call.run_on_engine(cpu_key_of(op, *stack));
  call.finish();
  // An operand that the kernel wrote may have another shape or quantizer now. Then its key differs from that of
  // the call, and nothing is cached.
  if (!key.is_open() && CallKey(op, given).bytes() == key.bytes()) {
    if (auto metas = metas_of(op, given, torch::jit::last(*stack, op.schema().returns().size()).vec())) {
      OutputMetaCache::instance().remember(key.bytes(), std::move(*metas));
    }
  }
}

}  // namespace

void run_cached_meta(const c10::OperatorHandle& op, Stack* stack) {
  const c10::Device device = device_of_call(*stack, op.schema().arguments().size());
  check_devices_of_call(op, *stack, device);
  const CurrentDeviceGuard current(device);
  const c10::Stream stream = runtime::current_stream(device.index());
  const CallKey key(op, *stack);
  if (const auto metas = OutputMetaCache::instance().find(key.bytes())) {
    launch_cached(op, stack, stream, metas);
  } else {
    launch_first(op, stack, stream, key);
  }
}

void cached_meta(torch::Library& library, c10::ArrayRef<const char*> names) {
  boxed<&run_cached_meta>(library, names);
}

}  // namespace openreg::ops
