// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: indexing, scatter, gather and concatenation.
#include "common/structured.h"

#include <ATen/ops/cat_cpu_dispatch.h>
#include <ATen/ops/cat_meta.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/gather_cpu_dispatch.h>
#include <ATen/ops/gather_meta.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/index_add_cpu_dispatch.h>
#include <ATen/ops/index_add_meta.h>
#include <ATen/ops/index_add_ops.h>
#include <ATen/ops/index_copy_cpu_dispatch.h>
#include <ATen/ops/index_copy_meta.h>
#include <ATen/ops/index_copy_ops.h>
#include <ATen/ops/index_cpu_dispatch.h>
#include <ATen/ops/index_meta.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_reduce_cpu_dispatch.h>
#include <ATen/ops/index_reduce_meta.h>
#include <ATen/ops/index_reduce_ops.h>
#include <ATen/ops/isin_cpu_dispatch.h>
#include <ATen/ops/isin_meta.h>
#include <ATen/ops/isin_ops.h>
#include <ATen/ops/scatter_add_cpu_dispatch.h>
#include <ATen/ops/scatter_add_meta.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/scatter_cpu_dispatch.h>
#include <ATen/ops/scatter_meta.h>
#include <ATen/ops/scatter_ops.h>
#include <ATen/ops/scatter_reduce_cpu_dispatch.h>
#include <ATen/ops/scatter_reduce_meta.h>
#include <ATen/ops/scatter_reduce_ops.h>

#include "common/indices.h"
#include "common/repeatable.h"

namespace openreg::ops {

namespace {

OPENREG_STRUCTURED_SPEC(index_Tensor, index_Tensor_out, index)
using Index = StructuredOf<Spec_index_Tensor>;
at::Tensor index(const at::Tensor& self, const Indices& indices) {
  return Index::functional(self, move_indices(self, indices));
}

at::Tensor& index_out(const at::Tensor& self, const Indices& indices, at::Tensor& out) {
  return Index::out(self, move_indices(self, indices), out);
}

OPENREG_STRUCTURED_SPEC(index_reduce, index_reduce_out, index_reduce)

void warn_of_index_reduce() {
  TORCH_WARN_ONCE("index_reduce() is in beta and the API may change at any time");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  register_structured<WarnsAtCall<Spec_index_reduce, &warn_of_index_reduce>, at::_ops::index_reduce_>(library);
  library.impl("index.Tensor", TORCH_FN(index));
  library.impl("index.Tensor_out", TORCH_FN(index_out));
}

OPENREG_STRUCTURED_SPEC(index_copy, index_copy_out, index_copy)

// Of several elements for one place, the last one stays.
struct RepeatableIndexCopy : Spec_index_copy {
  static Kernel* kernel() { return repeatable<Kernel, &at::cpu::index_copy_outf>(); }
};

}  // namespace

}  // namespace openreg::ops

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using namespace openreg::ops;
  OPENREG_STRUCTURED(library, cat, cat_out, cat)
  OPENREG_STRUCTURED(library, gather, gather_out, gather)
  OPENREG_STRUCTURED_INPLACE(library, index_add, index_add_out, index_add_, index_add)
  register_structured<RepeatableIndexCopy, at::_ops::index_copy_>(library);
  // Not isin.Scalar_Tensor: its meta function announces an empty output, and the kernel gives one number.
  OPENREG_STRUCTURED(library, isin_Tensor_Scalar, isin_Tensor_Scalar_out, isin)
  OPENREG_STRUCTURED(library, isin_Tensor_Tensor, isin_Tensor_Tensor_out, isin)
  OPENREG_STRUCTURED_INPLACE(library, scatter_add, scatter_add_out, scatter_add_, scatter_add)
  OPENREG_STRUCTURED_INPLACE(library, scatter_reduce, scatter_reduce_out, scatter__reduce, scatter)
  OPENREG_STRUCTURED_INPLACE(library, scatter_reduce_two, scatter_reduce_two_out, scatter_reduce__two, scatter_reduce)
  OPENREG_STRUCTURED_INPLACE(library, scatter_src, scatter_src_out, scatter__src, scatter)
  OPENREG_STRUCTURED_INPLACE(library, scatter_value, scatter_value_out, scatter__value, scatter)
  OPENREG_STRUCTURED_INPLACE(library, scatter_value_reduce, scatter_value_reduce_out, scatter__value_reduce, scatter)
}
