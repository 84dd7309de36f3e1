// SPDX-License-Identifier: BSD-3-Clause
// Group normalization with backward. The input is (n, c, ...), with `hxw` elements in the dimensions after c.
#include "launch/derivative.h"
#include "operators/normalization/statistics.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Specs = std::array<OutputSpec, 3>;

void check_operands(const char* name, const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, int64_t n,
                    int64_t c, int64_t hxw, int64_t groups) {
  TORCH_CHECK(groups > 0 && c % groups == 0,
              "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
              input.sizes(), " and num_groups=", groups);
  TORCH_CHECK(input.numel() == n * c * hxw, name, ": expected an input of ", n, " x ", c, " x ", hxw,
              " elements, but got the shape ", input.sizes());
  for (const auto& parameter : {weight, bias}) {
    TORCH_CHECK(!is_given(parameter) || (parameter->dim() == 1 && parameter->numel() == c), name,
                ": expected weight and bias to be vectors of ", c, " elements, but got ", parameter->sizes());
  }
}

// Return a dense operand, because the CPU's kernels require operands in the input's memory format and dense parameters.
// The guard keeps a copy out of an output's memory, which the outer guard of the launch would supply.
at::Tensor dense(const at::Tensor& operand, c10::MemoryFormat format = c10::MemoryFormat::Contiguous) {
  const OutputRedirectGuard elsewhere(std::initializer_list<at::Tensor>{});
  return operand.contiguous(format);
}
std::optional<at::Tensor> dense(MaybeTensor parameter) {
  return is_given(parameter) ? std::optional(dense(*parameter)) : std::nullopt;
}

Specs meta_group_norm(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, int64_t n, int64_t c, int64_t hxw,
                      int64_t groups, double /*eps*/) {
  check_operands(op::native_group_norm::name, input, weight, bias, n, c, hxw, groups);
  const OutputSpec statistics = output_of({n, groups}, statistics_type(input, weight, bias));
  return {with_last_sizes(input, {}), statistics, statistics};
}

Triple group_norm(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, int64_t n, int64_t c, int64_t hxw,
                  int64_t groups, double eps) {
  return cpu::native_group_norm(dense(input, input.suggest_memory_format()), dense(weight), dense(bias), n, c, hxw,
                                groups, eps);
}

// Returns the gradients that exist: without a weight there is no bias either.
std::array<bool, 3> possible(std::array<bool, 3> wanted, MaybeTensor weight) {
  return {wanted[0], wanted[1] && is_given(weight), wanted[2] && is_given(weight)};
}

Specs meta_group_norm_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                               const at::Tensor& rstd, MaybeTensor weight, int64_t n, int64_t c, int64_t hxw,
                               int64_t groups, std::array<bool, 3> wanted) {
  constexpr const char* kName = op::native_group_norm_backward::name;
  check_operands(kName, input, weight, std::nullopt, n, c, hxw, groups);
  const c10::ScalarType of_statistics = statistics_type(input, weight);
  expect_like(kName, "grad_out", grad, input);
  expect_count(kName, "mean", mean, n * groups, of_statistics);
  expect_count(kName, "rstd", rstd, n * groups, of_statistics);
  const auto [of_input, of_weight, of_bias] = possible(wanted, weight);
  const OutputSpec parameter = is_given(weight) ? output_of({c}, weight->scalar_type()) : OutputSpec();
  return {of_input ? with_last_sizes(input, {}) : OutputSpec(), of_weight ? parameter : OutputSpec(),
          of_bias ? parameter : OutputSpec()};
}

Triple group_norm_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                           const at::Tensor& rstd, MaybeTensor weight, int64_t n, int64_t c, int64_t hxw,
                           int64_t groups, std::array<bool, 3> wanted) {
  const auto format = input.suggest_memory_format();
  return cpu::native_group_norm_backward(dense(grad, format), dense(input, format), dense(mean), dense(rstd),
                                         dense(weight), n, c, hxw, groups, possible(wanted, weight));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_group_norm, op::native_group_norm>(library, group_norm, checked(kFloats));
  unstructured<meta_group_norm_backward, op::native_group_norm_backward>(library, group_norm_backward,
                                                                         checked(kFloats));
}

}  // namespace

}  // namespace openreg::ops
