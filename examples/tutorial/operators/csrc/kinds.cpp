// SPDX-License-Identifier: BSD-3-Clause
// One operator of each kind that the steps do not show. The page "Add any operator to your backend" of openreg's guide
// explains them.
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_to_sparse_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/frexp_cpu_dispatch.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/masked_fill_cpu_dispatch.h>
#include <ATen/ops/nansum.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum_meta_dispatch.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cmath>
#include <vector>

#include "dtypes.h"
#include "launch.h"

namespace pocket {

namespace {

using Optional = std::optional<at::Tensor>;

void check_device(const char* name, const at::Tensor& tensor, c10::Device device) {
  TORCH_CHECK(tensor.device() == device, name, ": expected all tensors on ", device, ", but got one on ",
              tensor.device());
}

// Checks an operand whose elements a kernel counts and reads by the dtype and sizes of another one.
void check_operand(const char* name, const char* operand, const at::Tensor& tensor, c10::Device device,
                   c10::ScalarType dtype, c10::IntArrayRef sizes) {
  check_device(name, tensor, device);
  TORCH_CHECK(tensor.scalar_type() == dtype && tensor.sizes() == sizes, name, ": expected ", operand, " of dtype ",
              dtype, " and sizes ", sizes, ", but got ", tensor.scalar_type(), " and ", tensor.sizes());
}

// Three outputs, optional tensors, and a backward operator: native_layer_norm.

// A weight or bias without gaps in memory, or an undefined tensor. None arrives in two forms: as no value, and as a
// value that is an undefined tensor.
at::Tensor dense_or_undefined(const char* name, const Optional& tensor, const at::Tensor& input,
                              c10::IntArrayRef shape) {
  if (!tensor.has_value() || !tensor->defined()) {
    return {};
  }
  check_operand(name, "a weight and bias", *tensor, input.device(), input.scalar_type(), shape);
  return tensor->contiguous();
}

at::Tensor view_or_undefined(const at::Tensor& tensor) {
  return tensor.defined() ? host_view(tensor) : at::Tensor();
}

template <class T>
T* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr;
}

// An input as rows that are normalized one by one, and the sizes of what there is once for each row.
struct Rows {
  int64_t count;
  int64_t width;
  std::vector<int64_t> statistics;
};

Rows rows_of(const at::Tensor& input, c10::IntArrayRef shape) {
  check_dtype("native_layer_norm", input.scalar_type(), is_float);
  const int64_t outer = input.dim() - static_cast<int64_t>(shape.size());
  TORCH_CHECK(!shape.empty() && outer >= 0 && input.sizes().slice(outer) == shape,
              "native_layer_norm: expected an input whose last sizes are ", shape, ", but got ", input.sizes());
  const c10::IntArrayRef sizes = input.sizes().slice(0, outer);
  std::vector<int64_t> statistics = sizes.vec();
  statistics.resize(input.dim(), 1);
  return {c10::multiply_integers(sizes), c10::multiply_integers(shape), std::move(statistics)};
}

void layer_norm_kernel(const Rows& rows, double epsilon, const at::Tensor& input, const at::Tensor& weight,
                       const at::Tensor& bias, const at::Tensor& output, const at::Tensor& mean,
                       const at::Tensor& rstd) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, input.scalar_type(), "native_layer_norm", [&] {
    using Wide = at::acc_type<scalar_t, true>;
    const auto* factors = data_or_null<scalar_t>(weight);
    const auto* shifts = data_or_null<scalar_t>(bias);
    for (int64_t row = 0; row < rows.count; ++row) {
      const auto* from = input.const_data_ptr<scalar_t>() + row * rows.width;
      auto* to = output.mutable_data_ptr<scalar_t>() + row * rows.width;
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < rows.width; ++i) {
        sum += from[i];
      }
      const double average = sum / rows.width;
      for (int64_t i = 0; i < rows.width; ++i) {
        squares += (from[i] - average) * (from[i] - average);
      }
      const double scale = 1 / std::sqrt(squares / rows.width + epsilon);
      for (int64_t i = 0; i < rows.width; ++i) {
        const double factor = factors == nullptr ? 1 : static_cast<double>(factors[i]);
        const double shift = shifts == nullptr ? 0 : static_cast<double>(shifts[i]);
        to[i] = static_cast<scalar_t>((from[i] - average) * scale * factor + shift);
      }
      mean.mutable_data_ptr<Wide>()[row] = static_cast<Wide>(average);
      rstd.mutable_data_ptr<Wide>()[row] = static_cast<Wide>(scale);
    }
  });
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm(const at::Tensor& input, c10::IntArrayRef shape,
                                                          const Optional& weight, const Optional& bias,
                                                          double epsilon) {
  const Rows rows = rows_of(input, shape);
  const c10::DeviceGuard guard(input.device());
  const at::Tensor dense = input.contiguous();
  const at::Tensor factors = dense_or_undefined("native_layer_norm", weight, input, shape);
  const at::Tensor shifts = dense_or_undefined("native_layer_norm", bias, input, shape);
  at::Tensor output = at::empty_like(dense);
  // As on CUDA, what is kept for backward has more digits than a half.
  at::Tensor mean = at::empty(rows.statistics, input.options().dtype(at::toAccumulateType(input.scalar_type(), true)));
  at::Tensor rstd = at::empty_like(mean);
  launch(input.device(), [rows, epsilon, x = host_view(dense), w = view_or_undefined(factors),
                          b = view_or_undefined(shifts), y = host_view(output), m = host_view(mean),
                          r = host_view(rstd)] { layer_norm_kernel(rows, epsilon, x, w, b, y, m, r); });
  return {output, mean, rstd};
}

// Fills the gradients that are defined.
void layer_norm_backward_kernel(const Rows& rows, const at::Tensor& grad, const at::Tensor& input,
                                const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& weight,
                                const at::Tensor& of_input, const at::Tensor& of_weight, const at::Tensor& of_bias) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, input.scalar_type(), "native_layer_norm_backward", [&] {
    using Wide = at::acc_type<scalar_t, true>;
    const auto* factors = data_or_null<scalar_t>(weight);
    auto* to = data_or_null<scalar_t>(of_input);
    std::vector<double> weight_sums(rows.width), bias_sums(rows.width), normalized(rows.width), scaled(rows.width);
    for (int64_t row = 0; row < rows.count; ++row) {
      const auto* grads = grad.const_data_ptr<scalar_t>() + row * rows.width;
      const auto* from = input.const_data_ptr<scalar_t>() + row * rows.width;
      const double average = mean.const_data_ptr<Wide>()[row], scale = rstd.const_data_ptr<Wide>()[row];
      double sum = 0, product = 0;  // of the scaled gradients, and of them times the normalized values
      for (int64_t i = 0; i < rows.width; ++i) {
        normalized[i] = (from[i] - average) * scale;
        scaled[i] = grads[i] * (factors == nullptr ? 1 : static_cast<double>(factors[i]));
        sum += scaled[i];
        product += scaled[i] * normalized[i];
        weight_sums[i] += grads[i] * normalized[i];
        bias_sums[i] += grads[i];
      }
      for (int64_t i = 0; to != nullptr && i < rows.width; ++i) {
        const double value = scale * (scaled[i] - (sum + normalized[i] * product) / rows.width);
        to[row * rows.width + i] = static_cast<scalar_t>(value);
      }
    }
    for (int64_t i = 0; i < rows.width; ++i) {
      if (of_weight.defined()) {
        of_weight.mutable_data_ptr<scalar_t>()[i] = static_cast<scalar_t>(weight_sums[i]);
      }
      if (of_bias.defined()) {
        of_bias.mutable_data_ptr<scalar_t>()[i] = static_cast<scalar_t>(bias_sums[i]);
      }
    }
  });
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(const at::Tensor& grad, const at::Tensor& input,
                                                                   c10::IntArrayRef shape, const at::Tensor& mean,
                                                                   const at::Tensor& rstd, const Optional& weight,
                                                                   const Optional& bias, std::array<bool, 3> wanted) {
  const Rows rows = rows_of(input, shape);
  check_operand("native_layer_norm_backward", "grad", grad, input.device(), input.scalar_type(), input.sizes());
  const c10::ScalarType wide = at::toAccumulateType(input.scalar_type(), true);
  check_operand("native_layer_norm_backward", "mean", mean, input.device(), wide, rows.statistics);
  check_operand("native_layer_norm_backward", "rstd", rstd, input.device(), wide, rows.statistics);
  const c10::DeviceGuard guard(input.device());
  const at::Tensor dense_grad = grad.contiguous(), dense = input.contiguous();
  const at::Tensor means = mean.contiguous(), scales = rstd.contiguous();
  const at::Tensor factors = dense_or_undefined("native_layer_norm_backward", weight, input, shape);
  // The caller says which gradients it wants. One that it does not want is an undefined tensor.
  const bool has_bias = bias.has_value() && bias->defined();
  at::Tensor of_input = wanted[0] ? at::empty_like(dense) : at::Tensor();
  at::Tensor of_weight = wanted[1] && factors.defined() ? at::empty(shape, input.options()) : at::Tensor();
  at::Tensor of_bias = wanted[2] && has_bias ? at::empty(shape, input.options()) : at::Tensor();
  launch(input.device(),
         [rows, g = host_view(dense_grad), x = host_view(dense), m = host_view(means), r = host_view(scales),
          w = view_or_undefined(factors), of_x = view_or_undefined(of_input), of_w = view_or_undefined(of_weight),
          of_b = view_or_undefined(of_bias)] { layer_norm_backward_kernel(rows, g, x, m, r, w, of_x, of_w, of_b); });
  return {of_input, of_weight, of_bias};
}

// No meta function, two outputs, and out= is the overload that a device writes: frexp.
std::tuple<at::Tensor&, at::Tensor&> frexp_out(const at::Tensor& self, at::Tensor& mantissa, at::Tensor& exponent) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "frexp: expected a floating-point tensor, but got ",
              self.scalar_type());
  check_dtype("frexp", self.scalar_type(), is_float);
  TORCH_CHECK(mantissa.scalar_type() == self.scalar_type() && exponent.scalar_type() == at::kInt,
              "frexp: expected a mantissa of dtype ", self.scalar_type(), " and an exponent of dtype Int, but got ",
              mantissa.scalar_type(), " and ", exponent.scalar_type());
  check_device("frexp", mantissa, self.device());
  check_device("frexp", exponent, self.device());
  at::native::resize_output(mantissa, self.sizes());
  at::native::resize_output(exponent, self.sizes());
  at::assert_no_overlap(mantissa, exponent);
  launch(self.device(), [from = host_view(self), digits = host_view(mantissa), power = host_view(exponent)]() mutable {
    at::cpu::frexp_outf(from, digits, power);
  });
  return {mantissa, exponent};
}

// Drops the warnings of a kernel, which the host has given already, on the line that called.
struct Silence final : c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

// In place, with an operand that broadcasts: masked_fill_.
at::Tensor& masked_fill(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_: expected a mask of dtype Bool, but got ",
              mask.scalar_type());
  check_device("masked_fill_", mask, self.device());
  check_dtype("masked_fill_", self.scalar_type(), is_common);
  at::scalar_tensor(value, self.scalar_type());  // throws here, not in the kernel, if the dtype has no such number
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {  // in PyTorch's words, as on the CPU and on CUDA
    TORCH_WARN(
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
  }
  at::assert_no_partial_overlap(self, mask);
  const at::Tensor expanded = mask.expand(self.sizes());  // an operand may broadcast, the output never does
  launch(self.device(), [to = host_view(self), where = host_view(expanded), value]() mutable {
    Silence warned;
    const c10::WarningUtils::WarningHandlerGuard guard(&warned);
    at::cpu::masked_fill_(to, where, value);
  });
  return self;
}

// Lists refer to memory of the caller, which may be gone when the kernel runs: the kernel owns copies.

// A tensor without data, with which PyTorch checks operands and computes what a result is like.
at::Tensor without_data(const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

// A list of numbers that may be missing: nansum. Without it all dimensions are summed, as with an empty one.
at::Tensor nansum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                  std::optional<c10::ScalarType> dtype) {
  at::nansum(at::empty({1}, self.options().device(at::kCPU)), {}, false, dtype);  // its error for a dtype, here
  const c10::DeviceGuard guard(self.device());
  const at::Tensor described = at::meta::sum(without_data(self), dims, keepdim, dtype);  // has the same sizes and dtype
  at::Tensor output = at::empty(described.sizes(), described.options().device(self.device()));
  std::vector<int64_t> kept = dims.has_value() ? dims->vec() : std::vector<int64_t>();
  launch(self.device(), [kept = std::move(kept), keepdim, dtype, from = host_view(self), to = host_view(output)] {
    to.copy_(at::nansum(from, kept, keepdim, dtype));
  });
  return output;
}

// A list of tensors: stack.
at::Tensor stack(at::TensorList tensors, int64_t dim) {
  const c10::Device device = tensors.front().device();
  const c10::DeviceGuard guard(device);
  std::vector<at::Tensor> kept, operands;
  for (const at::Tensor& tensor : tensors) {
    check_device("stack", tensor, device);
    check_dtype("stack", tensor.scalar_type(), is_common);
    kept.push_back(host_view(tensor));
    operands.push_back(without_data(tensor));
  }
  const at::Tensor described = at::stack(operands, dim);
  at::Tensor output = at::empty_strided(described.sizes(), described.strides(), described.options().device(device));
  launch(device, [kept = std::move(kept), dim, to = host_view(output)] { to.copy_(at::stack(kept, dim)); });
  return output;
}

// A composite operator in one launch instead of several: isfinite. It has no derivative that could get lost.
at::Tensor isfinite(const at::Tensor& self) {
  at::isfinite(at::empty({1}, self.options().device(at::kCPU)));  // its error for a dtype, here as one of the call
  const c10::DeviceGuard guard(self.device());
  at::Tensor output = at::empty_like(self, self.options().dtype(at::kBool));
  launch(self.device(), [from = host_view(self), to = host_view(output)] { to.copy_(at::isfinite(from)); });
  return output;
}

// The size of the output depends on data: nonzero counts first, and the host waits for the count.
at::Tensor nonzero(const at::Tensor& self) {
  check_dtype("nonzero", self.scalar_type(), is_common);
  const c10::DeviceGuard guard(self.device());
  at::Tensor count = at::empty({}, self.options().dtype(at::kLong));
  launch(self.device(), [from = host_view(self), to = host_view(count)] { to.copy_(at::count_nonzero(from)); });
  // A row for each dimension in memory, and a column for each in the result, as on all devices.
  at::Tensor output = at::empty({self.dim(), count.item<int64_t>()}, count.options()).t();
  launch(self.device(), [from = host_view(self), to = host_view(output)] { to.copy_(at::nonzero(from)); });
  return output;
}

// Sparse: nothing here launches. The dense operators that it calls on indices and values do.
at::Tensor to_dense(const at::Tensor& self, std::optional<c10::ScalarType> dtype, std::optional<bool> /*masked*/) {
  const c10::DeviceGuard guard(self.device());
  const at::Tensor values = self._values();
  at::Tensor dense = at::zeros(self.sizes(), values.options());
  c10::List<Optional> places;
  for (const at::Tensor& row : self._indices().unbind()) {
    places.push_back(row);
  }
  dense.index_put_(places, values, /*accumulate=*/true);
  return dense.to(dtype.value_or(values.scalar_type()));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("native_layer_norm", TORCH_FN(layer_norm));
  library.impl("native_layer_norm_backward", TORCH_FN(layer_norm_backward));
  library.impl("frexp.Tensor_out", TORCH_FN(frexp_out));
  library.impl("masked_fill_.Scalar", TORCH_FN(masked_fill));
  library.impl("nansum", TORCH_FN(nansum));
  library.impl("stack", TORCH_FN(stack));
  library.impl("isfinite", TORCH_FN(isfinite));
  library.impl("nonzero", TORCH_FN(nonzero));
  // PyTorch's function looks for the elements by operators, such as nonzero. The cast chooses one of two of its name.
  library.impl("_to_sparse",
               static_cast<at::Tensor (*)(const at::Tensor&, std::optional<c10::Layout>, at::OptionalIntArrayRef,
                                          std::optional<int64_t>)>(&at::native::dense_to_sparse));
}

// PyTorch's functions that read and write no memory themselves: they are right on every device.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  library.impl("_sparse_coo_tensor_with_dims_and_tensors",
               TORCH_FN(at::native::new_with_dims_and_tensor_sparse_symint));
  library.impl("sparse_dim", TORCH_FN(at::native::sparse_dim_sparse));
  library.impl("dense_dim", TORCH_FN(at::native::dense_dim_sparse));
  library.impl("_nnz", TORCH_FN(at::native::_nnz_sparse));
  library.impl("_indices", TORCH_FN(at::native::_indices_sparse));
  library.impl("_values", TORCH_FN(at::native::_values_sparse));
  library.impl("is_coalesced", TORCH_FN(at::native::is_coalesced_sparse));
  library.impl("_coalesced_", TORCH_FN(at::native::_coalesced_sparse_));
  library.impl("_to_dense", TORCH_FN(to_dense));
}

}  // namespace

}  // namespace pocket
