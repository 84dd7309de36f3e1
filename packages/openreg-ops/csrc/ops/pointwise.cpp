// SPDX-License-Identifier: BSD-3-Clause
// Element by element, not structured: PyTorch settles the dtype of the output before it calls the out= form.
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/abs_cpu_dispatch.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/angle_cpu_dispatch.h>
#include <ATen/ops/angle_ops.h>
#include <ATen/ops/logical_and_cpu_dispatch.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_not_cpu_dispatch.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/logical_or_cpu_dispatch.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/logical_xor_cpu_dispatch.h>
#include <ATen/ops/logical_xor_ops.h>
#include <ATen/ops/nan_to_num_cpu_dispatch.h>
#include <ATen/ops/nan_to_num_ops.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/where_cpu_dispatch.h>
#include <torch/library.h>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

// The out= form of an operator whose output has the broadcast shape of its operands. Args end in the output.
template <class Operator, class Schema = SchemaOf<Operator>>
struct PointwiseOut;

template <class Operator, class... Args>
struct PointwiseOut<Operator, at::Tensor&(Args...)> {
  template <at::Tensor& (*kKernel)(Args...)>
  static at::Tensor& call(Args... args) {
    at::Tensor& out = std::get<sizeof...(Args) - 1>(std::tuple<Args...>(args...));
    const CurrentDevice current(out.device());
    check_same_device_or_scalar(Operator::name, out.device(), args...);
    std::vector<int64_t> shape;
    const auto visit = [&](const at::Tensor& tensor) {
      if (!tensor.is_same(out)) {
        shape = at::infer_size(shape, tensor.sizes());
      }
    };
    (for_each_tensor(visit, args), ...);
    // With the output among the operands (in-place), it settles the shape by itself.
    at::native::resize_output(
        out, shape.empty() && out.dim() > 0 && all_same(out, args...) ? out.sizes() : c10::IntArrayRef(shape));
    launch_kernel<at::Tensor& (*)(Args...), Args...>(Operator::name, out.device(), kKernel, args...);
    return out;
  }

 private:
  static bool all_same(const at::Tensor& out, const Args&... args) {
    bool same = true;
    const auto visit = [&](const at::Tensor& tensor) { same = same && tensor.is_same(out); };
    (for_each_tensor(visit, args), ...);
    return same;
  }
};

at::Tensor isnan(const at::Tensor& self) {
  return at::ne(self, self);
}

void where_kernel(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  at::cpu::where_outf(condition, self, other, out);
}

at::Tensor& where_out(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  constexpr const char* kName = "aten::where";
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", condition.scalar_type());
  const c10::Device device = device_of(kName, condition, self, other);
  check_same_device_or_scalar(kName, device, condition, self, other, out);
  const CurrentDevice current(device);
  at::native::resize_output(out, at::infer_size(at::infer_size(condition.sizes(), self.sizes()), other.sizes()));
  launch_kernel<decltype(&where_kernel), const at::Tensor&, const at::Tensor&, const at::Tensor&, at::Tensor&>(
      kName, device, &where_kernel, condition, self, other, out);
  return out;
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  const c10::Device device = device_of("aten::where", condition, self, other);
  const CurrentDevice current(device);
  at::Tensor out = make_output({0}, {}, self.options().device(device).dtype(at::result_type(self, other)));
  where_out(condition, self, other, out);
  return out;
}

#define OPENREG_POINTWISE_OUT(library, op, kernel) \
  (library).impl(registered_name<at::_ops::op>().c_str(), TORCH_FN((PointwiseOut<at::_ops::op>::call<kernel>)))

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_POINTWISE_OUT(library, abs_out, at::cpu::abs_outf);
  OPENREG_POINTWISE_OUT(library, angle_out, at::cpu::angle_outf);
  OPENREG_POINTWISE_OUT(library, logical_and_out, at::cpu::logical_and_outf);
  OPENREG_POINTWISE_OUT(library, logical_not_out, at::cpu::logical_not_outf);
  OPENREG_POINTWISE_OUT(library, logical_or_out, at::cpu::logical_or_outf);
  OPENREG_POINTWISE_OUT(library, logical_xor_out, at::cpu::logical_xor_outf);
  OPENREG_POINTWISE_OUT(library, nan_to_num_out, at::cpu::nan_to_num_outf);
  library.impl("isnan", TORCH_FN(isnan));
  library.impl("where.self", TORCH_FN(where));
  library.impl("where.self_out", TORCH_FN(where_out));
}

}  // namespace

}  // namespace openreg::ops
