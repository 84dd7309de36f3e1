// SPDX-License-Identifier: BSD-3-Clause
// Tensors that arguments alone settle: linspace, logspace, eye, the indices of triangles, zeros without memory.
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye_cpu_dispatch.h>
#include <ATen/ops/eye_ops.h>
#include <ATen/ops/linspace_cpu_dispatch.h>
#include <ATen/ops/linspace_native.h>
#include <ATen/ops/linspace_ops.h>
#include <ATen/ops/logspace_cpu_dispatch.h>
#include <ATen/ops/logspace_native.h>
#include <ATen/ops/logspace_ops.h>
#include <ATen/ops/tril_indices_native.h>
#include <ATen/ops/triu_indices_native.h>
#include <torch/library.h>

#include "common/described.h"
#include "common/numbers.h"
#include "openreg/runtime/device.h"

namespace openreg::ops {

namespace {

OutputSpec describe_steps(int64_t steps, const at::Tensor& out, const char* kernel) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  require_dtype(steps < 2 || out.scalar_type() != at::kBool, kernel, out.scalar_type());
  OutputSpec spec = out.numel() == steps ? output_of_shape(out) : output_of({steps}, out.scalar_type());
  spec.quiet = true;
  return spec;
}

// A bound may be a number, or a 0-dim tensor, which only the kernel reads. Without steps nobody looks at numbers.
void check_bound(const at::Scalar& bound, int64_t steps, const at::Tensor& out, const char* /*name*/) {
  if (steps > 0) {
    require_number(bound, out.scalar_type());
  }
}
void check_bound(const at::Tensor& bound, int64_t /*steps*/, const at::Tensor& /*out*/, const char* name) {
  TORCH_CHECK(bound.dim() == 0, name, " only supports 0-dimensional start and end tensors, but got start with ",
              bound.dim(), " dimension(s).");
}

constexpr auto describe_linspace = [](const auto& start, const auto& end, int64_t steps, const at::Tensor& out) {
  check_bound(start, steps, out, "linspace");
  check_bound(end, steps, out, "linspace");
  return describe_steps(steps, out, "linspace_cpu");
};

constexpr auto describe_logspace = [](const auto& start, const auto& end, int64_t steps, double /*base*/,
                                      const at::Tensor& out) {
  check_bound(start, steps, out, "logspace");
  check_bound(end, steps, out, "logspace");
  return describe_steps(steps, out, "logspace_cpu");
};

OutputSpec describe_matrix(int64_t rows, int64_t columns, const at::Tensor& out) {
  TORCH_CHECK(rows >= 0, "n must be greater or equal to 0, got ", rows);
  TORCH_CHECK(columns >= 0, "m must be greater or equal to 0, got ", columns);
  OutputSpec spec = output_of({rows, columns}, out.scalar_type());
  spec.quiet = true;
  spec.expands = true;
  return spec;
}

OutputSpec describe_square(int64_t rows, const at::Tensor& out) {
  return describe_matrix(rows, rows, out);
}

using TriangleKernel = at::Tensor(int64_t, int64_t, int64_t, std::optional<c10::ScalarType>, std::optional<c10::Layout>,
                                  std::optional<c10::Device>, std::optional<bool>);

template <TriangleKernel* kKernel>
at::Tensor& write_triangle(int64_t rows, int64_t columns, int64_t offset, at::Tensor& out) {
  out = kKernel(rows, columns, offset, out.scalar_type(), c10::kStrided, c10::kCPU, false);
  return out;
}

template <TriangleKernel* kKernel>
at::Tensor triangle(const char* name, int64_t count, int64_t rows, int64_t columns, int64_t offset,
                    const at::TensorOptions& options) {
  const at::Tensor out = at::empty({2, count}, options);
  const CurrentDevice current(out.device());
  launch_described<at::Tensor&(int64_t, int64_t, int64_t, at::Tensor&), 1, int64_t, int64_t, int64_t>(
      name, out.device(), &write_triangle<kKernel>, {out}, rows, columns, offset);
  return out;
}

at::TensorOptions triangle_options(int64_t rows, int64_t columns, std::optional<c10::ScalarType> dtype,
                                   std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                                   std::optional<bool> pin_memory, const char* kernel) {
  at::native::check_args(rows, columns, layout);
  const c10::ScalarType index_dtype = dtype.value_or(at::kLong);
  require_dtype(index_dtype == at::kLong || index_dtype == at::kInt, kernel, index_dtype);
  return at::TensorOptions().dtype(index_dtype).device(device).pinned_memory(pin_memory);
}

at::Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<c10::ScalarType> dtype,
                        std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                        std::optional<bool> pin_memory) {
  const auto options = triangle_options(rows, columns, dtype, layout, device, pin_memory, "tril_indices");
  const int64_t count = at::native::get_tril_size(rows, columns, offset);
  return triangle<at::native::tril_indices_cpu>("aten::tril_indices", count, rows, columns, offset, options);
}

at::Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<c10::ScalarType> dtype,
                        std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                        std::optional<bool> pin_memory) {
  const auto options = triangle_options(rows, columns, dtype, layout, device, pin_memory, "triu_indices");
  const int64_t count = rows * columns - at::native::get_tril_size(rows, columns, offset - 1);
  return triangle<at::native::triu_indices_cpu>("aten::triu_indices", count, rows, columns, offset, options);
}

// Zeros that autograd knows as such: without memory until an operator wants their values.
at::Tensor efficient_zeros(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                           std::optional<c10::Layout> /*layout*/, std::optional<c10::Device> device,
                           std::optional<bool> /*pin_memory*/) {
  const bool has_index = device.has_value() && device->has_index();
  const c10::DeviceIndex index = has_index ? device->index() : runtime::current_device();
  runtime::check_device_index(index);
  at::native::ZeroTensorAllocator allocator({runtime::kDeviceType, index});
  constexpr c10::DispatchKeySet kKeys =
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1) | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor);
  return at::detail::empty_generic(sizes, &allocator, kKeys, c10::dtype_or_default(dtype), std::nullopt);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED_OUT_ONLY(library, eye_m_out, at::cpu::eye_outf, describe_matrix)
  OPENREG_DESCRIBED_OUT_ONLY(library, eye_out, at::cpu::eye_outf, describe_square)
  OPENREG_DESCRIBED_OUT_ONLY(library, linspace_out, at::cpu::linspace_outf, describe_linspace)
  OPENREG_DESCRIBED_OUT_ONLY(library, linspace_Scalar_Tensor_out, at::native::linspace_out, describe_linspace)
  OPENREG_DESCRIBED_OUT_ONLY(library, linspace_Tensor_Scalar_out, at::native::linspace_out, describe_linspace)
  OPENREG_DESCRIBED_OUT_ONLY(library, linspace_Tensor_Tensor_out, at::native::linspace_out, describe_linspace)
  OPENREG_DESCRIBED_OUT_ONLY(library, logspace_out, at::cpu::logspace_outf, describe_logspace)
  OPENREG_DESCRIBED_OUT_ONLY(library, logspace_Scalar_Tensor_out, at::native::logspace_out, describe_logspace)
  OPENREG_DESCRIBED_OUT_ONLY(library, logspace_Tensor_Scalar_out, at::native::logspace_out, describe_logspace)
  OPENREG_DESCRIBED_OUT_ONLY(library, logspace_Tensor_Tensor_out, at::native::logspace_out, describe_logspace)
  library.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
  library.impl("tril_indices", TORCH_FN(tril_indices));
  library.impl("triu_indices", TORCH_FN(triu_indices));
}

}  // namespace

}  // namespace openreg::ops
