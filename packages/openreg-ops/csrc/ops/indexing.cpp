// SPDX-License-Identifier: BSD-3-Clause
// Moving elements by index, not structured: select, take, put, fill, flip, roll and the gradient of unfold.
#include <ATen/Context.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/core/List.h>
#include <ATen/ops/_index_put_impl_cpu_dispatch.h>
#include <ATen/ops/flip_cpu_dispatch.h>
#include <ATen/ops/flip_ops.h>
#include <ATen/ops/index_fill_cpu_dispatch.h>
#include <ATen/ops/index_fill_ops.h>
#include <ATen/ops/index_select_cpu_dispatch.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/put_ops.h>
#include <ATen/ops/roll_cpu_dispatch.h>
#include <ATen/ops/roll_ops.h>
#include <ATen/ops/take_cpu_dispatch.h>
#include <ATen/ops/take_ops.h>
#include <ATen/ops/unfold_backward_cpu_dispatch.h>
#include <ATen/ops/unfold_backward_ops.h>
#include <torch/library.h>

#include "common/described.h"
#include "common/numbers.h"
#include "common/repeatable.h"

namespace openreg::ops {

namespace {

OutputSpec describe_flip(const at::Tensor& self, c10::IntArrayRef dims) {
  at::dim_list_to_bitset(dims, self.dim());
  return output_like(self);
}

OutputSpec describe_roll(const at::Tensor& self, c10::IntArrayRef shifts, c10::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  OutputSpec spec = output_of_shape(self);
  if (dims.empty() && shifts.size() == 1) {
    return spec;
  }
  TORCH_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
              ", dims:", dims.size());
  for (const int64_t dim : dims) {
    self.size(dim);  // in range, and not of a number
  }
  spec.format = self.suggest_memory_format();
  return spec;
}

bool is_index(const at::Tensor& index) {
  return index.scalar_type() == at::kLong || index.scalar_type() == at::kInt;
}

OutputSpec describe_index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(is_index(index),
              "index_select(): Expected dtype int32 or int64 for index but got: ", index.scalar_type());
  TORCH_CHECK(self.dim() > 0 || index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
              index.numel(), " value(s)");
  OutputSpec spec = output_of_shape(self);
  if (self.dim() > 0) {
    spec.sizes[static_cast<size_t>(wrapped)] = index.numel();
  }
  return spec;
}

OutputSpec describe_take(const at::Tensor& self, const at::Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  return output_of(index.sizes(), self.scalar_type());
}

void check_put(const at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  if (!accumulate) {
    at::globalContext().alertNotDeterministic("put_");
  }
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ", self.scalar_type(),
              " and source.dtype = ", source.scalar_type());
  TORCH_CHECK(source.numel() == index.numel(),
              "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
              source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
}

// By another kernel: at::cpu::put_ asks, when it runs, whether algorithms have to be deterministic. That was answered
// at the launch.
at::Tensor& put_kernel(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  if (index.numel() != 0) {
    at::Tensor elements = self.reshape({-1});
    const c10::List<std::optional<at::Tensor>> places({index.reshape({-1})});
    at::cpu::_index_put_impl_(elements, places, source.reshape({-1}), accumulate, /*unsafe=*/false);
    if (!elements.is_alias_of(self)) {
      self.copy_(elements.view(self.sizes()));
    }
  }
  return self;
}

OPENREG_DESCRIBED_SPEC(put_, put_, put_kernel, check_put)

struct RepeatablePut : Spec_put_ {
  static Kernel* kernel() { return repeatable<Kernel, &put_kernel>(); }
};

void check_index_fill(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value) {
  TORCH_CHECK_INDEX(is_index(index), "index_fill_(): Expected dtype int64 for index.");
  TORCH_CHECK(self.is_complex() || !value.isComplex(),
              "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  require_number(value, self.scalar_type());
  at::maybe_wrap_dim(dim, self.dim());
  at::assert_no_overlap(self, index);
  warn_if_expanded("index_fill_", self, "tensor[mask] = scalar");
}

void check_index_fill_tensor(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  check_index_fill(self, dim, index, value.is_complex() ? at::Scalar(c10::complex<double>()) : at::Scalar(0));
}

OPENREG_DESCRIBED_SPEC(index_fill__int_Scalar, index_fill__int_Scalar, at::cpu::index_fill_, check_index_fill)
OPENREG_DESCRIBED_SPEC(index_fill__int_Tensor, index_fill__int_Tensor, at::cpu::index_fill_, check_index_fill_tensor)

at::Tensor& index_fill_scalar(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value) {
  return DescribedInplace<at::_ops::index_fill__int_Scalar, SelfOverlap::kAllowed>::call<Spec_index_fill__int_Scalar>(
      self, dim, index, value);
}

// The value may be a number on the host.
at::Tensor& index_fill_tensor(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  if (value.device().is_cpu() && value.dim() == 0) {
    return self.index_fill_(dim, index, value.item());
  }
  return DescribedInplace<at::_ops::index_fill__int_Tensor, SelfOverlap::kAllowed>::call<Spec_index_fill__int_Tensor>(
      self, dim, index, value);
}

OutputSpec describe_unfold_backward(const at::Tensor& grad, c10::IntArrayRef input_sizes, int64_t /*dim*/,
                                    int64_t /*size*/, int64_t /*step*/) {
  return output_of(input_sizes, grad.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OPENREG_DESCRIBED(library, flip, at::cpu::flip, describe_flip)
  library.impl("index_fill_.int_Scalar", TORCH_FN(index_fill_scalar));
  library.impl("index_fill_.int_Tensor", TORCH_FN(index_fill_tensor));
  OPENREG_DESCRIBED_OUT(library, index_select, index_select_out, at::cpu::index_select_outf, describe_index_select)
  library.impl("put_", &DescribedInplace<at::_ops::put_>::call<RepeatablePut>);
  OPENREG_DESCRIBED(library, roll, at::cpu::roll, describe_roll)
  OPENREG_DESCRIBED_OUT(library, take, take_out, at::cpu::take_outf, describe_take)
  OPENREG_DESCRIBED(library, unfold_backward, at::cpu::unfold_backward, describe_unfold_backward)
}

}  // namespace

}  // namespace openreg::ops
