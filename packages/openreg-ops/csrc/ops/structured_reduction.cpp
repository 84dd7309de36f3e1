// SPDX-License-Identifier: BSD-3-Clause
// Structured operators: reductions, scans and sorting.
#include "common/structured.h"

#include <ATen/ops/all_cpu_dispatch.h>
#include <ATen/ops/all_meta.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/amax_cpu_dispatch.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/amin_cpu_dispatch.h>
#include <ATen/ops/amin_meta.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/aminmax_cpu_dispatch.h>
#include <ATen/ops/aminmax_meta.h>
#include <ATen/ops/aminmax_ops.h>
#include <ATen/ops/any_cpu_dispatch.h>
#include <ATen/ops/any_meta.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/argmax_cpu_dispatch.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/argmin_cpu_dispatch.h>
#include <ATen/ops/argmin_meta.h>
#include <ATen/ops/argmin_ops.h>
#include <ATen/ops/cumprod_cpu_dispatch.h>
#include <ATen/ops/cumprod_meta.h>
#include <ATen/ops/cumprod_ops.h>
#include <ATen/ops/cumsum_cpu_dispatch.h>
#include <ATen/ops/cumsum_meta.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/hash_tensor_cpu_dispatch.h>
#include <ATen/ops/hash_tensor_meta.h>
#include <ATen/ops/hash_tensor_ops.h>
#include <ATen/ops/max_cpu_dispatch.h>
#include <ATen/ops/max_meta.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/mean_cpu_dispatch.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/min_cpu_dispatch.h>
#include <ATen/ops/min_meta.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/norm_cpu_dispatch.h>
#include <ATen/ops/norm_meta.h>
#include <ATen/ops/norm_ops.h>
#include <ATen/ops/prod_cpu_dispatch.h>
#include <ATen/ops/prod_meta.h>
#include <ATen/ops/prod_ops.h>
#include <ATen/ops/renorm_cpu_dispatch.h>
#include <ATen/ops/renorm_meta.h>
#include <ATen/ops/renorm_ops.h>
#include <ATen/ops/sort_cpu_dispatch.h>
#include <ATen/ops/sort_meta.h>
#include <ATen/ops/sort_ops.h>
#include <ATen/ops/sum_cpu_dispatch.h>
#include <ATen/ops/sum_meta.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/topk_cpu_dispatch.h>
#include <ATen/ops/topk_meta.h>
#include <ATen/ops/topk_ops.h>

#include "kernel_choice.h"

namespace openreg::ops {

namespace {

OPENREG_STRUCTURED_SPEC(mean_dim, mean_out, mean)
using Mean = StructuredOf<Spec_mean_dim>;

// The kernel finds out that an output of whole numbers cannot hold a mean, too late for the calling line.
at::Tensor& mean_out(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                     std::optional<c10::ScalarType> dtype, at::Tensor& out) {
  TORCH_CHECK(!at::isIntegralType(out.scalar_type(), /*includeBool=*/true), "result type ",
              dtype.value_or(self.scalar_type()), " can't be cast to the desired output type ", out.scalar_type());
  return Mean::out(self, dims, keepdim, dtype, out);
}

OPENREG_STRUCTURED_SPEC(cumprod, cumprod_out, cumprod)
OPENREG_STRUCTURED_SPEC(cumsum, cumsum_out, cumsum)

// The kernels compute in the dtype of the output, and have none for booleans.
template <class Spec, class InplaceOperator>
struct Cumulative {
  using Implementation = StructuredOf<Spec>;

  static void check(const at::Tensor& self, c10::ScalarType dtype) {
    TORCH_CHECK_NOT_IMPLEMENTED(dtype != at::kBool || self.dim() == 0 || self.numel() == 0, "\"",
                                Spec::Functional::name + 6, "_out_cpu\" not implemented for '", dtype, "'");
  }
  static at::Tensor functional(const at::Tensor& self, int64_t dim, std::optional<c10::ScalarType> dtype) {
    check(self, dtype.value_or(at::kLong));
    return Implementation::functional(self, dim, dtype);
  }
  static at::Tensor& out(const at::Tensor& self, int64_t dim, std::optional<c10::ScalarType> dtype, at::Tensor& out) {
    check(self, dtype.value_or(out.scalar_type()));
    return Implementation::out(self, dim, dtype, out);
  }
  static at::Tensor& inplace(at::Tensor& self, int64_t dim, std::optional<c10::ScalarType> dtype) {
    check(self, self.scalar_type());
    return Inplace<Spec, SchemaOf<InplaceOperator>>::template call<Implementation>(self, dim, dtype);
  }
};
using Cumprod = Cumulative<Spec_cumprod, at::_ops::cumprod_>;
using Cumsum = Cumulative<Spec_cumsum, at::_ops::cumsum_>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("cumprod", &Cumprod::functional);
  library.impl("cumprod.out", &Cumprod::out);
  library.impl("cumprod_", &Cumprod::inplace);
  library.impl("cumsum", &Cumsum::functional);
  library.impl("cumsum.out", &Cumsum::out);
  library.impl("cumsum_", &Cumsum::inplace);
  library.impl("mean.dim", &Mean::functional);
  library.impl("mean.out", &mean_out);
}

}  // namespace

}  // namespace openreg::ops

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using openreg::ops::raw_kernels_chosen;

  OPENREG_STRUCTURED(library, all, all_all_out, all)
  OPENREG_STRUCTURED(library, all_dim, all_out, all)
  OPENREG_STRUCTURED(library, all_dims, all_dims_out, all)
  OPENREG_STRUCTURED(library, amax, amax_out, amax)
  OPENREG_STRUCTURED(library, amin, amin_out, amin)
  OPENREG_STRUCTURED(library, aminmax, aminmax_out, aminmax)
  OPENREG_STRUCTURED(library, any, any_all_out, any)
  OPENREG_STRUCTURED(library, any_dim, any_out, any)
  OPENREG_STRUCTURED(library, any_dims, any_dims_out, any)
  OPENREG_STRUCTURED(library, argmax, argmax_out, argmax)
  OPENREG_STRUCTURED(library, argmin, argmin_out, argmin)
  OPENREG_STRUCTURED(library, hash_tensor, hash_tensor_out, hash_tensor)
  OPENREG_STRUCTURED(library, max_dim, max_dim_max, max)
  OPENREG_STRUCTURED(library, min_dim, min_dim_min, min)
  OPENREG_STRUCTURED(library, norm_ScalarOpt_dim, norm_out, norm)
  OPENREG_STRUCTURED(library, norm_ScalarOpt_dim_dtype, norm_dtype_out, norm)
  OPENREG_STRUCTURED(library, prod_dim_int, prod_int_out, prod)
  OPENREG_STRUCTURED_INPLACE(library, renorm, renorm_out, renorm_, renorm)
  OPENREG_STRUCTURED(library, sort_stable, sort_values_stable, sort)
  if (!raw_kernels_chosen()) {
    OPENREG_STRUCTURED(library, sum_dim_IntList, sum_IntList_out, sum)
  }
  OPENREG_STRUCTURED(library, topk, topk_values, topk)
}
