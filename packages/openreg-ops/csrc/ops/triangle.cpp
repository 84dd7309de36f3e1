// SPDX-License-Identifier: BSD-3-Clause
// Upper and lower triangles: structured, with a detour for outputs that are not contiguous.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tril_cpu_dispatch.h>
#include <ATen/ops/tril_meta.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_cpu_dispatch.h>
#include <ATen/ops/triu_meta.h>
#include <ATen/ops/triu_ops.h>

#include "common/structured.h"

namespace openreg::ops {

namespace {

OPENREG_STRUCTURED_SPEC(tril, tril_out, tril)
OPENREG_STRUCTURED_SPEC(triu, triu_out, triu)

// The CPU kernel takes the matrices of a batch to follow each other in the output, and writes beyond it if they do not.
template <class Spec>
struct Triangle : Spec {
  static void compute(const at::Tensor& self, int64_t diagonal, at::Tensor& out) {
    if (out.is_contiguous()) {
      Spec::kernel()(self, diagonal, out);
      return;
    }
    at::Tensor contiguous = at::empty_like(out, at::MemoryFormat::Contiguous);
    Spec::kernel()(self, diagonal, contiguous);
    out.copy_(contiguous);
  }
  using Kernel = decltype(compute);
  static Kernel* kernel() { return &compute; }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  register_structured<Triangle<Spec_tril>, at::_ops::tril_>(library);
  register_structured<Triangle<Spec_triu>, at::_ops::triu_>(library);
}

}  // namespace

}  // namespace openreg::ops
