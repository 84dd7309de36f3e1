// SPDX-License-Identifier: BSD-3-Clause
// Operators whose output shape or result depends on data: nonzero, masked_select, unique, bincount, repeat_interleave,
// equal. The host blocks once. If a count determines the shape, the engine counts, and a second launch writes straight
// into the output. Otherwise the engine computes the result, and a second launch copies it into an output of its size.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/count_nonzero.h>

#include "launch/run_and_wait.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Returns the number of nonzero elements. Blocks until the engine has counted them, unless there are none to count.
int64_t wait_for_count(const char* name, const at::Tensor& tensor) {
  const auto count = [](const at::Tensor& all) { return at::count_nonzero(all).item<int64_t>(); };
  return tensor.numel() == 0 ? 0 : run_kernel_and_wait<const at::Tensor&>(name, tensor.device(), count, tensor);
}

OutputSpec meta_nonzero(const at::Tensor& self) {
  const int64_t count = wait_for_count("aten::nonzero", self);
  OutputSpec spec = output_of({count, self.dim()}, at::kLong);
  spec.strides = {1, std::max<int64_t>(count, 1)};  // the indices of one dimension are adjacent
  return spec;
}

OutputSpec meta_nonzero_static(const at::Tensor& self, int64_t size, int64_t /*fill_value*/) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  return output_of({size, self.dim()}, at::kLong);
}

OutputSpec meta_masked_select(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  const at::Tensor everywhere = mask.expand(at::infer_size_dimvector(mask.sizes(), self.sizes()));
  return output_of({wait_for_count("aten::masked_select", everywhere)}, self.scalar_type());
}

// Returns new outputs, and launches the copy of the results into them. Results are in CPU memory that the kernel
// allocated. An undefined result has an undefined output.
template <size_t kOutputs>
std::array<at::Tensor, kOutputs> bring(const char* name, c10::Device device, std::array<at::Tensor, kOutputs> results) {
  runtime::AliasBuilder aliases(name);
  std::array<at::Tensor, kOutputs> outputs;
  std::array<at::Tensor, kOutputs> to;
  for (size_t i = 0; i < kOutputs; ++i) {
    if (results[i].defined()) {
      outputs[i] = make_output(results[i].sizes(), results[i].strides(), results[i].options().device(device));
    }
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
  return outputs;
}

// An operator whose kernel returns tensors of sizes that depend on data. Blocks until the kernel has run.
template <class Op, auto* kKernel>
constexpr auto data_dependent = []<class... Args>(Args... args) {
  const OperandDeviceGuard device({Op::name}, args...);
  auto computed = run_kernel_and_wait<Args...>(Op::name, device, kKernel, args...);
  if constexpr (std::is_same_v<decltype(computed), at::Tensor>) {
    return bring<1>(Op::name, device, {std::move(computed)})[0];
  } else {
    const auto as_array = [](auto&... tensors) { return std::array{std::move(tensors)...}; };
    const auto outputs = bring(Op::name, device, std::apply(as_array, computed));
    return std::apply([](const auto&... tensors) { return decltype(computed)(tensors...); }, outputs);
  }
};

OutputSpec meta_repeat_interleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  require_dtype(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt, "repeat_interleave_cpu",
                repeats.scalar_type());
  return output_of({*output_size}, repeats.scalar_type());
}

const auto kRepeatInterleave =
    unstructured_operator<meta_repeat_interleave, op::repeat_interleave_Tensor>(cpu::repeat_interleave);

// Blocks until the kernel has run, unless the caller passes the output's size.
at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  if (output_size.has_value()) {
    return kRepeatInterleave.functional(repeats, output_size);
  }
  constexpr SchemaOf<op::repeat_interleave_Tensor>* kDataDependent =
      data_dependent<op::repeat_interleave_Tensor, cpu::repeat_interleave>;
  return kDataDependent(repeats, output_size);
}

bool equal(const at::Tensor& self, const at::Tensor& other) {
  constexpr Operator kEqual{"aten::equal"};
  const OperandDeviceGuard device(kEqual, self, other);
  if (self.sizes() != other.sizes()) {
    return false;
  }
  return run_kernel_and_wait<const at::Tensor&, const at::Tensor&>(kEqual.name, device, &cpu::equal, self, other);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_unique>(library, data_dependent<op::_unique, cpu::_unique>);
  function<op::_unique2>(library, data_dependent<op::_unique2, cpu::_unique2>);
  function<op::bincount>(library, data_dependent<op::bincount, cpu::bincount>);
  function<op::equal>(library, equal);
  // masked_select and nonzero have no dry run, because their sizes depend on data and a dry run has zeros for data.
  unstructured<meta_masked_select, op::masked_select>(library, cpu::masked_select_outf, kChecked);
  unstructured<meta_nonzero, op::nonzero>(library, cpu::nonzero_outf, kChecked);
  unstructured<meta_nonzero_static, op::nonzero_static>(library, cpu::nonzero_static_outf);
  function<op::repeat_interleave_Tensor>(library, repeat_interleave);
  function<op::unique_consecutive>(library, data_dependent<op::unique_consecutive, cpu::unique_consecutive>);
  function<op::unique_dim>(library, data_dependent<op::unique_dim, cpu::unique_dim>);
  function<op::unique_dim_consecutive>(library,
                                       data_dependent<op::unique_dim_consecutive, cpu::unique_dim_consecutive>);
}

}  // namespace

}  // namespace openreg::ops
