// SPDX-License-Identifier: BSD-3-Clause
// Mechanism: a structured operator. PyTorch's meta function checks the operands and requests the output. We allocate
// the output on the device and launch a kernel. The overloads of the operator differ only in the origin of the output.
// The short form is structured<...> (csrc/registration/structured.h).
//
// Source: ATen/ops/hypot_meta.h, and the code that torchgen generates for CUDA.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/hypot_cpu_dispatch.h>
#include <ATen/ops/hypot_meta.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "openreg/runtime/alias.h"
#include "openreg/runtime/allocator.h"
#include "openreg/runtime/launch.h"

namespace openreg::ops {

namespace {

// PyTorch's class with the meta function, from which a backend derives to provide outputs. This one is a
// TensorIterator, too, which broadcasts the operands and determines the dtype. It requires the geometry of the output.
struct Hypot final : at::meta::structured_hypot {
  at::Tensor output;  // undefined if a new one must be allocated

  const at::Tensor& maybe_get_output(int64_t /*index*/) override { return output; }

  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    if (!output.defined()) {
      constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);
      const c10::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
      output = strides.empty()
                   ? at::detail::empty_generic(sizes, &runtime::device_allocator(), kKeys, dtype,
                                               options.memory_format_opt())
                   : at::detail::empty_strided_generic(sizes, strides, &runtime::device_allocator(), kKeys, dtype);
    } else if (at::native::resize_output(output, sizes) && !strides.empty()) {
      output.as_strided_(sizes, strides);
    }
    at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options);
  }
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    set_output_raw_strided(index, sizes, strides, options);
  }

  // Launches the kernel, which runs later, on another thread, on aliases: CPU tensors over the same bytes without
  // ownership. It is PyTorch's CPU kernel; a real device launches its own.
  void launch(const at::Tensor& self, const at::Tensor& other) {
    runtime::AliasBuilder aliases("aten::hypot");
    auto kernel = [a = aliases(self), b = aliases(other), out = aliases.as(orAccessWrite)(output)]() mutable {
      at::cpu::hypot_outf(a, b, out);
    };
    runtime::launch("aten::hypot", output.device().index(), std::move(kernel), aliases.operands());
  }
};

at::Tensor& run(const at::Tensor& self, const at::Tensor& other, Hypot& op) {
  const c10::OptionalDeviceGuard guard(at::device_of(self.device().is_cpu() ? other : self));
  op.meta(self, other);
  // The kernel rejects other dtypes, but runs too late to throw on the calling line.
  const c10::ScalarType dtype = op.common_dtype();
  TORCH_CHECK_NOT_IMPLEMENTED(
      dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16,
      "\"hypot_cpu\" not implemented for '", dtype, "'");
  op.launch(self, other);
  return op.output;
}

at::Tensor hypot(const at::Tensor& self, const at::Tensor& other) {
  Hypot op;
  return run(self, other, op);
}

at::Tensor& hypot_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  Hypot op;
  op.output = out;
  run(self, other, op);
  return out;
}

at::Tensor& hypot_(at::Tensor& self, const at::Tensor& other) {
  return hypot_out(self, other, self);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("hypot", TORCH_FN(hypot));
  library.impl("hypot.out", TORCH_FN(hypot_out));
  library.impl("hypot_", TORCH_FN(hypot_));
}

}  // namespace

}  // namespace openreg::ops
