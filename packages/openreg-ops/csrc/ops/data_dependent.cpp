// SPDX-License-Identifier: BSD-3-Clause
// Operators whose shape or answer depends on the values: nonzero, masked_select, unique, bincount, repeat_interleave,
// equal. The host waits once. Where a count settles the shape, the engine counts, and a second launch writes straight
// into the output; else the engine computes, and a second launch brings the result into memory of its size.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_unique2_cpu_dispatch.h>
#include <ATen/ops/_unique2_ops.h>
#include <ATen/ops/_unique_cpu_dispatch.h>
#include <ATen/ops/_unique_ops.h>
#include <ATen/ops/bincount_cpu_dispatch.h>
#include <ATen/ops/bincount_ops.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/equal_cpu_dispatch.h>
#include <ATen/ops/masked_select_cpu_dispatch.h>
#include <ATen/ops/masked_select_ops.h>
#include <ATen/ops/nonzero_cpu_dispatch.h>
#include <ATen/ops/nonzero_ops.h>
#include <ATen/ops/nonzero_static_cpu_dispatch.h>
#include <ATen/ops/nonzero_static_ops.h>
#include <ATen/ops/repeat_interleave_cpu_dispatch.h>
#include <ATen/ops/repeat_interleave_ops.h>
#include <ATen/ops/unique_consecutive_cpu_dispatch.h>
#include <ATen/ops/unique_consecutive_ops.h>
#include <ATen/ops/unique_dim_cpu_dispatch.h>
#include <ATen/ops/unique_dim_ops.h>
#include <torch/library.h>

#include "common/described.h"
#include "common/wait_for.h"

namespace openreg::ops {

namespace {

int64_t count_on_engine(const at::Tensor& tensor) {
  return at::count_nonzero(tensor).item<int64_t>();
}

// Without elements there is nothing to wait for.
int64_t wait_for_count(const char* name, const at::Tensor& tensor) {
  if (tensor.numel() == 0) {
    return 0;
  }
  return wait_for_kernel<const at::Tensor&>(name, tensor.device(), &count_on_engine, tensor);
}

OutputSpec describe_nonzero(const at::Tensor& self) {
  const int64_t count = wait_for_count("aten::nonzero", self);
  OutputSpec spec = output_of({count, self.dim()}, at::kLong);
  spec.strides = {1, std::max<int64_t>(count, 1)};  // the indices of one dimension stand together
  return spec;
}

OutputSpec describe_nonzero_static(const at::Tensor& self, int64_t size, int64_t /*fill_value*/) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  return output_of({size, self.dim()}, at::kLong);
}

OutputSpec describe_masked_select(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  const at::Tensor everywhere = mask.expand(at::infer_size_dimvector(mask.sizes(), self.sizes()));
  return output_of({wait_for_count("aten::masked_select", everywhere)}, self.scalar_type());
}

// Brings results from the engine's own memory into outputs; an undefined result gives an undefined output.
template <size_t kOutputs>
void bring(const char* name, c10::Device device, std::array<at::Tensor, kOutputs> results,
           std::array<at::Tensor, kOutputs>& outputs) {
  for (size_t i = 0; i < kOutputs; ++i) {
    if (results[i].defined()) {
      outputs[i] = make_output(results[i].sizes(), results[i].strides(), results[i].options().device(device));
    }
  }
  runtime::Aliases aliases(name);
  std::array<at::Tensor, kOutputs> to;
  for (size_t i = 0; i < kOutputs; ++i) {
    to[i] = aliases.as(orAccessWrite)(outputs[i]);
  }
  auto copy = [results = std::move(results), to = std::move(to)]() mutable {
    for (size_t i = 0; i < kOutputs; ++i) {
      if (to[i].defined()) {
        to[i].copy_(results[i]);
      }
    }
  };
  runtime::launch(name, device.index(), std::move(copy), aliases.operands());
}

template <class Operator, class Schema = SchemaOf<Operator>>
struct DataDependent;

template <class Operator, class Result, class... Args>
struct DataDependent<Operator, Result(Args...)> {
  template <Result (*kKernel)(Args...)>
  static Result call(Args... args) {
    const c10::Device device = device_of(Operator::name, args...);
    check_same_device(Operator::name, device, args...);
    const CurrentDevice current(device);
    Result computed = wait_for_kernel<Args...>(Operator::name, device, kKernel, args...);
    if constexpr (std::is_same_v<Result, at::Tensor>) {
      std::array<at::Tensor, 1> output;
      bring<1>(Operator::name, device, {std::move(computed)}, output);
      return std::move(output[0]);
    } else {
      const auto as_array = [](auto&&... tensors) { return std::array{std::move(tensors)...}; };
      std::array<at::Tensor, std::tuple_size_v<Result>> outputs;
      bring(Operator::name, device, std::apply(as_array, std::move(computed)), outputs);
      return std::apply([](auto&&... tensors) { return Result(std::move(tensors)...); }, std::move(outputs));
    }
  }
};

OutputSpec describe_repeat_interleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  require_dtype(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt, "repeat_interleave_cpu",
                repeats.scalar_type());
  return output_of({*output_size}, repeats.scalar_type());
}

OPENREG_DESCRIBED_SPEC(repeat_interleave_Tensor, repeat_interleave_Tensor, at::cpu::repeat_interleave,
                       describe_repeat_interleave)

// A caller who knows the size need not wait.
at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  if (output_size.has_value()) {
    return DescribedOf<Spec_repeat_interleave_Tensor>::functional(repeats, output_size);
  }
  return DataDependent<at::_ops::repeat_interleave_Tensor>::call<at::cpu::repeat_interleave>(repeats, output_size);
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  constexpr const char* kName = "aten::equal";
  const c10::Device device = device_of(kName, self, other);
  check_same_device(kName, device, self, other);
  if (self.sizes() != other.sizes()) {
    return false;
  }
  const CurrentDevice current(device);
  return wait_for_kernel<const at::Tensor&, const at::Tensor&>(kName, device, &at::cpu::equal, self, other);
}

#define OPENREG_DATA_DEPENDENT(library, op, kernel) \
  (library).impl(registered_name<at::_ops::op>().c_str(), TORCH_FN((DataDependent<at::_ops::op>::call<kernel>)))

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DATA_DEPENDENT(library, _unique, at::cpu::_unique);
  OPENREG_DATA_DEPENDENT(library, _unique2, at::cpu::_unique2);
  OPENREG_DATA_DEPENDENT(library, bincount, at::cpu::bincount);
  OPENREG_DATA_DEPENDENT(library, unique_consecutive, at::cpu::unique_consecutive);
  OPENREG_DATA_DEPENDENT(library, unique_dim, at::cpu::unique_dim);
  OPENREG_DESCRIBED_OUT(library, masked_select, masked_select_out, at::cpu::masked_select_outf, describe_masked_select)
  OPENREG_DESCRIBED_OUT(library, nonzero, nonzero_out, at::cpu::nonzero_outf, describe_nonzero)
  OPENREG_DESCRIBED_OUT(library, nonzero_static, nonzero_static_out, at::cpu::nonzero_static_outf,
                        describe_nonzero_static)
  library.impl("equal", TORCH_FN(equal));
  library.impl("repeat_interleave.Tensor", TORCH_FN(repeat_interleave));
}

}  // namespace

}  // namespace openreg::ops
