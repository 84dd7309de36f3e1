// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/add_rms_norm.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>

#include <cmath>
#include <vector>

#include "kernels/parallel.h"

namespace openreg::ops::kernels {

namespace {

constexpr int64_t kElementsPerThread = 32768;

// Returns 1 / sqrt(mean of squares + eps) of a row.
template <class Number, class Value>
Number reciprocal_rms(const Value* row, int64_t width, double eps) {
  Number squares = 0;
  for (int64_t i = 0; i < width; ++i) {
    const auto x = static_cast<Number>(row[i]);
    squares += x * x;
  }
  return 1 / std::sqrt(squares / static_cast<Number>(width) + static_cast<Number>(eps));
}

}  // namespace

void add_rms_norm(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double eps,
                  at::Tensor& output, at::Tensor& sum) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, input.scalar_type(), "add_rms_norm", [&] {
    using Number = at::opmath_type<scalar_t>;
    const int64_t width = weight.numel();
    const auto* in = input.const_data_ptr<scalar_t>();
    const auto* add = residual.const_data_ptr<scalar_t>();
    const auto* scale = weight.const_data_ptr<scalar_t>();
    auto* normed = output.mutable_data_ptr<scalar_t>();
    auto* total = sum.mutable_data_ptr<scalar_t>();
    for_each_item(input.numel() / width, grain_of(kElementsPerThread, width), [&](int64_t row) {
      const int64_t first = row * width;
      for (int64_t i = first; i < first + width; ++i) {
        total[i] = static_cast<scalar_t>(static_cast<Number>(in[i]) + static_cast<Number>(add[i]));
      }
      const auto rstd = reciprocal_rms<Number>(total + first, width, eps);
      for (int64_t i = 0; i < width; ++i) {
        const auto x = static_cast<Number>(total[first + i]);
        normed[first + i] = static_cast<scalar_t>(x * rstd * static_cast<Number>(scale[i]));
      }
    });
  });
}

void add_rms_norm_backward(const at::Tensor& grad_output, const at::Tensor& grad_sum, const at::Tensor& sum,
                           const at::Tensor& weight, double eps, at::Tensor& grad_input, at::Tensor& grad_weight) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, sum.scalar_type(), "add_rms_norm_backward", [&] {
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
    for_each_item(rows, grain_of(kElementsPerThread, width), [&](int64_t row) {
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
    });
    // Each thread sums different columns, so the order of each sum does not depend on the number of threads.
    for_each_item(width, grain_of(kElementsPerThread, rows), [&](int64_t i) {
      Number result = 0;
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t place = row * width + i;
        result +=
            static_cast<Number>(of_output[place]) * static_cast<Number>(total[place]) * rstds[static_cast<size_t>(row)];
      }
      of_weight[i] = static_cast<scalar_t>(result);
    });
  });
}

}  // namespace openreg::ops::kernels
