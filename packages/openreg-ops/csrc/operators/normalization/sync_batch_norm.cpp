// SPDX-License-Identifier: BSD-3-Clause
// The parts of batch normalization over several processes, which torch.nn.SyncBatchNorm calls between its collectives.
// PyTorch has them only for GPUs, so the kernels are our own.
//
//   forward   batch_norm_stats computes mean and 1/deviation of this process's part. After all processes have exchanged
//             these, batch_norm_gather_stats computes those of the whole batch, and updates the running statistics.
//             Then batch_norm_elemt computes the output.
//   backward  batch_norm_backward_reduce computes this process's sums, which are then added over all processes.
//             Then batch_norm_backward_elemt computes the gradient of the input.
//
// Statistics and sums are vectors with a number for each channel, which is dimension 1 of the input. They have the
// dtype in which the kernel computes, which is float for half and bfloat16.
#include <ATen/ops/addcmul.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var_mean.h>

#include <algorithm>
#include <numeric>

#include "operators/normalization/statistics.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;
using Sums = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

c10::ScalarType statistics_dtype(const at::Tensor& input) {
  return at::toOpMathType(input.scalar_type());
}

// Returns the dimensions over which each channel is summed.
std::vector<int64_t> all_but_channels(const at::Tensor& input) {
  std::vector<int64_t> dims(static_cast<size_t>(input.dim()) - 1);
  std::iota(dims.begin(), dims.end(), 1);
  dims[0] = 0;
  return dims;
}

// Returns a vector with a number for each channel in a shape that broadcasts to the input.
at::Tensor per_channel(const at::Tensor& vector, const at::Tensor& input) {
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  sizes[1] = -1;
  return vector.view(sizes);
}

void check_input(const char* name, const at::Tensor& input) {
  TORCH_CHECK(input.dim() >= 2, name, ": expected an input with at least 2 dimensions, the second for channels, got ",
              input.sizes());
  TORCH_CHECK((dtype_bit(input.scalar_type()) & kFloating) != 0, name,
              ": expected an input of half, bfloat16, float or double, got ", input.scalar_type());
}

// Throws c10::Error unless each defined vector has a number for each channel, in the dtype of the input or of its
// statistics.
void check_vectors(const char* name, const at::Tensor& input,
                   std::initializer_list<std::pair<const char*, at::Tensor>> vectors) {
  for (const auto& [what, vector] : vectors) {
    if (!vector.defined()) {
      continue;
    }
    TORCH_CHECK(vector.dim() == 1 && vector.numel() == input.size(1), name, ": expected ", what, " to be a vector of ",
                input.size(1), " elements, one for each channel, got ", vector.sizes());
    const c10::ScalarType wide = statistics_dtype(input);
    TORCH_CHECK(vector.scalar_type() == wide || vector.scalar_type() == input.scalar_type(), name, ": expected ", what,
                " in ", wide, " or in the dtype of the input, ", input.scalar_type(), ", got ", vector.scalar_type());
  }
}

std::array<OutputSpec, 2> meta_stats(const at::Tensor& input, double /*eps*/) {
  check_input(op::batch_norm_stats::name, input);
  const OutputSpec statistic = output_of({input.size(1)}, statistics_dtype(input));
  return {statistic, statistic};
}

Pair stats(const at::Tensor& input, double eps) {
  auto [variance, mean] = at::var_mean(wide(input), all_but_channels(input), /*correction=*/0);
  return {std::move(mean), variance.add_(eps).rsqrt_()};
}

// The statistics of the whole batch, and its number of values. combine() computes them from one row for each process.
// They are double, because the counts of a large batch are not exact in float.
struct BatchStatistics {
  at::Tensor mean;
  at::Tensor variance;
  double count;
};

BatchStatistics combine(const at::Tensor& means, const at::Tensor& invstds, const at::Tensor& counts, double eps) {
  const at::Tensor weights = counts.to(at::kDouble).reshape({-1, 1});
  const double count = weights.sum().item<double>();
  const double divisor = std::max(count, 1.0);  // statistics are zeros if no process has values
  const at::Tensor of_each = means.to(at::kDouble);
  at::Tensor mean = at::mul(of_each, weights).sum(0).div_(divisor);
  const at::Tensor variances = invstds.to(at::kDouble).pow(-2).sub_(eps);
  const at::Tensor distances = at::sub(of_each, mean);
  at::Tensor variance = at::addcmul(variances, distances, distances).mul_(weights).sum(0).div_(divisor);
  return {std::move(mean), std::move(variance), count};
}

void move_towards(std::optional<at::Tensor>& running, const at::Tensor& statistic, double momentum) {
  if (is_given(running)) {
    running->copy_(running->to(at::kDouble).mul_(1 - momentum).add_(statistic, momentum));
  }
}

void gather_kernel(const at::Tensor& means, const at::Tensor& invstds, std::optional<at::Tensor>& running_mean,
                   std::optional<at::Tensor>& running_var, double momentum, double eps, const at::Tensor& counts,
                   at::Tensor& mean, at::Tensor& invstd) {
  const BatchStatistics all = combine(means, invstds, counts, eps);
  if (all.count > 0) {
    move_towards(running_mean, all.mean, momentum);
    move_towards(running_var, all.variance.mul(all.count / (all.count - 1)), momentum);
  }
  mean.copy_(all.mean);
  invstd.copy_(all.variance.add(eps).rsqrt_());
}

// Launches the kernel, which also updates the running statistics. PyTorch's schema does not declare that.
Pair gather(const Operator& op, const at::Tensor& input, const at::Tensor& means, const at::Tensor& invstds,
            MaybeTensor running_mean, MaybeTensor running_var, double momentum, double eps, const at::Tensor& counts) {
  const OperandDeviceGuard device(op, input, means, invstds, running_mean, running_var, counts);
  check_input(op.name, input);
  check_vectors(op.name, input,
                {{"running_mean", value_or_undefined(running_mean)}, {"running_var", value_or_undefined(running_var)}});
  const auto is_table = [&](const at::Tensor& table) { return table.dim() == 2 && table.size(1) == input.size(1); };
  TORCH_CHECK(
      is_table(means) && is_table(invstds) && means.size(0) == invstds.size(0) && counts.numel() == means.size(0),
      op.name, ": expected mean and invstd to have a row of ", input.size(1),
      " channels for each process, and a count for each, got ", means.sizes(), ", ", invstds.sizes(), " and ",
      counts.sizes());
  TORCH_CHECK(at::isFloatingType(means.scalar_type()) && invstds.scalar_type() == means.scalar_type(), op.name,
              ": expected mean and invstd of one floating dtype, got ", means.scalar_type(), " and ",
              invstds.scalar_type());
  const at::TensorOptions options = means.options().dtype(statistics_dtype(means));
  Pair results(make_output({input.size(1)}, {}, options), make_output({input.size(1)}, {}, options));
  launch(op, device, &gather_kernel, means, invstds, running_mean, running_var, momentum, eps, counts,
         std::get<0>(results), std::get<1>(results));
  return results;
}

Pair gather_stats_with_counts(const at::Tensor& input, const at::Tensor& means, const at::Tensor& invstds,
                              MaybeTensor running_mean, MaybeTensor running_var, double momentum, double eps,
                              const at::Tensor& counts) {
  static constexpr Operator kOperator{"aten::batch_norm_gather_stats_with_counts"};
  return gather(kOperator, input, means, invstds, running_mean, running_var, momentum, eps, counts);
}

Pair gather_stats(const at::Tensor& input, const at::Tensor& means, const at::Tensor& invstds, MaybeTensor running_mean,
                  MaybeTensor running_var, double momentum, double eps, int64_t count) {
  static constexpr Operator kOperator{"aten::batch_norm_gather_stats"};
  TORCH_CHECK(means.dim() == 2, kOperator.name, ": expected mean to have a row for each process, got ", means.sizes());
  const at::Tensor counts = at::full({means.size(0)}, count, means.options().dtype(at::kLong));
  return gather(kOperator, input, means, invstds, running_mean, running_var, momentum, eps, counts);
}

OutputSpec meta_elemt(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, const at::Tensor& mean,
                      const at::Tensor& invstd, double /*eps*/) {
  check_input(op::batch_norm_elemt::name, input);
  check_vectors(
      op::batch_norm_elemt::name, input,
      {{"weight", value_or_undefined(weight)}, {"bias", value_or_undefined(bias)}, {"mean", mean}, {"invstd", invstd}});
  return output_like(input);
}

at::Tensor elemt(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, const at::Tensor& mean,
                 const at::Tensor& invstd, double /*eps*/) {
  const at::Tensor scale = is_given(weight) ? at::mul(wide(invstd), wide(*weight)) : wide(invstd);
  at::Tensor result = at::sub(wide(input), per_channel(wide(mean), input));
  result.mul_(per_channel(scale, input));
  if (is_given(bias)) {
    result.add_(per_channel(wide(*bias), input));
  }
  return result.to(input.scalar_type());
}

void check_gradient(const char* name, const at::Tensor& grad, const at::Tensor& input) {
  TORCH_CHECK(grad.sizes() == input.sizes() && grad.scalar_type() == input.scalar_type(), name,
              ": expected a gradient like the input, ", input.sizes(), " in ", input.scalar_type(), ", got ",
              grad.sizes(), " in ", grad.scalar_type());
}

std::array<OutputSpec, 4> meta_reduce(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                                      const at::Tensor& invstd, MaybeTensor weight, bool of_input, bool of_weight,
                                      bool of_bias) {
  const char* name = op::batch_norm_backward_reduce::name;
  check_input(name, input);
  check_gradient(name, grad, input);
  check_vectors(name, input, {{"mean", mean}, {"invstd", invstd}, {"weight", value_or_undefined(weight)}});
  const auto vector_if = [&](bool wanted, c10::ScalarType dtype) {
    return wanted ? output_of({input.size(1)}, dtype) : OutputSpec();
  };
  const c10::ScalarType of_sums = statistics_dtype(input);
  const c10::ScalarType of_parameters = is_given(weight) ? weight->scalar_type() : of_sums;
  return {vector_if(of_input, of_sums), vector_if(of_input, of_sums), vector_if(of_weight, of_parameters),
          vector_if(of_bias, of_parameters)};
}

Sums backward_reduce(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
                     MaybeTensor weight, bool of_input, bool of_weight, bool of_bias) {
  const std::vector<int64_t> dims = all_but_channels(input);
  const at::Tensor of_output = wide(grad);
  const c10::ScalarType of_parameters = (is_given(weight) ? *weight : of_output).scalar_type();
  const at::Tensor sum = of_output.sum(dims);
  Sums results;
  if (of_input || of_weight) {
    const at::Tensor distances = at::sub(wide(input), per_channel(wide(mean), input));
    const at::Tensor along = at::mul(distances, of_output).sum(dims);
    if (of_weight) {
      std::get<2>(results) = at::mul(along, wide(invstd)).to(of_parameters);
    }
    if (of_input) {
      std::get<0>(results) = sum;
      std::get<1>(results) = along;
    }
  }
  if (of_bias) {
    std::get<3>(results) = sum.to(of_parameters, /*non_blocking=*/false, /*copy=*/true);
  }
  return results;
}

OutputSpec meta_backward_elemt(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                               const at::Tensor& invstd, MaybeTensor weight, const at::Tensor& sum_dy,
                               const at::Tensor& sum_dy_xmu, const at::Tensor& /*count*/) {
  const char* name = op::batch_norm_backward_elemt::name;
  check_input(name, input);
  check_gradient(name, grad, input);
  check_vectors(name, input,
                {{"mean", mean},
                 {"invstd", invstd},
                 {"weight", value_or_undefined(weight)},
                 {"sum_dy", sum_dy},
                 {"sum_dy_xmu", sum_dy_xmu}});
  return output_like(input);
}

// The sums and the counts are those of all processes.
at::Tensor backward_elemt(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                          const at::Tensor& invstd, MaybeTensor weight, const at::Tensor& sum_dy,
                          const at::Tensor& sum_dy_xmu, const at::Tensor& count) {
  const double divisor = std::max(count.sum(at::kDouble).item<double>(), 1.0);
  const at::Tensor deviation = wide(invstd);
  const at::Tensor slope = at::mul(wide(sum_dy_xmu), deviation).mul_(deviation).div_(-divisor);
  const at::Tensor scale = is_given(weight) ? at::mul(deviation, wide(*weight)) : deviation;
  at::Tensor result = at::sub(wide(input), per_channel(wide(mean), input));
  result.mul_(per_channel(slope, input)).add_(wide(grad));
  result.sub_(per_channel(at::mul(wide(sum_dy), 1 / divisor), input)).mul_(per_channel(scale, input));
  return result.to(input.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  unstructured<meta_stats, op::batch_norm_stats>(library, stats);
  function<op::batch_norm_gather_stats>(library, gather_stats);
  function<op::batch_norm_gather_stats_with_counts>(library, gather_stats_with_counts);
  unstructured<meta_elemt, op::batch_norm_elemt>(library, as_out<elemt>);
  unstructured<meta_reduce, op::batch_norm_backward_reduce>(library, backward_reduce);
  unstructured<meta_backward_elemt, op::batch_norm_backward_elemt>(library, backward_elemt);
}

}  // namespace

}  // namespace openreg::ops
