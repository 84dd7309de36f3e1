// SPDX-License-Identifier: BSD-3-Clause
// Outer product of two vectors, added to a matrix: in one kernel, which rounds once.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/addr_cpu_dispatch.h>
#include <ATen/ops/result_type.h>
#include <torch/library.h>

#include "common/launch_function.h"

namespace openreg::ops {

namespace {

constexpr const char* kName = "aten::addr";

void kernel(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second, const at::Scalar& beta,
            const at::Scalar& alpha, at::Tensor& out) {
  at::cpu::addr_outf(self, first, second, beta, alpha, out);
}

c10::ScalarType check_operands(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second,
                               const at::Scalar& beta, const at::Scalar& alpha) {
  TORCH_CHECK(first.dim() == 1, "vec1: Expected 1-D argument vec1, but got ", first.dim(), "-D");
  TORCH_CHECK(second.dim() == 1, "vec2: Expected 1-D argument vec2, but got ", second.dim(), "-D");
  TORCH_CHECK(at::is_expandable_to(self.sizes(), {first.size(0), second.size(0)}), "The expanded size of the tensor (",
              first.size(0), ", ", second.size(0), ") must match the existing size ", self.sizes());
  const c10::ScalarType dtype = c10::promoteTypes(at::result_type(self, first), at::result_type(first, second));
  TORCH_CHECK(!(beta.isBoolean() || alpha.isBoolean()) || dtype == at::kBool,
              "Boolean beta and alpha only supported for Boolean results.");
  TORCH_CHECK(
      at::isFloatingType(dtype) || at::isComplexType(dtype) || (beta.isIntegral(true) && alpha.isIntegral(true)),
      "For integral input tensors, argument alpha and beta must not be floating point numbers.");
  return dtype;
}

// Gives a new output the shape and the strides that PyTorch's iterator settles on.
void settle_strides(const at::Tensor& out, const at::Tensor& self, const at::Tensor& first, const at::Tensor& second) {
  at::TensorIteratorConfig()
      .check_all_same_dtype(false)
      .add_output(out)
      .add_owned_const_input(self.expand({first.size(0), second.size(0)}))
      .add_owned_const_input(first.reshape({first.size(0), 1}))
      .add_const_input(second)
      .build();
}

at::Tensor addr(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second, const at::Scalar& beta,
                const at::Scalar& alpha) {
  const c10::Device device = device_of(kName, self, first, second);
  check_same_device(kName, device, self, first, second);
  const c10::ScalarType dtype = check_operands(self, first, second, beta, alpha);
  const CurrentDevice current(device);
  at::Tensor out = make_output({0}, {}, at::TensorOptions(device).dtype(dtype));
  settle_strides(out, self, first, second);
  launch_function(kName, device, &kernel, self, first, second, beta, alpha, out);
  return out;
}

at::Tensor& addr_out(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second, const at::Scalar& beta,
                     const at::Scalar& alpha, at::Tensor& out) {
  const c10::Device device = device_of(kName, self, first, second, out);
  check_same_device(kName, device, self, first, second, out);
  const c10::ScalarType dtype = check_operands(self, first, second, beta, alpha);
  TORCH_CHECK(c10::canCast(dtype, out.scalar_type()), "result type ", dtype,
              " can't be cast to the desired output type ", out.scalar_type());
  const CurrentDevice current(device);
  if (out.is_same(self)) {
    TORCH_CHECK(self.dim() == 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
    TORCH_CHECK(self.size(0) == first.size(0) && self.size(1) == second.size(0), "size mismatch, input: ", self.sizes(),
                ", v1: ", first.sizes(), ", v2: ", second.sizes());
    at::assert_no_internal_overlap(out);
  } else {
    resize_out(out, {first.size(0), second.size(0)}, {}, out.options());
    at::assert_no_internal_overlap(out);
    at::assert_no_partial_overlap(out, self);
  }
  launch_function(kName, device, &kernel, self, first, second, beta, alpha, out);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("addr", TORCH_FN(addr));
  library.impl("addr.out", TORCH_FN(addr_out));
}

}  // namespace

}  // namespace openreg::ops
