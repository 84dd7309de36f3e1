// SPDX-License-Identifier: BSD-3-Clause
// The negative log likelihood of images, with backward: what cross entropy uses for a class per pixel.
#include <ATen/core/Reduction.h>
#include <ATen/ops/nll_loss2d_backward_cpu_dispatch.h>
#include <ATen/ops/nll_loss2d_forward_cpu_dispatch.h>
#include <torch/library.h>

#include "common/launch_function.h"

namespace openreg::ops {

namespace {

constexpr const char* kForward = "aten::nll_loss2d_forward";
constexpr const char* kBackward = "aten::nll_loss2d_backward";

void check_operands(const at::Tensor& self, const at::Tensor& target, MaybeTensor weight) {
  TORCH_CHECK(target.dim() == 3,
              "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  TORCH_CHECK(self.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  TORCH_CHECK(!is_given(weight) || weight->numel() == self.size(1),
              "weight tensor should be defined either for all or no classes");
  TORCH_CHECK(self.size(0) == target.size(0) && self.size(2) == target.size(1) && self.size(3) == target.size(2),
              "size mismatch (got input: ", self.sizes(), " , target: ", target.sizes());
  TORCH_CHECK(target.scalar_type() == at::kLong || target.scalar_type() == at::kByte,
              "expected target of dtype int64 or uint8, but got ", target.scalar_type());
}

c10::IntArrayRef output_size(const at::Tensor& target, int64_t reduction) {
  return reduction == at::Reduction::None ? target.sizes() : c10::IntArrayRef();
}

void forward_kernel(const at::Tensor& self, const at::Tensor& target, MaybeTensor weight, int64_t reduction,
                    int64_t ignore_index, at::Tensor& output, at::Tensor& total_weight) {
  at::cpu::nll_loss2d_forward_outf(self, target, weight, reduction, ignore_index, output, total_weight);
}

void launch_forward(const at::Tensor& self, const at::Tensor& target, MaybeTensor weight, int64_t reduction,
                    int64_t ignore_index, at::Tensor& output, at::Tensor& total_weight) {
  launch_function(kForward, self.device(), &forward_kernel, self, target, weight, reduction, ignore_index, output,
                  total_weight);
}

std::tuple<at::Tensor, at::Tensor> nll_loss2d_forward(const at::Tensor& self, const at::Tensor& target,
                                                      MaybeTensor weight, int64_t reduction, int64_t ignore_index) {
  check_same_device(kForward, device_of(kForward, self, target), self, target, weight);
  check_operands(self, target, weight);
  const CurrentDevice current(self.device());
  const auto options = self.options().memory_format(std::nullopt);
  at::Tensor output = make_output(output_size(target, reduction), {}, options);
  at::Tensor total_weight = make_output({}, {}, options);
  launch_forward(self, target, weight, reduction, ignore_index, output, total_weight);
  return {std::move(output), std::move(total_weight)};
}

std::tuple<at::Tensor&, at::Tensor&> nll_loss2d_forward_out(const at::Tensor& self, const at::Tensor& target,
                                                            MaybeTensor weight, int64_t reduction, int64_t ignore_index,
                                                            at::Tensor& output, at::Tensor& total_weight) {
  check_same_device(kForward, device_of(kForward, self, target), self, target, weight);
  check_operands(self, target, weight);
  const CurrentDevice current(self.device());
  resize_out(output, output_size(target, reduction), {}, self.options());
  resize_out(total_weight, {}, {}, self.options());
  launch_forward(self, target, weight, reduction, ignore_index, output, total_weight);
  return {output, total_weight};
}

// The CPU's kernel wants a gradient that is contiguous.
void backward_kernel(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target, MaybeTensor weight,
                     int64_t reduction, int64_t ignore_index, const at::Tensor& total_weight, at::Tensor& result) {
  if (result.is_contiguous()) {
    at::cpu::nll_loss2d_backward_outf(grad, self, target, weight, reduction, ignore_index, total_weight, result);
  } else {
    result.copy_(
        at::cpu::nll_loss2d_backward(grad, self.contiguous(), target, weight, reduction, ignore_index, total_weight));
  }
}

at::Tensor& nll_loss2d_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                    MaybeTensor weight, int64_t reduction, int64_t ignore_index,
                                    const at::Tensor& total_weight, at::Tensor& result) {
  const c10::Device device = device_of(kBackward, self, target);
  check_same_device(kBackward, device, grad, self, target, weight, total_weight);
  check_operands(self, target, weight);
  const CurrentDevice current(device);
  resize_out(result, self.sizes(), {}, self.options().memory_format(std::nullopt));
  launch_function(kBackward, device, &backward_kernel, grad, self, target, weight, reduction, ignore_index,
                  total_weight, result);
  return result;
}

at::Tensor nll_loss2d_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                               MaybeTensor weight, int64_t reduction, int64_t ignore_index,
                               const at::Tensor& total_weight) {
  const CurrentDevice current(device_of(kBackward, self, grad, target));
  at::Tensor result = make_output(self.sizes(), {}, self.options().memory_format(std::nullopt));
  return nll_loss2d_backward_out(grad, self, target, weight, reduction, ignore_index, total_weight, result);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("nll_loss2d_forward", TORCH_FN(nll_loss2d_forward));
  library.impl("nll_loss2d_forward.output", TORCH_FN(nll_loss2d_forward_out));
  library.impl("nll_loss2d_backward", TORCH_FN(nll_loss2d_backward));
  library.impl("nll_loss2d_backward.grad_input", TORCH_FN(nll_loss2d_backward_out));
}

}  // namespace

}  // namespace openreg::ops
