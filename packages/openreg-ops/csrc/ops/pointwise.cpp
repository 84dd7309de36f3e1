// SPDX-License-Identifier: BSD-3-Clause
// Element by element, not structured: PyTorch settles the dtype of the output before it calls the out= form.
#include <ATen/TensorIterator.h>
#include <ATen/ops/angle_cpu_dispatch.h>
#include <ATen/ops/angle_ops.h>
#include <ATen/ops/conj_physical_cpu_dispatch.h>
#include <ATen/ops/conj_physical_ops.h>
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
#include <c10/core/DefaultDtype.h>
#include <torch/library.h>

#include "common/launch_on.h"

namespace openreg::ops {

namespace {

// Gives the output the shape, and where it is new the strides, that PyTorch's iterator settles on; checks devices and
// overlapping memory. Any number of operands may be 0-dim tensors on the CPU, which have no say in it.
template <class... Inputs>
void prepare_output(const at::Tensor& out, const Inputs&... inputs) {
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).add_output(out);
  const auto add = [&](const at::Tensor& input) {
    if (!(input.device().is_cpu() && input.dim() == 0)) {
      config.add_const_input(input);
    }
  };
  (add(inputs), ...);
  config.build();
}

// The out= form of an operator of one operand or two. Args end in the output.
template <class Operator, class Schema = SchemaOf<Operator>>
struct PointwiseOut;

template <class Operator, class... Options>
struct PointwiseOut<Operator, at::Tensor&(const at::Tensor&, Options...)> {
  template <at::Tensor& (*kKernel)(const at::Tensor&, Options...)>
  static at::Tensor& call(const at::Tensor& self, Options... options) {
    at::Tensor& out = std::get<sizeof...(Options) - 1>(std::tuple<Options...>(options...));
    const CurrentDevice current(device_of(Operator::name, self, options...));
    prepare(out, self, options...);
    launch_kernel<at::Tensor& (*)(const at::Tensor&, Options...), const at::Tensor&, Options...>(
        Operator::name, out.device(), kKernel, self, options...);
    return out;
  }

 private:
  template <class... Rest>
  static void prepare(const at::Tensor& out, const at::Tensor& self, const Rest&... /*options*/) {
    prepare_output(out, self);
  }
  static void prepare(const at::Tensor& out, const at::Tensor& self, const at::Tensor& other,
                      const at::Tensor& /*out*/) {
    prepare_output(out, self, other);
  }
};

// The kernels make these checks of the output's dtype, too late for the calling line.

// The dtype in which the angle of an integer is computed; the kernel would ask for it when it runs.
c10::ScalarType angle_dtype(const at::Tensor& self) {
  return at::isIntegralType(self.scalar_type(), true) ? c10::get_default_dtype_as_scalartype() : self.scalar_type();
}

void angle_kernel(const at::Tensor& self, c10::ScalarType dtype, at::Tensor& out) {
  at::cpu::angle_outf(self.to(dtype), out);
}

void launch_angle(const at::Tensor& self, at::Tensor& out) {
  const CurrentDevice current(device_of("aten::angle", self, out));
  prepare_output(out, self);
  launch_kernel<decltype(&angle_kernel), const at::Tensor&, c10::ScalarType, at::Tensor&>(
      "aten::angle", out.device(), &angle_kernel, self, angle_dtype(self), out);
}

at::Tensor& angle_out(const at::Tensor& self, at::Tensor& out) {
  const c10::ScalarType dtype = angle_dtype(self);
  const c10::ScalarType result = c10::toRealValueType(dtype);
  TORCH_CHECK(c10::canCast(result, out.scalar_type()), "result type ", result,
              " can't be cast to the desired output type ", out.scalar_type());
  launch_angle(self, out);
  return out;
}

at::Tensor& conj_physical_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "Found dtype ", out.scalar_type(), " but expected ",
              self.scalar_type());
  return PointwiseOut<at::_ops::conj_physical_out>::call<at::cpu::conj_physical_outf>(self, out);
}

at::Tensor& nan_to_num_out(const at::Tensor& self, std::optional<double> nan, std::optional<double> infinity,
                           std::optional<double> minus_infinity, at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "nan_to_num: dtype of out: ", out.scalar_type(),
              " should be same as input: ", self.scalar_type());
  return PointwiseOut<at::_ops::nan_to_num_out>::call<at::cpu::nan_to_num_outf>(self, nan, infinity, minus_infinity,
                                                                                out);
}

at::Tensor isnan(const at::Tensor& self) {
  return at::ne(self, self);
}

at::Tensor angle(const at::Tensor& self) {
  at::Tensor out = make_output({0}, {}, self.options().dtype(c10::toRealValueType(angle_dtype(self))));
  launch_angle(self, out);
  return out;
}

at::Tensor& conj_physical_(at::Tensor& self) {
  return self.is_complex() ? PointwiseOut<at::_ops::conj_physical_out>::call<at::cpu::conj_physical_outf>(self, self)
                           : self;
}

void where_kernel(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  at::cpu::where_outf(condition, self, other, out);
}

at::Tensor& where_out(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  constexpr const char* kName = "aten::where";
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", condition.scalar_type());
  const c10::ScalarType dtype = at::result_type(self, other);
  TORCH_CHECK(out.scalar_type() == dtype, "Expected out type to be ", dtype, " but got ", out.scalar_type());
  const c10::Device device = device_of(kName, condition, self, other);
  const CurrentDevice current(device);
  prepare_output(out, condition, self, other);
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
  library.impl("angle.out", TORCH_FN(angle_out));
  library.impl("conj_physical.out", TORCH_FN(conj_physical_out));
  OPENREG_POINTWISE_OUT(library, logical_and_out, at::cpu::logical_and_outf);
  OPENREG_POINTWISE_OUT(library, logical_not_out, at::cpu::logical_not_outf);
  OPENREG_POINTWISE_OUT(library, logical_or_out, at::cpu::logical_or_outf);
  OPENREG_POINTWISE_OUT(library, logical_xor_out, at::cpu::logical_xor_outf);
  library.impl("nan_to_num.out", TORCH_FN(nan_to_num_out));
  library.impl("angle", TORCH_FN(angle));
  library.impl("conj_physical_", TORCH_FN(conj_physical_));
  library.impl("isnan", TORCH_FN(isnan));
  library.impl("where.self", TORCH_FN(where));
  library.impl("where.self_out", TORCH_FN(where_out));
}

}  // namespace

}  // namespace openreg::ops
