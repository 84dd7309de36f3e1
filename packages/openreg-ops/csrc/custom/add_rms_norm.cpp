// SPDX-License-Identifier: BSD-3-Clause
// Custom operator, second way: kernels as in swiglu.cpp; add_rms_norm_autograd.cpp makes them differentiable through
// torch::autograd::Function. What stands between two blocks of many transformers, in one launch:
// sum = input + residual, output = sum / rms(sum) * weight, with the root mean square over the last dimension.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>
#include <vector>

#include "common/launch_on.h"
#include "raw/grid.h"

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

constexpr const char* kForward = "openreg::add_rms_norm";
constexpr const char* kBackward = "openreg::add_rms_norm_backward";

void check_operands(const char* name, const at::Tensor& first, const at::Tensor& second, const at::Tensor& weight) {
  const c10::ScalarType dtype = first.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16, name,
              ": expected float, double, half or bfloat16 tensors, but got ", dtype);
  TORCH_CHECK(second.scalar_type() == dtype && weight.scalar_type() == dtype, name,
              ": expected operands of one dtype, but got ", dtype, ", ", second.scalar_type(), " and ",
              weight.scalar_type());
  TORCH_CHECK(first.dim() > 0 && second.sym_sizes() == first.sym_sizes(), name,
              ": expected two operands of one shape with at least one dimension, but got ", first.sym_sizes(), " and ",
              second.sym_sizes());
  TORCH_CHECK(weight.dim() == 1 && weight.sym_size(0) == first.sym_size(-1), name, ": expected a weight of shape [",
              first.sym_size(-1), "], but got ", weight.sym_sizes());
}

// 1 / sqrt(mean of squares + eps) of a row.
template <class Number, class Value>
Number reciprocal_rms(const Value* row, int64_t width, double eps) {
  Number squares = 0;
  for (int64_t i = 0; i < width; ++i) {
    const auto x = static_cast<Number>(row[i]);
    squares += x * x;
  }
  return 1 / std::sqrt(squares / static_cast<Number>(width) + static_cast<Number>(eps));
}

int64_t rows_per_thread(int64_t width) {
  constexpr int64_t kElementsPerThread = 32768;
  return std::max<int64_t>(1, kElementsPerThread / std::max<int64_t>(1, width));
}

#define DISPATCH_DTYPES(dtype, name, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, name, __VA_ARGS__)

void forward_kernel(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double eps,
                    at::Tensor& output, at::Tensor& sum) {
  DISPATCH_DTYPES(input.scalar_type(), kForward, [&] {
    using Number = at::opmath_type<scalar_t>;
    const int64_t width = weight.numel();
    const auto* in = input.const_data_ptr<scalar_t>();
    const auto* add = residual.const_data_ptr<scalar_t>();
    const auto* scale = weight.const_data_ptr<scalar_t>();
    auto* normed = output.mutable_data_ptr<scalar_t>();
    auto* total = sum.mutable_data_ptr<scalar_t>();
    raw::parallel(input.numel() / width, rows_per_thread(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row * width;
        for (int64_t i = first; i < first + width; ++i) {
          total[i] = static_cast<scalar_t>(static_cast<Number>(in[i]) + static_cast<Number>(add[i]));
        }
        const auto rstd = reciprocal_rms<Number>(total + first, width, eps);
        for (int64_t i = 0; i < width; ++i) {
          const auto x = static_cast<Number>(total[first + i]);
          normed[first + i] = static_cast<scalar_t>(x * rstd * static_cast<Number>(scale[i]));
        }
      }
    });
  });
}

Pair add_rms_norm(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double eps) {
  const c10::Device device = device_of(kForward, input, residual, weight);
  check_same_device(kForward, device, input, residual, weight);
  check_operands(kForward, input, residual, weight);
  const CurrentDevice current(device);
  at::Tensor output = make_output(input.sizes(), {}, input.options());
  at::Tensor sum = make_output(input.sizes(), {}, input.options());
  if (input.numel() > 0) {
    launch_kernel<decltype(&forward_kernel), const at::Tensor&, const at::Tensor&, const at::Tensor&, double,
                  at::Tensor&, at::Tensor&>(kForward, device, &forward_kernel, input.contiguous(),
                                            residual.contiguous(), weight.contiguous(), eps, output, sum);
  }
  return {std::move(output), std::move(sum)};
}

void backward_kernel(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                     const at::Tensor& weight, double eps, at::Tensor& grad_input, at::Tensor& grad_weight) {
  DISPATCH_DTYPES(sum.scalar_type(), kBackward, [&] {
    using Number = at::opmath_type<scalar_t>;
    const int64_t width = weight.numel();
    const int64_t rows = sum.numel() / width;
    const auto* of_output = grad_output.const_data_ptr<scalar_t>();
    const auto* of_sum = grad_sum.const_data_ptr<scalar_t>();
    const auto* total = sum.const_data_ptr<scalar_t>();
    const auto* scale = weight.const_data_ptr<scalar_t>();
    auto* of_input = grad_input.mutable_data_ptr<scalar_t>();
    auto* of_weight = grad_weight.mutable_data_ptr<scalar_t>();
    std::vector<Number> rstds(static_cast<size_t>(rows));
    raw::parallel(rows, rows_per_thread(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row * width;
        const auto rstd = reciprocal_rms<Number>(total + first, width, eps);
        rstds[static_cast<size_t>(row)] = rstd;
        Number product = 0;
        for (int64_t i = 0; i < width; ++i) {
          product += static_cast<Number>(of_output[first + i]) * static_cast<Number>(scale[i]) *
                     static_cast<Number>(total[first + i]);
        }
        const Number along = product * rstd * rstd / static_cast<Number>(width);
        for (int64_t i = 0; i < width; ++i) {
          const auto across = static_cast<Number>(of_output[first + i]) * static_cast<Number>(scale[i]);
          const auto x = static_cast<Number>(total[first + i]);
          of_input[first + i] =
              static_cast<scalar_t>(static_cast<Number>(of_sum[first + i]) + rstd * (across - x * along));
        }
      }
    });
    // Each thread has columns of its own, so the sum over rows has one order whatever their number.
    raw::parallel(width, rows_per_thread(rows), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Number result = 0;
        for (int64_t row = 0; row < rows; ++row) {
          const int64_t place = row * width + i;
          result += static_cast<Number>(of_output[place]) * static_cast<Number>(total[place]) *
                    rstds[static_cast<size_t>(row)];
        }
        of_weight[i] = static_cast<scalar_t>(result);
      }
    });
  });
}

Pair add_rms_norm_backward(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                           const at::Tensor& weight, double eps) {
  const c10::Device device = device_of(kBackward, sum);
  check_same_device(kBackward, device, grad_output, grad_sum, sum, weight);
  check_operands(kBackward, sum, grad_output, weight);
  check_operands(kBackward, sum, grad_sum, weight);
  const CurrentDevice current(device);
  at::Tensor grad_input = make_output(sum.sizes(), {}, sum.options());
  at::Tensor grad_weight = make_output(weight.sizes(), {}, weight.options());
  if (sum.numel() == 0) {
    return {std::move(grad_input), grad_weight.zero_()};
  }
  launch_kernel<decltype(&backward_kernel), const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                double, at::Tensor&, at::Tensor&>(kBackward, device, &backward_kernel, grad_output.contiguous(),
                                                  grad_sum.contiguous(), sum.contiguous(), weight.contiguous(), eps,
                                                  grad_input, grad_weight);
  return {std::move(grad_input), std::move(grad_weight)};
}

Pair add_rms_norm_meta(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double /*eps*/) {
  check_operands(kForward, input, residual, weight);
  return {at::empty_symint(input.sym_sizes(), input.options()), at::empty_symint(input.sym_sizes(), input.options())};
}

Pair add_rms_norm_backward_meta(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                                const at::Tensor& weight, double /*eps*/) {
  check_operands(kBackward, sum, grad_output, weight);
  check_operands(kBackward, sum, grad_sum, weight);
  return {at::empty_symint(sum.sym_sizes(), sum.options()), at::empty_symint(weight.sym_sizes(), weight.options())};
}

TORCH_LIBRARY_FRAGMENT(openreg, library) {
  library.def("add_rms_norm(Tensor input, Tensor residual, Tensor weight, float eps=1e-06) -> (Tensor, Tensor)",
              {at::Tag::pt2_compliant_tag});
  library.def(
      "add_rms_norm_backward(Tensor grad_output, Tensor grad_sum, Tensor sum, Tensor weight, float eps) "
      "-> (Tensor, Tensor)",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(openreg, PrivateUse1, library) {
  library.impl("add_rms_norm", TORCH_FN(add_rms_norm));
  library.impl("add_rms_norm_backward", TORCH_FN(add_rms_norm_backward));
}

TORCH_LIBRARY_IMPL(openreg, Meta, library) {
  library.impl("add_rms_norm", TORCH_FN(add_rms_norm_meta));
  library.impl("add_rms_norm_backward", TORCH_FN(add_rms_norm_backward_meta));
}

}  // namespace

}  // namespace openreg::ops
