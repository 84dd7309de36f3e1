// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: PyTorch's meta function checks the operands and describes the output; the kernel fills it.
// To register the out= overload is enough: PyTorch makes the functional and the in-place overload of it.
#include <ATen/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/add_meta.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/remainder_cpu_dispatch.h>
#include <ATen/ops/remainder_meta.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/threshold_backward_cpu_dispatch.h>
#include <ATen/ops/threshold_backward_meta.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <torch/library.h>

#include "dtypes.h"
#include "launch.h"

namespace pocket {

namespace {

// The meta function calls set_output_*() with the size and strides of the output. Here the out= tensor gets them.
template <class Meta>
struct Described final : Meta {
  explicit Described(at::Tensor& out) : out_(out) {}

  const at::Tensor& maybe_get_output(int64_t /*index*/) override { return out_; }
  void set_output_strided(int64_t index, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                          c10::TensorOptions options) override {
    set_output_raw_strided(index, sizes, strides, options);
  }
  void set_output_raw_strided(int64_t index, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                              c10::TensorOptions options) override {
    TORCH_CHECK(options.device() == out_.device(), "expected out= on ", options.device(), ", got ", out_.device());
    if (at::native::resize_output(out_, sizes) && !strides.empty()) {
      out_.as_strided_(sizes, strides);
    }
    if constexpr (kIterates) {
      Meta::set_output_raw_strided(index, sizes, strides, options);
    } else {
      TORCH_CHECK(options.dtype() == out_.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ",
                  out_.dtype(), " instead");
    }
  }
  // The dtype in which the kernel computes.
  c10::ScalarType dtype() const {
    if constexpr (kIterates) {
      return Meta::common_dtype();
    } else {
      return out_.scalar_type();
    }
  }

  static constexpr bool kIterates = std::is_base_of_v<at::TensorIteratorBase, Meta>;

  at::Tensor& out_;
};

// Returns an operand that the kernel may own. A number arrives as a CPU tensor, which the caller may change or free.
at::Tensor keep(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) {
    return host_view(tensor);
  }
  at::Tensor copy = tensor.clone();
  copy.unsafeGetTensorImpl()->set_wrapped_number(tensor.unsafeGetTensorImpl()->is_wrapped_number());
  return copy;
}

at::Scalar keep(const at::Scalar& number) {
  return number;
}

void check_device(const at::Tensor& tensor, c10::Device device) {
  TORCH_CHECK(tensor.device() == device || (tensor.is_cpu() && tensor.dim() == 0),
              "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
              tensor.device(), "!");
}

void check_device(const at::Scalar& /*number*/, c10::Device /*device*/) {}

// The out= overload of an operator, made of its meta function, its entry in at::_ops, which has its name for errors,
// the CPU's kernel, and the dtypes that the kernel takes.
template <class Meta, class Operator, auto kernel, auto takes, class... Operands>
at::Tensor& structured(Operands... operands, at::Tensor& out) {
  (check_device(operands, out.device()), ...);
  Described<Meta> described(out);
  described.meta(operands...);
  check_dtype(Operator::name, described.dtype(), takes);
  launch(out.device(), [arguments = std::make_tuple(keep(operands)...), to = host_view(out)]() mutable {
    std::apply([&to](auto&... kept) { kernel(kept..., to); }, arguments);
  });
  return out;
}

// A meta function that leaves a check to the kernel: here the host adds it.
struct MatrixProduct : at::meta::structured_mm {
  void meta(const at::Tensor& self, const at::Tensor& other) {
    TORCH_CHECK(self.dtype() == other.dtype(), "expected m1 and m2 to have the same dtype, but got: ", self.dtype(),
                " != ", other.dtype());
    structured_mm::meta(self, other);
  }
};

using T = const at::Tensor&;
using S = const at::Scalar&;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace at::meta;
  namespace cpu = at::cpu;
  namespace op = at::_ops;
  library.impl("add.out", &structured<structured_add_Tensor, op::add_out, &cpu::add_outf, is_common, T, T, S>);
  library.impl("mul.out", &structured<structured_mul_Tensor, op::mul_out, &cpu::mul_outf, is_common, T, T>);
  library.impl("remainder.Tensor_out",
               &structured<structured_remainder_Tensor, op::remainder_Tensor_out, &cpu::remainder_outf, is_real, T, T>);
  library.impl("mm.out", &structured<MatrixProduct, op::mm_out, &cpu::mm_outf, is_number, T, T>);
  library.impl("addmm.out", &structured<structured_addmm, op::addmm_out, &cpu::addmm_outf, is_number, T, T, T, S, S>);
  library.impl("threshold_backward.grad_input",
               &structured<structured_threshold_backward, op::threshold_backward_grad_input,
                           &cpu::threshold_backward_outf, is_real, T, T, S>);
}

}  // namespace

}  // namespace pocket
