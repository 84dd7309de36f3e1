// SPDX-License-Identifier: BSD-3-Clause
// Batch normalization with backward. PyTorch has three families of operators for it, which all run the same two
// kernels.
#include "launch/derivative.h"
#include "operators/normalization/statistics.h"
#include "registration/declare.h"

namespace openreg::ops {

namespace {

using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Specs = std::array<OutputSpec, 3>;

// Throws c10::Error unless the input has channels, and each parameter that is passed has one number for each channel.
void check_channels(const char* name, const at::Tensor& input,
                    std::initializer_list<std::optional<at::Tensor>> numbers) {
  TORCH_CHECK(input.dim() >= 2, name, ": expected an input of at least 2 dimensions, (batch, channels, ...), but got ",
              input.sizes());
  for (const auto& parameter : numbers) {
    TORCH_CHECK(!is_given(parameter) || (parameter->dim() == 1 && parameter->numel() == input.size(1)), name,
                ": expected weight, bias and statistics of ", input.size(1),
                " elements, one for each channel, but got ", parameter->sizes());
  }
}

Specs meta_batch_norm(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean,
                      MaybeTensor running_var, bool training, double /*momentum*/, double /*eps*/) {
  check_channels(op::native_batch_norm::name, input, {weight, bias, running_mean, running_var});
  TORCH_CHECK(training || (is_given(running_mean) && is_given(running_var)), op::native_batch_norm::name,
              ": expected running_mean and running_var in evaluation; pass both, or training=True");
  // In evaluation nothing is saved, and PyTorch returns empty tensors.
  const OutputSpec saved =
      output_of({training ? input.size(1) : 0}, statistics_type(input, weight, bias, running_mean, running_var));
  return {with_last_sizes(input, {}), saved, saved};
}

// The operator in evaluation. In training, batch_norm() launches by hand, because running statistics are written as
// well.
const auto kEvaluation = unstructured_operator<meta_batch_norm, op::native_batch_norm>(cpu::native_batch_norm, kFloats);

void training_kernel(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias,
                     std::optional<at::Tensor>& running_mean, std::optional<at::Tensor>& running_var, double momentum,
                     double eps, at::Tensor& output, at::Tensor& save_mean, at::Tensor& save_invstd) {
  OutputRedirectGuard results({output, save_mean, save_invstd});
  const auto [computed, mean, invstd] =
      cpu::native_batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps);
  results.put({computed, mean, invstd});
}

Triple batch_norm(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean,
                  MaybeTensor running_var, bool training, double momentum, double eps) {
  if (!training) {
    return kEvaluation.functional(input, weight, bias, running_mean, running_var, training, momentum, eps);
  }
  const OperandDeviceGuard device(kEvaluation.op, input, weight, bias, running_mean, running_var);
  const Specs specs = meta_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  Triple results(allocate_output(specs[0], device), allocate_output(specs[1], device),
                 allocate_output(specs[2], device));
  const auto& [output, save_mean, save_invstd] = results;
  launch(kEvaluation.op, device, &training_kernel, input, weight, bias, running_mean, running_var, momentum, eps,
         output, save_mean, save_invstd);
  return results;
}

// The meta function of the operator without running statistics.
Specs meta_batch_norm(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, bool training, double momentum,
                      double eps) {
  return meta_batch_norm(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

Specs meta_batch_norm_backward(const at::Tensor& grad, const at::Tensor& input, MaybeTensor weight,
                               MaybeTensor running_mean, MaybeTensor running_var, MaybeTensor save_mean,
                               MaybeTensor save_invstd, bool train, double /*eps*/, std::array<bool, 3> wanted) {
  constexpr const char* kName = op::native_batch_norm_backward::name;
  TORCH_CHECK(input.dim() >= 2, kName, ": expected an input with at least 2 dimensions, the second for channels, got ",
              input.sizes());
  const OutputSpec parameter =
      output_of({input.size(1)}, statistics_type(input, weight, running_mean, running_var, save_mean, save_invstd));
  expect_like(kName, "grad_out", grad, input);
  if (is_given(weight)) {
    expect(kName, "weight", weight, parameter.sizes, weight->scalar_type());
  }
  // Training requires the saved statistics, and evaluation the running ones. The others may be absent or empty.
  const auto expect_spare = [&](const char* what, MaybeTensor statistic) {
    if (is_given(statistic)) {
      expect(kName, what, statistic, statistic->numel() == 0 ? c10::IntArrayRef({0}) : parameter.sizes,
             parameter.dtype);
    }
  };
  expect_spare("save_mean", save_mean);
  expect_spare("save_invstd", save_invstd);
  expect_spare("running_mean", running_mean);
  expect_spare("running_var", running_var);
  const auto expect_pair = [&](const char* of_mean, MaybeTensor mean, const char* of_deviation, MaybeTensor deviation) {
    TORCH_CHECK(is_given(mean) && is_given(deviation), kName, ": ", of_mean, " and ", of_deviation,
                " are missing; pass both");
    expect(kName, of_mean, mean, parameter.sizes, parameter.dtype);
    expect(kName, of_deviation, deviation, parameter.sizes, parameter.dtype);
  };
  train ? expect_pair("save_mean", save_mean, "save_invstd", save_invstd)
        : expect_pair("running_mean", running_mean, "running_var", running_var);
  return {wanted[0] ? with_last_sizes(input, {}) : OutputSpec(), wanted[1] ? parameter : OutputSpec(),
          wanted[2] ? parameter : OutputSpec()};
}

const auto kBatchNormBackward = unstructured_operator<meta_batch_norm_backward, op::native_batch_norm_backward>(
    cpu::native_batch_norm_backward, checked(kFloats));

// Operators with running statistics that are always passed, or never.

Triple batch_norm_legit(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, at::Tensor& running_mean,
                        at::Tensor& running_var, bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

Triple batch_norm_no_stats(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias, bool training,
                           double momentum, double eps) {
  return batch_norm(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

// Operators that also return `reserve`, a workspace for backward that the libraries of some devices need. It is empty
// here.

using WithReserve = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

WithReserve with_reserve(Triple results) {
  auto& [output, mean, invstd] = results;
  const CurrentDeviceGuard current(output.device());
  at::Tensor reserve = make_output({0}, {}, output.options().memory_format(std::nullopt).dtype(at::kByte));
  return {std::move(output), std::move(mean), std::move(invstd), std::move(reserve)};
}

WithReserve batch_norm_with_update(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias,
                                   at::Tensor& running_mean, at::Tensor& running_var, double momentum, double eps) {
  return with_reserve(batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps));
}

// PyTorch's implementation for all devices calls a CPU kernel.
WithReserve batch_norm_no_update(const at::Tensor& input, MaybeTensor weight, MaybeTensor bias,
                                 MaybeTensor running_mean, MaybeTensor running_var, double momentum, double eps) {
  return with_reserve(batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps));
}

Triple batch_norm_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
                           MaybeTensor running_mean, MaybeTensor running_var, MaybeTensor save_mean,
                           MaybeTensor save_invstd, bool update, double eps, std::array<bool, 3> wanted,
                           const at::Tensor& /*reserve*/) {
  return kBatchNormBackward.functional(grad, input, weight, running_mean, running_var, save_mean, save_invstd, update,
                                       eps, wanted);
}

// The out= overload of a functional operator, which copies the results into the out= tensors afterwards. It checks and
// resizes these before, because the functional operator updates the running statistics. In evaluation there are no
// saved statistics, and their out= tensors stay unchanged.
template <auto kFunctional>
struct OutByCopy;
template <class... Args, Triple (*kFunctional)(Args...)>
struct OutByCopy<kFunctional> {
  static OutResultOf<3> call(Args... args, at::Tensor& output, at::Tensor& mean, at::Tensor& invstd) {
    const c10::Device device = device_of(op::native_batch_norm::name, args...);
    const CurrentDeviceGuard current(device);
    const Specs specs = meta_batch_norm(args...);
    const bool saves = c10::multiply_integers(specs[1].sizes) != 0;
    const auto prepare = [&](const at::Tensor& place, const OutputSpec& spec) {
      check_operands_keep_size(place, spec.sizes, args...);
      prepare_out_argument(place, output_of(spec.sizes, spec.dtype), device);  // contiguous in any case
      check_internal_overlap(place, spec);
    };
    prepare(output, specs[0]);
    if (saves) {
      prepare(mean, specs[1]);
      prepare(invstd, specs[2]);
    }
    const auto [computed, saved_mean, saved_invstd] = kFunctional(args...);
    output.copy_(computed);
    if (saves) {
      mean.copy_(saved_mean);
      invstd.copy_(saved_invstd);
    }
    return {output, mean, invstd};
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  function<op::native_batch_norm>(library, batch_norm, kFloats);
  function<op::native_batch_norm_out>(library, OutByCopy<batch_norm>::call);
  function<op::native_batch_norm_backward>(
      library, [](auto... args) { return kBatchNormBackward.functional(args...); }, kBatchNormBackward.op.traits);
  function<op::_native_batch_norm_legit>(library, batch_norm_legit);
  function<op::_native_batch_norm_legit_out>(library, OutByCopy<batch_norm_legit>::call);
  function<op::_native_batch_norm_legit_no_stats>(library, batch_norm_no_stats, kFloats);
  function<op::_native_batch_norm_legit_no_stats_out>(library, OutByCopy<batch_norm_no_stats>::call);
  function<op::_batch_norm_with_update>(library, batch_norm_with_update);
  function<op::_batch_norm_no_update>(library, batch_norm_no_update);
  function<op::batch_norm_backward>(library, batch_norm_backward);
}

}  // namespace

}  // namespace openreg::ops
