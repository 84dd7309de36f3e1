// SPDX-License-Identifier: BSD-3-Clause
// Tensors that depend only on arguments: ranges, eye, the indices of triangles, kaiser_window, zeros without memory.
#include <ATen/Dispatch.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/kaiser_window.h>
#include <ATen/ops/linspace_native.h>
#include <ATen/ops/logspace_native.h>
#include <ATen/ops/tril_indices_native.h>
#include <ATen/ops/triu_indices_native.h>

#include "launch/scalar_range.h"
#include "openreg/runtime/device.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

// Resizes `out` if it has another number of elements. Otherwise it keeps its shape, and gets the numbers in its own
// order.
OutputSpec meta_arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, const at::Tensor& out) {
  int64_t count = 0;
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "aten::arange",
                             [&] { count = at::native::compute_arange_size<scalar_t>(start, end, step); });
  if (out.numel() != count) {
    if (out.numel() > 0) {
      TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
                 " which does not match the computed number of elements ", count,
                 ". Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor "
                 "of shape (",
                 count, ",).");
    }
    out.resize_({count});
  }
  return output_of_shape(out);
}

OutputSpec meta_steps(int64_t steps, const at::Tensor& out, const char* kernel) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  require_dtype(steps < 2 || out.scalar_type() != at::kBool, kernel, out.scalar_type());
  return (out.numel() == steps ? output_of_shape(out) : output_of({steps}, out.scalar_type()))
      .allowing({.quiet = true});
}

// Throw c10::Error for a wrong bound, which is a number, or a 0-dim tensor that only the kernel reads. Numbers are not
// checked if there are no steps, because no kernel reads them.
void check_bound(const at::Scalar& bound, int64_t steps, const at::Tensor& out, const char* /*name*/,
                 const char* /*which*/) {
  if (steps > 0) {
    check_scalar_range(bound, out.scalar_type());
  }
}
void check_bound(const at::Tensor& bound, int64_t /*steps*/, const at::Tensor& /*out*/, const char* name,
                 const char* which) {
  TORCH_CHECK(bound.dim() == 0, name, " only supports 0-dimensional start and end tensors, but got ", which, " with ",
              bound.dim(), " dimension(s).");
}

constexpr auto meta_linspace = [](const auto& start, const auto& end, int64_t steps, const at::Tensor& out) {
  check_bound(start, steps, out, "linspace", "start");
  check_bound(end, steps, out, "linspace", "end");
  return meta_steps(steps, out, "linspace_cpu");
};

constexpr auto meta_logspace = [](const auto& start, const auto& end, int64_t steps, double /*base*/,
                                  const at::Tensor& out) {
  check_bound(start, steps, out, "logspace", "start");
  check_bound(end, steps, out, "logspace", "end");
  return meta_steps(steps, out, "logspace_cpu");
};

OutputSpec meta_matrix(int64_t rows, int64_t columns, const at::Tensor& out) {
  TORCH_CHECK(rows >= 0, "n must be greater or equal to 0, got ", rows);
  TORCH_CHECK(columns >= 0, "m must be greater or equal to 0, got ", columns);
  return output_of({rows, columns}, out.scalar_type()).allowing({.expands = true, .quiet = true});
}

OutputSpec meta_square(int64_t rows, const at::Tensor& out) {
  return meta_matrix(rows, rows, out);
}

using TriangleKernel = at::Tensor(int64_t, int64_t, int64_t, std::optional<c10::ScalarType>, std::optional<c10::Layout>,
                                  std::optional<c10::Device>, std::optional<bool>);

template <TriangleKernel* kKernel>
void write_triangle(int64_t rows, int64_t columns, int64_t offset, at::Tensor& out) {
  out.copy_(kKernel(rows, columns, offset, out.scalar_type(), c10::kStrided, c10::kCPU, false));
}

template <class Op, TriangleKernel* kKernel>
at::Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<c10::ScalarType> dtype,
                            std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                            std::optional<bool> pin_memory) {
  constexpr bool kIsLower = std::is_same_v<Op, op::tril_indices>;
  constexpr Operator kOp{Op::name};
  at::native::check_args(rows, columns, layout);
  const c10::ScalarType index_dtype = dtype.value_or(at::kLong);
  require_dtype(index_dtype == at::kLong || index_dtype == at::kInt, kIsLower ? "tril_indices" : "triu_indices",
                index_dtype);
  const int64_t lower = at::native::get_tril_size(rows, columns, kIsLower ? offset : offset - 1);
  const at::Tensor out = at::empty({2, kIsLower ? lower : rows * columns - lower},
                                   at::TensorOptions().dtype(index_dtype).device(device).pinned_memory(pin_memory));
  const CurrentDeviceGuard current(out.device());
  launch(kOp, out.device(), &write_triangle<kKernel>, rows, columns, offset, out);
  return out;
}

// Returns zeros that autograd recognizes. They have no memory until an operator needs their values.
at::Tensor efficient_zeros(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                           std::optional<c10::Layout> /*layout*/, std::optional<c10::Device> device,
                           std::optional<bool> pin_memory) {
  at::native::ZeroTensorAllocator allocator(factory_device(op::_efficientzerotensor::name, device, pin_memory));
  constexpr c10::DispatchKeySet kKeys =
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1) | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor);
  return at::detail::empty_generic(sizes, &allocator, kKeys, c10::dtype_or_default(dtype), std::nullopt);
}

// Computes the window for kaiser_window_stub. kaiser_window() is a composite that allocates the window and calls the
// device's kernel in the stub. Neither a fallback nor another kernel can replace that. A periodic window is one of
// `length` values without the last.
void kaiser_window_kernel(int64_t length, double beta, at::Tensor& window) {
  window.copy_(at::kaiser_window(length, /*periodic=*/false, beta, window.options()).narrow(0, 0, window.numel()));
}

// Launches the kernel; PyTorch calls this function on the host. The iterator's operand has the positions 0, 1, ...,
// which the kernel does not need.
void launch_kaiser_window(at::TensorIteratorBase& iterator, int64_t length, double beta) {
  constexpr Operator kKaiserWindow{"aten::kaiser_window"};
  const at::Tensor window = iterator.tensor(0);
  const OperandDeviceGuard device(kKaiserWindow, window);
  launch(kKaiserWindow, device, &kaiser_window_kernel, length, beta, window);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::_efficientzerotensor>(library, efficient_zeros);
  unstructured<meta_arange, op::arange_start_out>(library, cpu::arange_outf, kChecked);
  unstructured<meta_matrix, op::eye_m_out>(library, cpu::eye_outf);
  unstructured<meta_square, op::eye_out>(library, cpu::eye_outf);
  unstructured<meta_linspace, op::linspace_out>(library, cpu::linspace_outf);
  unstructured<meta_linspace, op::linspace_Scalar_Tensor_out>(library, at::native::linspace_out);
  unstructured<meta_linspace, op::linspace_Tensor_Scalar_out>(library, at::native::linspace_out);
  unstructured<meta_linspace, op::linspace_Tensor_Tensor_out>(library, at::native::linspace_out);
  unstructured<meta_logspace, op::logspace_out>(library, cpu::logspace_outf);
  unstructured<meta_logspace, op::logspace_Scalar_Tensor_out>(library, at::native::logspace_out);
  unstructured<meta_logspace, op::logspace_Tensor_Scalar_out>(library, at::native::logspace_out);
  unstructured<meta_logspace, op::logspace_Tensor_Tensor_out>(library, at::native::logspace_out);
  function<op::tril_indices>(library, triangle_indices<op::tril_indices, at::native::tril_indices_cpu>);
  function<op::triu_indices>(library, triangle_indices<op::triu_indices, at::native::triu_indices_cpu>);
}

}  // namespace

}  // namespace openreg::ops

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(kaiser_window_stub, &openreg::ops::launch_kaiser_window)
}  // namespace at::native
