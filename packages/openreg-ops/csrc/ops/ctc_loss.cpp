// SPDX-License-Identifier: BSD-3-Clause
// Connectionist temporal classification (Graves et al., ICML 2006). Lengths are on the host, by definition; those that
// come as tensors are read there.
#include <ATen/ops/_ctc_loss_backward_cpu_dispatch.h>
#include <ATen/ops/_ctc_loss_cpu_dispatch.h>
#include <torch/library.h>

#include <algorithm>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

using Lengths = std::vector<int64_t>;

Lengths read_lengths(const at::Tensor& lengths) {
  TORCH_CHECK(at::isIntegralType(lengths.scalar_type(), /*includeBool=*/false), "lengths must be integral");
  const at::Tensor host = lengths.to(at::kCPU, at::kLong).contiguous();
  return Lengths(host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel());
}

void check_lengths(const at::Tensor& log_probs, const at::Tensor& targets, c10::IntArrayRef input_lengths,
                   c10::IntArrayRef target_lengths, int64_t blank) {
  TORCH_CHECK(log_probs.numel() > 0, "ctc_loss: log_probs must not be empty, but has the shape ", log_probs.sizes());
  const int64_t batch = log_probs.size(1);
  TORCH_CHECK(blank >= 0 && blank < log_probs.size(2), "blank must be in label range");
  TORCH_CHECK(targets.scalar_type() == at::kLong || targets.scalar_type() == at::kInt,
              "_ctc_loss: targets must be of type long or int, but got ", targets.scalar_type());
  TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == batch, "input_lengths must be of size batch_size");
  TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == batch, "target_lengths must be of size batch_size");
  for (size_t i = 0; i < input_lengths.size(); ++i) {
    TORCH_CHECK(input_lengths[i] >= 0 && input_lengths[i] <= log_probs.size(0), "Expected input_lengths[", i,
                "] to be in 0 to ", log_probs.size(0), ", but got ", input_lengths[i]);
    TORCH_CHECK(target_lengths[i] >= 0, "Expected target_lengths to have value at least 0, but got value ",
                target_lengths[i]);
  }
}

int64_t longest_target(const at::Tensor& targets, c10::IntArrayRef target_lengths) {
  int64_t longest = 0;
  int64_t sum = 0;
  for (const int64_t length : target_lengths) {
    longest = std::max(longest, length);
    sum += length;
  }
  if (targets.dim() == 1) {
    TORCH_CHECK(targets.size(0) == sum, "Expected targets to have as many elements as target_lengths add up to, ", sum,
                ", but got ", targets.size(0));
  } else {
    TORCH_CHECK(targets.size(1) >= longest, "Expected tensor to have size at least ", longest,
                " at dimension 1, but got size ", targets.size(1), " (while checking arguments for ctc_loss)");
  }
  return longest;
}

void forward_kernel(const at::Tensor& log_probs, const at::Tensor& targets, c10::IntArrayRef input_lengths,
                    c10::IntArrayRef target_lengths, int64_t blank, bool zero_infinity, at::Tensor& loss,
                    at::Tensor& log_alpha) {
  const auto [of_loss, of_alpha] =
      at::cpu::_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity);
  loss.copy_(of_loss);
  log_alpha.copy_(of_alpha);
}

std::tuple<at::Tensor, at::Tensor> ctc_loss(const at::Tensor& log_probs, const at::Tensor& given_targets,
                                            c10::IntArrayRef input_lengths, c10::IntArrayRef target_lengths,
                                            int64_t blank, bool zero_infinity) {
  constexpr const char* kName = "aten::_ctc_loss";
  const c10::Device device = device_of(kName, log_probs);
  const CurrentDevice current(device);
  const at::Tensor targets = given_targets.to(device);  // PyTorch takes them on the host as well
  check_lengths(log_probs, targets, input_lengths, target_lengths, blank);
  const int64_t states = 2 * longest_target(targets, target_lengths) + 1;
  at::Tensor loss = make_output({log_probs.size(1)}, {}, log_probs.options());
  at::Tensor log_alpha = make_output({log_probs.size(1), log_probs.size(0), states}, {}, log_probs.options());
  launch_kernel<decltype(&forward_kernel), const at::Tensor&, const at::Tensor&, c10::IntArrayRef, c10::IntArrayRef,
                int64_t, bool, at::Tensor&, at::Tensor&>(kName, device, &forward_kernel, log_probs, targets,
                                                         input_lengths, target_lengths, blank, zero_infinity, loss,
                                                         log_alpha);
  return {std::move(loss), std::move(log_alpha)};
}

std::tuple<at::Tensor, at::Tensor> ctc_loss_tensor(const at::Tensor& log_probs, const at::Tensor& targets,
                                                   const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                                   int64_t blank, bool zero_infinity) {
  return ctc_loss(log_probs, targets, read_lengths(input_lengths), read_lengths(target_lengths), blank, zero_infinity);
}

void backward_kernel(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                     c10::IntArrayRef input_lengths, c10::IntArrayRef target_lengths, const at::Tensor& loss,
                     const at::Tensor& log_alpha, int64_t blank, bool zero_infinity, at::Tensor& result) {
  result.copy_(at::cpu::_ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, loss, log_alpha,
                                           blank, zero_infinity));
}

at::Tensor ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& given_targets,
                             c10::IntArrayRef input_lengths, c10::IntArrayRef target_lengths, const at::Tensor& loss,
                             const at::Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  constexpr const char* kName = "aten::_ctc_loss_backward";
  const c10::Device device = device_of(kName, log_probs);
  const CurrentDevice current(device);
  const at::Tensor targets = given_targets.to(device);
  check_same_device(kName, device, grad, log_probs, loss, log_alpha);
  check_lengths(log_probs, targets, input_lengths, target_lengths, blank);
  at::Tensor result = make_output(log_probs.sizes(), {}, log_probs.options());
  launch_kernel<decltype(&backward_kernel), const at::Tensor&, const at::Tensor&, const at::Tensor&, c10::IntArrayRef,
                c10::IntArrayRef, const at::Tensor&, const at::Tensor&, int64_t, bool, at::Tensor&>(
      kName, device, &backward_kernel, grad, log_probs, targets, input_lengths, target_lengths, loss, log_alpha, blank,
      zero_infinity, result);
  return result;
}

at::Tensor ctc_loss_backward_tensor(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                                    const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                    const at::Tensor& loss, const at::Tensor& log_alpha, int64_t blank,
                                    bool zero_infinity) {
  return ctc_loss_backward(grad, log_probs, targets, read_lengths(input_lengths), read_lengths(target_lengths), loss,
                           log_alpha, blank, zero_infinity);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_ctc_loss", TORCH_FN(ctc_loss));
  library.impl("_ctc_loss.Tensor", TORCH_FN(ctc_loss_tensor));
  library.impl("_ctc_loss_backward", TORCH_FN(ctc_loss_backward));
  library.impl("_ctc_loss_backward.Tensor", TORCH_FN(ctc_loss_backward_tensor));
}

}  // namespace

}  // namespace openreg::ops
