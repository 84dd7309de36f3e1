// SPDX-License-Identifier: BSD-3-Clause
// Element by element, not structured: complex numbers from parts, floor division, reversed subtraction, frexp, logit.
#include <ATen/TensorIterator.h>
#include <ATen/ops/complex_cpu_dispatch.h>
#include <ATen/ops/complex_ops.h>
#include <ATen/ops/div.h>
#include <ATen/ops/frexp_cpu_dispatch.h>
#include <ATen/ops/frexp_ops.h>
#include <ATen/ops/logit_cpu_dispatch.h>
#include <ATen/ops/logit_ops.h>
#include <ATen/ops/polar_cpu_dispatch.h>
#include <ATen/ops/polar_ops.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/sub.h>
#include <torch/library.h>

#include "common/described.h"

namespace openreg::ops {

namespace {

// Of the real parts and the imaginary ones, or of moduli and angles.
OutputSpec describe_complex(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  const auto has_parts = [](c10::ScalarType dtype) {
    return dtype == at::kHalf || dtype == at::kFloat || dtype == at::kDouble;
  };
  TORCH_CHECK(has_parts(a.scalar_type()) && has_parts(b.scalar_type()),
              "Expected both inputs to be Half, Float or Double tensors but got ", a.scalar_type(), " and ",
              b.scalar_type());
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "Expected object of scalar type ", a.scalar_type(),
              " but got scalar type ", b.scalar_type(), " for second argument");
  const c10::ScalarType dtype = c10::toComplexType(a.scalar_type());
  TORCH_CHECK(out.scalar_type() == dtype, "Expected object of scalar type ", dtype, " but got scalar type ",
              out.scalar_type(), " for argument 'out'");
  // Gives the output the shape, and where it is new the strides, that PyTorch settles on.
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).allow_cpu_scalars(true).add_output(out).add_const_input(a).add_const_input(b);
  config.build();
  return output_of_shape(out);
}

void check_floor_divide(const at::Tensor& self, const at::Tensor& other) {
  const c10::ScalarType dtype = at::result_type(self, other);
  require_dtype(!c10::isComplexType(dtype), "div_floor_cpu", dtype);
}

at::Tensor floor_divide(const at::Tensor& self, const at::Tensor& other) {
  check_floor_divide(self, other);
  return at::div(self, other, "floor");
}
at::Tensor& floor_divide_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  check_floor_divide(self, other);
  return at::div_out(out, self, other, "floor");
}
at::Tensor& floor_divide_(at::Tensor& self, const at::Tensor& other) {
  check_floor_divide(self, other);
  return self.div_(other, "floor");
}

at::Tensor rsub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  return at::sub(other, self, alpha);
}

std::array<OutputSpec, 2> describe_frexp(const at::Tensor& self) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "torch.frexp() only supports floating-point dtypes");
  OutputSpec mantissa = output_like(self);
  mantissa.elementwise = true;
  return {mantissa, output_like(self, at::kInt)};
}

OutputSpec describe_logit(const at::Tensor& self, std::optional<double> /*eps*/) {
  require_dtype(!self.is_complex(), "logit_cpu", self.scalar_type());
  OutputSpec spec = output_like(
      self, at::isFloatingType(self.scalar_type()) ? self.scalar_type() : c10::get_default_dtype_as_scalartype());
  spec.casts = true;
  spec.elementwise = true;
  return spec;
}

void check_logit(const at::Tensor& self, std::optional<double> eps) {
  const c10::ScalarType result = describe_logit(self, eps).dtype;
  TORCH_CHECK(c10::canCast(result, self.scalar_type()), "result type ", result,
              " can't be cast to the desired output type ", self.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED_OUT_ONLY(library, complex_out, at::cpu::complex_outf, describe_complex)
  library.impl("floor_divide", TORCH_FN(floor_divide));
  library.impl("floor_divide.out", TORCH_FN(floor_divide_out));
  library.impl("floor_divide_.Tensor", TORCH_FN(floor_divide_));
  OPENREG_DESCRIBED_OUT(library, frexp_Tensor, frexp_Tensor_out, at::cpu::frexp_outf, describe_frexp)
  OPENREG_DESCRIBED_OUT(library, logit, logit_out, at::cpu::logit_outf, describe_logit)
  OPENREG_DESCRIBED_INPLACE(library, logit_, at::cpu::logit_, check_logit)
  OPENREG_DESCRIBED_OUT_ONLY(library, polar_out, at::cpu::polar_outf, describe_complex)
  library.impl("rsub.Tensor", TORCH_FN(rsub));
}

}  // namespace

}  // namespace openreg::ops
